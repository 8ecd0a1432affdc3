//! The file form of a compiled circuit.
//!
//! All numbers are little-endian. The file begins with
//!
//! | offset | bytes | field |
//! | --- | --- | --- |
//! | 0 | 8 | `CUZKCIRC` |
//! | 8 | 4 | version |
//! | 12 | 4 | bytes of the identity |
//! | 16 | 24 | constraints, inputs, private variables |
//! | 40 | 192 | twelve sections: offset, bytes |
//! | 232 | 32 | digest: BLAKE2b-256 of the counts and the sections |
//! | 264 | 32 | checksum: BLAKE2b-256 of everything before it and of the identity |
//! | 296 | | the identity in UTF-8 |
//!
//! and continues with the sections, each at a multiple of 64 bytes: coefficients (32 bytes,
//! canonical), templates, row ends, A variables, A coefficients, B variables, B coefficients,
//! instances, outside references, C row ends, C variables, C coefficients. The last three are empty
//! where C is not recorded. The digest covers the sections, the checksum the rest and the
//! digest, so together they cover every byte that is read.

use super::layout::{FileBytes, Section, Tables, Terms};
use super::map::MappedFile;
use super::validate::validate;
use super::{CompiledCircuit, CompiledError};
use crate::{Scalar, Shape};
use bellpepper_core::Circuit;
use bytemuck::Pod;
use ff::PrimeField;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!("compiled circuits are stored as they lie in little-endian memory");

const MAGIC: &[u8; 8] = b"CUZKCIRC";
const VERSION: u32 = 2;
const SECTIONS: usize = 12;
const SECTION_TABLE: usize = 40;
const DIGEST: usize = SECTION_TABLE + 16 * SECTIONS;
const CHECKSUM: usize = DIGEST + 32;
const IDENTITY: usize = CHECKSUM + 32;
const ALIGNMENT: usize = 64;
const LONGEST_IDENTITY: u32 = 4096;
/// As much of a file as tells its kind.
const HEAD_BYTES: usize = 64;
/// Counts from here on cannot be numbered by the tables.
const TOO_MANY: [u64; 3] = [(1 << 32) + 1, 1 << 31, 1 << 31];

fn hasher() -> blake2b_simd::State {
    blake2b_simd::Params::new()
        .hash_length(32)
        .personal(b"cuzk circuit")
        .to_state()
}

fn finish(state: &blake2b_simd::State) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(state.finalize().as_bytes());
    bytes
}

fn sections<'t>(coefficients: &'t [u8], tables: &'t Tables) -> [&'t [u8]; SECTIONS] {
    [
        coefficients,
        bytemuck::cast_slice(&tables.templates),
        bytemuck::cast_slice(&tables.row_ends),
        bytemuck::cast_slice(&tables.a.variables),
        bytemuck::cast_slice(&tables.a.coefficients),
        bytemuck::cast_slice(&tables.b.variables),
        bytemuck::cast_slice(&tables.b.coefficients),
        bytemuck::cast_slice(&tables.instances),
        bytemuck::cast_slice(&tables.outside),
        bytemuck::cast_slice(&tables.c_ends),
        bytemuck::cast_slice(&tables.c.variables),
        bytemuck::cast_slice(&tables.c.coefficients),
    ]
}

fn coefficient_bytes(coefficients: &[Scalar]) -> Vec<u8> {
    coefficients.iter().flat_map(Scalar::to_repr).collect()
}

fn counts(shape: &Shape) -> [u8; 24] {
    let mut bytes = [0; 24];
    let counts = [shape.constraints, shape.inputs, shape.aux];
    for (bytes, count) in bytes.chunks_exact_mut(8).zip(counts) {
        bytes.copy_from_slice(&(count as u64).to_le_bytes());
    }
    bytes
}

fn digest_of(counts: &[u8; 24], sections: &[&[u8]; SECTIONS]) -> [u8; 32] {
    let mut state = hasher();
    state.update(counts);
    for section in sections {
        state.update(&(section.len() as u64).to_le_bytes());
        state.update(section);
    }
    finish(&state)
}

/// The digest of a circuit's counts and tables.
pub(super) fn digest(shape: &Shape, coefficients: &[Scalar], tables: &Tables) -> [u8; 32] {
    let coefficients = coefficient_bytes(coefficients);
    digest_of(&counts(shape), &sections(&coefficients, tables))
}

