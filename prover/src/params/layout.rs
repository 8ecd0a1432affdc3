//! Where everything stands in a `.params` file, found from its counts before any point is read.
//!
//! All integers and coordinates are big-endian. A G1 point takes 96 bytes, a G2 point 192.
//!
//! | part | content |
//! | --- | --- |
//! | key | α in G1, β in G1, β in G2, γ in G2, δ in G1, δ in G2 |
//! | ic | u32 count, G1 points: one for each public input, the constant one included |
//! | h | u32 count, G1 points: domain size − 1 |
//! | l | u32 count, G1 points: one for each auxiliary variable |
//! | a | u32 count, G1 points: all inputs, then the auxiliary variables that occur in A |
//! | b_g1 | u32 count, G1 points: the inputs, then the auxiliary variables, that occur in B |
//! | b_g2 | u32 count, G2 points for the same variables |
//!
//! A `.vk` file is the exact prefix that ends with ic.

use blstrs::{G1Affine, G2Affine};

use super::{ParamsError, point::Encoded};

/// Bytes of the six fixed points of the key.
pub(crate) const FIXED_KEY_BYTES: usize = 3 * G1 + 3 * G2;
/// Bytes of a G1 point.
const G1: usize = <G1Affine as Encoded>::BYTES;
/// Bytes of a G2 point.
const G2: usize = <G2Affine as Encoded>::BYTES;
/// Bytes of a count.
const COUNT: usize = 4;
/// The scalar field has roots of unity up to this power of two.
const MAX_DOMAIN_LOG2: u32 = 32;

/// A run of points of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The offset of the first point; the count stands in the four bytes before.
    pub offset: usize,
    /// The number of points.
    pub count: usize,
    /// Bytes of one point.
    stride: usize,
}

impl Section {
    /// The offset of the first byte after the section.
    pub(crate) fn end(&self) -> usize {
        self.offset + self.count * self.stride
    }

    /// The bytes of the section in `file`; empty if they are not there.
    pub(crate) fn of<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        file.get(self.offset..self.end()).unwrap_or_default()
    }
}

/// The places of all sections of a parameter file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub ic: Section,
    pub h: Section,
    pub l: Section,
    pub a: Section,
    pub b_g1: Section,
    pub b_g2: Section,
}

/// Finds the ic section of a key, whether or not bytes follow it.
pub(crate) fn key(file: &str, bytes: &[u8]) -> Result<Section, ParamsError> {
    if bytes.is_empty() {
        return Err(ParamsError::Empty {
            file: file.to_owned(),
            what: "a Groth16 key",
            expected: (FIXED_KEY_BYTES + COUNT + G1) as u64,
        });
    }
    if bytes.len() < FIXED_KEY_BYTES {
        return Err(ParamsError::Truncated {
            file: file.to_owned(),
            what: "the fixed part of the key",
            offset: 0,
            expected: FIXED_KEY_BYTES as u64,
            found: bytes.len() as u64,
        });
    }
    let ic = section(file, bytes, "ic", FIXED_KEY_BYTES, G1)?;
    require(file, "ic", ic, ic.count >= 1, || {
        "at least 1, for the constant one".to_owned()
    })?;
    Ok(ic)
}

/// Finds all sections of a parameter file and checks that their counts fit together and add up
/// to the size of the file.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Layout, ParamsError> {
    let ic = key(file, bytes)?;
    if ic.end() == bytes.len() {
        return Err(ParamsError::WrongKind {
            file: file.to_owned(),
            expected: "a parameter file",
            found: "a verifying key alone",
        });
    }
    let h = section(file, bytes, "h", ic.end(), G1)?;
    let l = section(file, bytes, "l", h.end(), G1)?;
    let a = section(file, bytes, "a", l.end(), G1)?;
    let b_g1 = section(file, bytes, "b_g1", a.end(), G1)?;
    let b_g2 = section(file, bytes, "b_g2", b_g1.end(), G2)?;
    if b_g2.end() != bytes.len() {
        return Err(ParamsError::Oversized {
            file: file.to_owned(),
            expected: b_g2.end() as u64,
            found: bytes.len() as u64,
        });
    }
    let layout = Layout {
        ic,
        h,
        l,
        a,
        b_g1,
        b_g2,
    };
    layout.check(file)?;
    Ok(layout)
}

