//! The parameters (SRS) of a circuit: the `.params` files that bellperson reads and writes.
//!
//! ```no_run
//! use cuzk_prover::Params;
//!
//! let params = Params::open("circuit.params")?;
//! println!("domain 2^{}", params.counts().domain_log2());
//! params.write("copy.params")?;
//! # Ok::<(), cuzk_prover::ParamsError>(())
//! ```

use std::{
    fmt,
    fs::File,
    io,
    path::Path,
    sync::{Mutex, OnceLock, PoisonError},
};

use blstrs::{G1Affine, G2Affine};
use memmap2::Mmap;
use rand_core::{OsRng, RngCore};

use crate::{PreparedVerifyingKey, VerifyingKey, setup::Generator};

mod error;
pub(crate) mod layout;
pub(crate) mod point;
pub(crate) mod store;
mod subgroup;

pub use error::{ParamsError, PointFault};
pub use subgroup::SubgroupCheck;

use layout::Layout;
use point::{Place, decode_all};

/// Parameters with files up to this size are made on the host if need be.
const MOST_ON_HOST: u64 = 4 << 30;

/// The points of a parameter file, decoded: affine, coordinates in Montgomery form.
///
/// `a`, `b_g1` and `b_g2` list the inputs first (the constant one at the front), then the auxiliary
/// variables; a variable that does not occur is left out, except that `a` holds every input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// τ^i · (τ^n − 1) / δ for i in 0 .. n − 1, where n is the domain size.
    pub h: Vec<G1Affine>,
    /// (β·u_i(τ) + α·v_i(τ) + w_i(τ)) / δ for each auxiliary variable.
    pub l: Vec<G1Affine>,
    /// u_i(τ).
    pub a: Vec<G1Affine>,
    /// v_i(τ).
    pub b_g1: Vec<G1Affine>,
    /// v_i(τ) in G2.
    pub b_g2: Vec<G2Affine>,
}

/// How many points each part of the parameters has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Inputs, the constant one included.
    pub inputs: usize,
    /// Points of h: the domain size less one.
    pub h: usize,
    /// Points of l: the auxiliary variables.
    pub l: usize,
    /// Points of a.
    pub a: usize,
    /// Points of b_g1, and of b_g2.
    pub b: usize,
}

impl Counts {
    /// The base-2 logarithm of the domain size.
    pub fn domain_log2(&self) -> u32 {
        (self.h + 1).ilog2()
    }

    /// The size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        let layout = Layout::with_counts(self.inputs, self.h, self.l, self.a, self.b, self.b);
        layout.b_g2.end() as u64
    }
}

/// The sections of a mapped parameter file as they lie there: big-endian, uncompressed, 96 bytes a
/// point in G1 and 192 in G2 (c1 before c0). For back ends that decode on the device.
#[derive(Clone, Copy)]
pub struct RawSections<'a> {
    /// See [`Points::h`].
    pub h: &'a [u8],
    /// See [`Points::l`].
    pub l: &'a [u8],
    /// See [`Points::a`].
    pub a: &'a [u8],
    /// See [`Points::b_g1`].
    pub b_g1: &'a [u8],
    /// See [`Points::b_g2`].
    pub b_g2: &'a [u8],
}

/// The parameters of one circuit.
pub struct Params {
    file: String,
    vk: VerifyingKey,
    counts: Counts,
    mapped: Option<(Mmap, Layout)>,
    /// Makes the points where they are used.
    generator: Option<Generator>,
    points: OnceLock<Points>,
    /// The inputs' points of a mapped file whose other points are on devices only.
    input_points: OnceLock<Points>,
    decoding: Mutex<()>,
    prepared: OnceLock<PreparedVerifyingKey>,
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Params")
            .field("file", &self.file)
            .field("counts", &self.counts)
            .field("decoded", &self.points.get().is_some())
            .finish_non_exhaustive()
    }
}