/// Where the sections lie, and how long the file is.
fn place(identity: &str, lengths: [usize; SECTIONS]) -> ([Range<usize>; SECTIONS], usize) {
    let mut at = IDENTITY + identity.len();
    let ranges = lengths.map(|length| {
        let start = at.next_multiple_of(ALIGNMENT);
        at = start + length;
        start..at
    });
    (ranges, at.next_multiple_of(ALIGNMENT))
}

/// Bytes of the file that [`CompiledCircuit::save`] writes.
pub(super) fn file_bytes(compiled: &CompiledCircuit) -> u64 {
    let mut lengths = sections(&[], &compiled.tables).map(<[u8]>::len);
    lengths[0] = 32 * compiled.coefficients.len();
    place(&compiled.identity, lengths).1 as u64
}

impl CompiledCircuit {
    /// Writes the compiled circuit to `path`: first to a temporary file beside it, which is
    /// synced and renamed, so that a cut-off run leaves nothing that is later taken for good.
    ///
    /// # Errors
    /// [`CompiledError::Io`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), CompiledError> {
        let path = path.as_ref();
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".tmp{}", std::process::id()));
        let temporary = PathBuf::from(name);
        let result = self
            .write(&temporary)
            .and_then(|()| fs::rename(&temporary, path));
        result.map_err(|source| {
            // The write's own error is the one to report.
            let _ = fs::remove_file(&temporary);
            io_error(path, "write")(source)
        })
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let coefficients = coefficient_bytes(&self.coefficients);
        let sections = sections(&coefficients, &self.tables);
        let (ranges, total) = place(&self.identity, sections.map(<[u8]>::len));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).open(path)?;
        let header = self.header(&ranges);
        file.write_all(&header)?;
        let mut at = header.len();
        let padding = [0; ALIGNMENT];
        for (section, range) in sections.into_iter().zip(ranges) {
            file.write_all(&padding[..range.start - at])?;
            file.write_all(section)?;
            at = range.end;
        }
        file.write_all(&padding[..total - at])?;
        file.sync_all()
    }

    fn header(&self, ranges: &[Range<usize>; SECTIONS]) -> Vec<u8> {
        let mut header = Vec::with_capacity(IDENTITY + self.identity.len());
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&(self.identity.len() as u32).to_le_bytes());
        header.extend_from_slice(&counts(&self.shape));
        for range in ranges {
            header.extend_from_slice(&(range.start as u64).to_le_bytes());
            header.extend_from_slice(&(range.len() as u64).to_le_bytes());
        }
        header.extend_from_slice(&self.digest);
        let checksum = checksum(&header, self.identity.as_bytes());
        header.extend_from_slice(&checksum);
        header.extend_from_slice(self.identity.as_bytes());
        header
    }

    /// Opens the compiled circuit at `path` and checks all of it: version, identity, checksum,
    /// digest and the consistency of its tables. The file is mapped, and the tables stay in it.
    ///
    /// # Errors
    /// [`CompiledError::Io`], [`CompiledError::Format`] for a damaged file or another version,
    /// [`CompiledError::WrongCircuit`] when it holds another circuit than `identity`.
    pub fn open(path: impl AsRef<Path>, identity: &str) -> Result<Self, CompiledError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(io_error(path, "open"))?;
        let file = MappedFile::new(&file).map_err(io_error(path, "map"))?;
        let file = Arc::new(file);
        Opened { path, file }.decode(identity)
    }
}

/// Where a compiled circuit came from, see [`CompiledCircuit::open_or_record`].
#[derive(Debug)]
pub enum Origin {
    /// The file was good.
    Opened,
    /// The circuit was recorded anew.
    Recorded {
        /// Why the file did not serve.
        reason: CompiledError,
        /// Whether the new one was saved in its place.
        saved: Result<(), CompiledError>,
    },
}