impl Layout {
    /// The layout of a file with these counts.
    pub(crate) fn with_counts(
        ic: usize,
        h: usize,
        l: usize,
        a: usize,
        b: usize,
        b_g2: usize,
    ) -> Self {
        let after = |previous: Section, count, stride| Section {
            offset: previous.end() + COUNT,
            count,
            stride,
        };
        let ic = Section {
            offset: FIXED_KEY_BYTES + COUNT,
            count: ic,
            stride: G1,
        };
        let h = after(ic, h, G1);
        let l = after(h, l, G1);
        let a = after(l, a, G1);
        let b_g1 = after(a, b, G1);
        let b_g2 = after(b_g1, b_g2, G2);
        Self {
            ic,
            h,
            l,
            a,
            b_g1,
            b_g2,
        }
    }

    /// The places of the first points of a, b_g1 and b_g2, at most `inputs` of each; no others.
    pub(crate) fn first(&self, inputs: usize) -> Self {
        let first = |section: Section, count: usize| Section {
            count: section.count.min(count),
            ..section
        };
        Self {
            ic: self.ic,
            h: first(self.h, 0),
            l: first(self.l, 0),
            a: first(self.a, inputs),
            b_g1: first(self.b_g1, inputs),
            b_g2: first(self.b_g2, inputs),
        }
    }

    /// Checks every relation between the counts that holds for all circuits.
    pub(crate) fn check(&self, file: &str) -> Result<(), ParamsError> {
        let domain = self.h.count as u64 + 1;
        require(
            file,
            "h",
            self.h,
            domain.is_power_of_two() && domain <= 1 << MAX_DOMAIN_LOG2,
            || "a power of two less one".to_owned(),
        )?;
        // One row is appended for each input, so the domain holds at least that many rows.
        require(file, "ic", self.ic, self.ic.count as u64 <= domain, || {
            format!("at most the domain size {domain}")
        })?;
        let variables = self.ic.count + self.l.count;
        require(
            file,
            "a",
            self.a,
            (self.ic.count..=variables).contains(&self.a.count),
            || format!("between {} inputs and {variables} variables", self.ic.count),
        )?;
        require(
            file,
            "b_g1",
            self.b_g1,
            self.b_g1.count <= variables,
            || format!("at most {variables} variables"),
        )?;
        require(
            file,
            "b_g2",
            self.b_g2,
            self.b_g2.count == self.b_g1.count,
            || format!("{} as in b_g1", self.b_g1.count),
        )
    }
}

/// Reads the count at `start` and checks that the file holds that many points.
fn section(
    file: &str,
    bytes: &[u8],
    what: &'static str,
    start: usize,
    stride: usize,
) -> Result<Section, ParamsError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let truncated = |offset: usize, expected: u64, found: usize| ParamsError::Truncated {
        file: file.to_owned(),
        what,
        offset: offset as u64,
        expected,
        found: found as u64,
    };
    let Some((count, points)) = rest.split_first_chunk::<COUNT>() else {
        return Err(truncated(start, COUNT as u64, rest.len()));
    };
    let count = u32::from_be_bytes(*count);
    // Both factors fit in 32 bits, so that the product is exact on every machine.
    let size = u64::from(count) * stride as u64;
    if (points.len() as u64) < size {
        return Err(truncated(start + COUNT, size, points.len()));
    }
    Ok(Section {
        offset: start + COUNT,
        count: count as usize,
        stride,
    })
}

/// Turns a broken rule about a count into an error.
fn require(
    file: &str,
    what: &'static str,
    section: Section,
    holds: bool,
    expected: impl FnOnce() -> String,
) -> Result<(), ParamsError> {
    if holds {
        return Ok(());
    }
    Err(ParamsError::Count {
        file: file.to_owned(),
        what,
        offset: (section.offset - COUNT) as u64,
        expected: expected(),
        found: section.count as u64,
    })
}