impl Params {
    /// Opens a parameter file, decodes all points and checks all of them, in parallel.
    ///
    /// # Errors
    /// When the file cannot be opened, its size and counts contradict each other, or a point is not
    /// a finite point of the curve's prime-order subgroup.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ParamsError> {
        Self::open_with(path, SubgroupCheck::Full)
    }

    /// [`Self::open`] with a choice of how much of the subgroup check is done.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(path: impl AsRef<Path>, check: SubgroupCheck) -> Result<Self, ParamsError> {
        let params = Self::map(path)?;
        params.decode(check)?;
        Ok(params)
    }

    /// Maps a parameter file into memory and checks its size, its counts and its verifying key,
    /// but decodes no other point: [`Self::decode`] does, or a device from [`Self::raw`].
    ///
    /// # Errors
    /// When the file cannot be opened, its size and counts contradict each other, or a point of the
    /// verifying key is bad.
    pub fn map(path: impl AsRef<Path>) -> Result<Self, ParamsError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| io_error(&name, "open", source))?;
        let size = file
            .metadata()
            .map_err(|source| io_error(&name, "stat", source))?;
        if size.is_dir() {
            return Err(io_error(
                &name,
                "open",
                io::Error::from(io::ErrorKind::IsADirectory),
            ));
        }
        if size.len() == 0 {
            // An empty file cannot be mapped everywhere.
            layout::parse(&name, &[])?;
        }
        // SAFETY: the mapping is read-only and its bytes are only ever read as `u8`, so that any
        // content is valid. Whoever truncates a file that is in use takes this process down with a
        // bus error; whoever rewrites it changes bytes that are checked while they are decoded.
        let map = unsafe { Mmap::map(&file) }.map_err(|source| io_error(&name, "map", source))?;
        let layout = layout::parse(&name, &map)?;
        let vk = VerifyingKey::decode(&name, &map, layout.ic)?;
        let mut params = Self::bare(name, vk, &layout);
        params.mapped = Some((map, layout));
        Ok(params)
    }

    /// Decodes a whole parameter file that lies in memory; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(name: &str, bytes: &[u8], check: SubgroupCheck) -> Result<Self, ParamsError> {
        let layout = layout::parse(name, bytes)?;
        let vk = VerifyingKey::decode(name, bytes, layout.ic)?;
        let points = decode_points(name, bytes, &layout, check)?;
        let params = Self::bare(name.to_owned(), vk, &layout);
        Ok(params.with_points(points))
    }

    /// Puts parameters together from a key and points that the caller vouches for.
    ///
    /// # Errors
    /// When the counts do not fit together.
    pub fn from_parts(vk: VerifyingKey, points: Points) -> Result<Self, ParamsError> {
        let name = "parameters in memory".to_owned();
        let layout = Layout::with_counts(
            vk.ic.len(),
            points.h.len(),
            points.l.len(),
            points.a.len(),
            points.b_g1.len(),
            points.b_g2.len(),
        );
        layout.check(&name)?;
        Ok(Self::bare(name, vk, &layout).with_points(points))
    }

    /// Parameters whose points are made where they are used.
    pub(crate) fn generated(
        vk: VerifyingKey,
        counts: Counts,
        generator: Generator,
    ) -> Result<Self, ParamsError> {
        let name = "generated parameters".to_owned();
        let Counts { inputs, h, l, a, b } = counts;
        let layout = Layout::with_counts(inputs, h, l, a, b, b);
        layout.check(&name)?;
        let mut params = Self::bare(name, vk, &layout);
        params.generator = Some(generator);
        Ok(params)
    }

    /// What makes the points, if they are made where they are used.
    pub(crate) fn generator(&self) -> Option<&Generator> {
        self.generator.as_ref()
    }

    /// The points, if the host has them.
    pub(crate) fn decoded(&self) -> Option<&Points> {
        self.points.get()
    }

    /// Points whose `a`, `b_g1` and `b_g2` begin with those of the inputs. The others may be missing.
    pub(crate) fn input_points(&self) -> Result<&Points, ParamsError> {
        if let Some(points) = self.points.get().or_else(|| self.input_points.get()) {
            return Ok(points);
        }
        match (&self.generator, &self.mapped) {
            (Some(generator), _) => Ok(generator.inputs()),
            (None, Some((map, layout))) => {
                let inputs = layout.first(self.counts.inputs);
                let points = decode_points(&self.file, map, &inputs, SubgroupCheck::Full)?;
                Ok(self.input_points.get_or_init(|| points))
            }
            (None, None) => self.decode(SubgroupCheck::Full),
        }
    }

    /// What is wrong with a point of a section of a mapped file, if anything.
    pub(crate) fn fault(&self, what: &'static str, index: usize) -> Option<ParamsError> {
        let (map, layout) = self.mapped.as_ref()?;
        let section = match what {
            "h" => layout.h,
            "l" => layout.l,
            "a" => layout.a,
            "b_g1" => layout.b_g1,
            _ => layout.b_g2,
        };
        let place = Place {
            file: &self.file,
            what,
            offset: section.offset as u64,
        };
        match what {
            "b_g2" => point::fault_at::<G2Affine>(section.of(map), index, place),
            _ => point::fault_at::<G1Affine>(section.of(map), index, place),
        }
    }

    /// Makes generated points on the host, where they are not too many.
    fn generate(&self, generator: &Generator) -> Result<Points, ParamsError> {
        let bytes = self.counts.file_bytes();
        if bytes > MOST_ON_HOST {
            return Err(ParamsError::NotOnHost {
                file: self.file.clone(),
                bytes,
                limit: MOST_ON_HOST,
            });
        }
        generator
            .on_host()
            .map_err(|error| io_error(&self.file, "generate", io::Error::other(error)))
    }

    /// Parameters without points.
    fn bare(file: String, vk: VerifyingKey, layout: &Layout) -> Self {
        let counts = Counts {
            inputs: layout.ic.count,
            h: layout.h.count,
            l: layout.l.count,
            a: layout.a.count,
            b: layout.b_g1.count,
        };
        Self {
            file,
            vk,
            counts,
            mapped: None,
            generator: None,
            points: OnceLock::new(),
            input_points: OnceLock::new(),
            decoding: Mutex::new(()),
            prepared: OnceLock::new(),
        }
    }

    /// Adds the points to bare parameters.
    fn with_points(self, points: Points) -> Self {
        Self {
            points: OnceLock::from(points),
            ..self
        }
    }

    /// Decodes the points of mapped parameters, or makes those of [`crate::setup::prepare`], once; later
    /// calls return the same points, whatever check they ask for.
    ///
    /// # Errors
    /// When a point is bad, or the points are to be made and too many for the host.
    pub fn decode(&self, check: SubgroupCheck) -> Result<&Points, ParamsError> {
        if let Some(points) = self.points.get() {
            return Ok(points);
        }
        let _only_one = self.decoding.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some((map, layout))) = (self.points.get(), &self.mapped) {
            let points = decode_points(&self.file, map, layout, check)?;
            return Ok(self.points.get_or_init(|| points));
        }
        if let (None, Some(generator)) = (self.points.get(), &self.generator) {
            let points = self.generate(generator)?;
            return Ok(self.points.get_or_init(|| points));
        }
        Ok(self.points.get_or_init(Points::default))
    }

    /// Reads a parameter file: [`Self::open`] under the name that bellperson's users know.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ParamsError> {
        Self::open(path)
    }

    /// Writes a parameter file: a temporary file in the same folder, synced and then renamed, so
    /// that a run that is cut off leaves no file under this name.
    ///
    /// # Errors
    /// When the file cannot be written (the disk is full, the folder is missing), or a point is the
    /// point at infinity.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ParamsError> {
        let path = path.as_ref();
        let points = self.decode(SubgroupCheck::default())?;
        let key = store::prepare(&path.display().to_string(), &self.vk, points)?;
        store::replace(path, |out| store::write_all(out, &key, points))
    }

    /// Writes the bytes of the parameter file into any writer.
    ///
    /// # Errors
    /// When the writer fails, or a point is the point at infinity.
    pub fn write_to(&self, out: &mut dyn io::Write) -> Result<(), ParamsError> {
        let points = self.decode(SubgroupCheck::default())?;
        let key = store::prepare(&self.file, &self.vk, points)?;
        store::write_all(out, &key, points).map_err(|source| io_error(&self.file, "write", source))
    }

    /// The file that the parameters came from, or a name for them.
    pub fn name(&self) -> &str {
        &self.file
    }

    /// The verifying key.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// The verifying key, prepared on first use.
    pub fn prepared_vk(&self) -> &PreparedVerifyingKey {
        self.prepared
            .get_or_init(|| PreparedVerifyingKey::new(&self.vk))
    }

    /// How many points each part has.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The undecoded sections, if the parameters are a mapped file.
    pub fn raw(&self) -> Option<RawSections<'_>> {
        self.mapped.as_ref().map(|(map, layout)| RawSections {
            h: layout.h.of(map),
            l: layout.l.of(map),
            a: layout.a.of(map),
            b_g1: layout.b_g1.of(map),
            b_g2: layout.b_g2.of(map),
        })
    }

    /// [`Points::h`]; empty as long as mapped parameters have not been decoded.
    pub fn h(&self) -> &[G1Affine] {
        self.points.get().map_or(&[], |points| &points.h)
    }

    /// [`Points::l`]; empty as long as mapped parameters have not been decoded.
    pub fn l(&self) -> &[G1Affine] {
        self.points.get().map_or(&[], |points| &points.l)
    }

    /// [`Points::a`]; empty as long as mapped parameters have not been decoded.
    pub fn a(&self) -> &[G1Affine] {
        self.points.get().map_or(&[], |points| &points.a)
    }

    /// [`Points::b_g1`]; empty as long as mapped parameters have not been decoded.
    pub fn b_g1(&self) -> &[G1Affine] {
        self.points.get().map_or(&[], |points| &points.b_g1)
    }

    /// [`Points::b_g2`]; empty as long as mapped parameters have not been decoded.
    pub fn b_g2(&self) -> &[G2Affine] {
        self.points.get().map_or(&[], |points| &points.b_g2)
    }
}