impl CompiledCircuit {
    /// Opens the compiled circuit at `path`; records it from `circuit` and saves it there when
    /// the file is missing, damaged, of another version or of another circuit. A file that could
    /// not be saved costs only the time of the next recording, so it is no error here.
    ///
    /// # Errors
    /// As [`CompiledCircuit::record`].
    pub fn open_or_record<C: Circuit<Scalar>>(
        path: impl AsRef<Path>,
        identity: &str,
        circuit: C,
    ) -> Result<(Self, Origin), CompiledError> {
        let reason = match Self::open(&path, identity) {
            Ok(compiled) => return Ok((compiled, Origin::Opened)),
            Err(reason) => reason,
        };
        Self::record(identity, circuit)?.replacing(path, reason)
    }

    /// As [`CompiledCircuit::open_or_record`], but a file without C does not serve either, and
    /// what is recorded has it.
    ///
    /// # Errors
    /// As [`CompiledCircuit::record`].
    pub fn open_or_record_with_c<C: Circuit<Scalar>>(
        path: impl AsRef<Path>,
        identity: &str,
        circuit: C,
    ) -> Result<(Self, Origin), CompiledError> {
        let reason = match Self::open(&path, identity) {
            Ok(compiled) if compiled.has_c() => return Ok((compiled, Origin::Opened)),
            Ok(_) => CompiledError::WithoutC {
                identity: identity.to_owned(),
            },
            Err(reason) => reason,
        };
        Self::record_with_c(identity, circuit)?.replacing(path, reason)
    }

    /// Saves a new recording in the place of a file that did not serve.
    fn replacing(
        self,
        path: impl AsRef<Path>,
        reason: CompiledError,
    ) -> Result<(Self, Origin), CompiledError> {
        let saved = self.save(path);
        Ok((self, Origin::Recorded { reason, saved }))
    }
}

fn checksum(header: &[u8], identity: &[u8]) -> [u8; 32] {
    finish(hasher().update(header).update(identity))
}

fn io_error(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> CompiledError {
    let path = path.to_owned();
    move |source| CompiledError::Io {
        path,
        action,
        source,
    }
}

/// A file under inspection.
struct Opened<'p> {
    path: &'p Path,
    file: FileBytes,
}

impl Opened<'_> {
    fn bytes(&self) -> &[u8] {
        &self.file
    }

    fn wrong(
        &self,
        field: &'static str,
        offset: usize,
        expected: impl ToString,
        found: impl ToString,
    ) -> CompiledError {
        CompiledError::Format {
            path: self.path.to_owned(),
            field,
            offset: offset as u64,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    fn u32_at(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.bytes()[offset..offset + 4]);
        u32::from_le_bytes(bytes)
    }

    fn u64_at(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.bytes()[offset..offset + 8]);
        u64::from_le_bytes(bytes)
    }

    fn decode(self, identity: &str) -> Result<CompiledCircuit, CompiledError> {
        self.check_header(identity)?;
        let mut ranges = [const { 0..0 }; SECTIONS];
        for (k, range) in ranges.iter_mut().enumerate() {
            *range = self.section_range(k)?;
        }
        let shape = Shape {
            constraints: self.u64_at(16) as usize,
            inputs: self.u64_at(24) as usize,
            aux: self.u64_at(32) as usize,
            ..Shape::default()
        };
        let sections: [&[u8]; SECTIONS] = std::array::from_fn(|k| &self.bytes()[ranges[k].clone()]);
        let digest = digest_of(&counts(&shape), &sections);
        if digest != self.bytes()[DIGEST..CHECKSUM] {
            let found = hex(&self.bytes()[DIGEST..CHECKSUM]);
            return Err(self.wrong("digest", DIGEST, hex(&digest), found));
        }
        let coefficients = self.coefficients(&ranges[0])?;
        let tables = self.tables(&ranges)?;
        let (constraints, inputs) = (shape.constraints as u64, shape.inputs as u64);
        let aux = shape.aux as u64;
        validate(&tables, coefficients.len(), constraints, inputs, aux).map_err(|flaw| {
            let found = format!("entry {} that is not", flaw.entry);
            self.wrong(flaw.table, IDENTITY, "consistent entries", found)
        })?;
        let shape = Shape {
            nonzeros: super::nonzeros(&tables),
            ..shape
        };
        let identity = identity.to_owned();
        Ok(CompiledCircuit::assemble(
            identity,
            digest,
            shape,
            coefficients,
            tables,
        ))
    }

    fn check_kind(&self) -> Result<(), CompiledError> {
        self.check_length(HEAD_BYTES)?;
        let magic = &self.bytes()[..8];
        if *magic != *MAGIC {
            return Err(self.wrong("magic", 0, hex(MAGIC), hex(magic)));
        }
        match self.u32_at(8) {
            VERSION => Ok(()),
            version => Err(self.wrong("version", 8, VERSION, version)),
        }
    }

    fn check_length(&self, least: usize) -> Result<(), CompiledError> {
        let len = self.bytes().len();
        match len < least {
            true => Err(self.wrong("file length", len, format!("at least {least} bytes"), len)),
            false => Ok(()),
        }
    }

    fn check_header(&self, identity: &str) -> Result<(), CompiledError> {
        self.check_kind()?;
        self.check_length(IDENTITY)?;
        let bytes = self.bytes();
        for (k, limit) in TOO_MANY.into_iter().enumerate() {
            let (at, count) = (16 + 8 * k, self.u64_at(16 + 8 * k));
            if count >= limit {
                return Err(self.wrong("count", at, format!("less than {limit}"), count));
            }
        }
        let length = self.u32_at(12);
        let end = IDENTITY + length as usize;
        let (true, Some(found)) = (length <= LONGEST_IDENTITY, bytes.get(IDENTITY..end)) else {
            return Err(self.wrong("identity length", 12, "an identity inside", length));
        };
        let expected = checksum(&bytes[..CHECKSUM], found);
        if bytes[CHECKSUM..IDENTITY] != expected {
            let found = hex(&bytes[CHECKSUM..IDENTITY]);
            return Err(self.wrong("checksum", CHECKSUM, hex(&expected), found));
        }
        if found != identity.as_bytes() {
            return Err(CompiledError::WrongCircuit {
                path: self.path.to_owned(),
                expected: identity.to_owned(),
                found: String::from_utf8_lossy(found).into_owned(),
            });
        }
        Ok(())
    }

    fn section_range(&self, k: usize) -> Result<Range<usize>, CompiledError> {
        let at = SECTION_TABLE + 16 * k;
        let (start, len) = (self.u64_at(at), self.u64_at(at + 8));
        match start.checked_add(len) {
            Some(end) if end <= self.bytes().len() as u64 => Ok(start as usize..end as usize),
            _ => {
                let expected = format!("a section within {} bytes", self.bytes().len());
                Err(self.wrong("section", at, expected, format!("{start} + {len}")))
            }
        }
    }

    fn coefficients(&self, range: &Range<usize>) -> Result<Vec<Scalar>, CompiledError> {
        let mut coefficients = Vec::with_capacity(range.len() / 32);
        for (k, chunk) in self.bytes()[range.clone()].chunks(32).enumerate() {
            let scalar = chunk.try_into().ok().and_then(Scalar::from_repr_vartime);
            coefficients.push(scalar.ok_or_else(|| {
                let offset = range.start + 32 * k;
                self.wrong("coefficient", offset, "a field element", hex(chunk))
            })?);
        }
        Ok(coefficients)
    }

    fn tables(&self, ranges: &[Range<usize>; SECTIONS]) -> Result<Tables, CompiledError> {
        Ok(Tables {
            templates: self.section("templates", &ranges[1])?,
            row_ends: self.section("row ends", &ranges[2])?,
            a: Terms {
                variables: self.section("A variables", &ranges[3])?,
                coefficients: self.section("A coefficients", &ranges[4])?,
            },
            b: Terms {
                variables: self.section("B variables", &ranges[5])?,
                coefficients: self.section("B coefficients", &ranges[6])?,
            },
            instances: self.section("instances", &ranges[7])?,
            outside: self.section("outside references", &ranges[8])?,
            c_ends: self.section("C row ends", &ranges[9])?,
            c: Terms {
                variables: self.section("C variables", &ranges[10])?,
                coefficients: self.section("C coefficients", &ranges[11])?,
            },
        })
    }

    fn section<T: Pod>(
        &self,
        field: &'static str,
        range: &Range<usize>,
    ) -> Result<Section<T>, CompiledError> {
        Section::in_file(&self.file, range.clone()).ok_or_else(|| {
            let size = size_of::<T>();
            let expected = format!("an aligned array of {size}-byte entries");
            self.wrong(
                field,
                range.start,
                expected,
                format!("{} bytes", range.len()),
            )
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