/// An operating system's error with the file and the action.
pub(crate) fn io_error(file: &str, action: &'static str, source: io::Error) -> ParamsError {
    ParamsError::Io {
        file: file.to_owned(),
        action,
        source,
    }
}

/// Decodes and checks all sections.
fn decode_points(
    file: &str,
    bytes: &[u8],
    layout: &Layout,
    check: SubgroupCheck,
) -> Result<Points, ParamsError> {
    let place = |what, section: layout::Section| Place {
        file,
        what,
        offset: section.offset as u64,
    };
    let sections = [
        ("h", layout.h),
        ("l", layout.l),
        ("a", layout.a),
        ("b_g1", layout.b_g1),
    ];
    let places = sections.map(|(what, section)| place(what, section));
    let g1 = |i: usize| decode_all::<G1Affine>(sections[i].1.of(bytes), places[i]);
    let (h, l, a, b_g1) = (g1(0)?, g1(1)?, g1(2)?, g1(3)?);
    let b_g2_place = place("b_g2", layout.b_g2);
    let b_g2 = decode_all::<G2Affine>(layout.b_g2.of(bytes), b_g2_place)?;
    if check == SubgroupCheck::Full {
        check_subgroup(&[&h, &l, &a, &b_g1], &places)?;
        check_subgroup(&[&b_g2], &[b_g2_place])?;
    }
    Ok(Points {
        h,
        l,
        a,
        b_g1,
        b_g2,
    })
}

/// Refuses points outside of the subgroup. `places[i]` says where `runs[i]` comes from.
pub(crate) fn check_subgroup<P: subgroup::Summed>(
    runs: &[&[P]],
    places: &[Place<'_>],
) -> Result<(), ParamsError> {
    let file = places.first().map_or("", |place| place.file);
    let mut seed = [0; 32];
    OsRng.try_fill_bytes(&mut seed).map_err(|e| {
        io_error(
            file,
            "draw random numbers to check",
            io::Error::other(e.to_string()),
        )
    })?;
    match subgroup::find_outside(runs, seed).and_then(|(run, at)| Some((places.get(run)?, at))) {
        None => Ok(()),
        Some((place, index)) => Err(place.fault::<P>(index, PointFault::OutsideSubgroup)),
    }
}
