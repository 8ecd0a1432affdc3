//! The uncompressed encoding of curve points: decoding one by one and in parallel.

use blstrs::{G1Affine, G2Affine};
use rayon::prelude::*;

use super::{ParamsError, PointFault};

/// The flag bits of the first byte: compressed, infinity, sign. All are zero in our files.
const FLAGS: u8 = 0xe0;
/// The infinity flag.
const INFINITY: u8 = 0x40;
/// How many points one parallel task decodes or checks.
pub(super) const BLOCK: usize = 4096;

/// A curve group with a fixed-size uncompressed encoding (big-endian x, then y; an element of Fp2
/// is written with c1 before c0).
pub(crate) trait Encoded: Copy + Default + Send + Sync {
    /// Bytes of an uncompressed point.
    const BYTES: usize;
    /// The group's name for messages.
    const GROUP: &'static str;

    /// Decodes the coordinates and checks that they are a finite point of the curve.
    fn decode(bytes: &[u8]) -> Result<Self, PointFault>;
    /// Appends the encoding of the point.
    fn encode(&self, out: &mut Vec<u8>);
    /// Whether the point is in the subgroup of prime order.
    fn in_subgroup(&self) -> bool;
}

macro_rules! impl_encoded {
    ($point:ty, $bytes:literal, $group:literal) => {
        impl Encoded for $point {
            const BYTES: usize = $bytes;
            const GROUP: &'static str = $group;

            fn decode(bytes: &[u8]) -> Result<Self, PointFault> {
                let bytes: &[u8; $bytes] = bytes.try_into().map_err(|_| PointFault::OffCurve)?;
                match bytes[0] & FLAGS {
                    0 => {}
                    INFINITY => return Err(PointFault::Identity),
                    _ => return Err(PointFault::Flags(bytes[0])),
                }
                // With the flags clear this reads both coordinates, refuses those not below the
                // modulus, and checks the curve equation; only the subgroup is left unchecked.
                Option::from(<$point>::from_uncompressed_unchecked(bytes))
                    .ok_or(PointFault::OffCurve)
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_uncompressed());
            }

            fn in_subgroup(&self) -> bool {
                self.is_torsion_free().into()
            }
        }
    };
}

impl_encoded!(G1Affine, 96, "a point of G1");
impl_encoded!(G2Affine, 192, "a point of G2");

/// Where a run of points stands, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The file.
    pub file: &'a str,
    /// The section.
    pub what: &'static str,
    /// The offset of the section's first point.
    pub offset: u64,
}

impl Place<'_> {
    /// The error for the point at `index`.
    pub(crate) fn fault<P: Encoded>(&self, index: usize, found: PointFault) -> ParamsError {
        ParamsError::Point {
            file: self.file.to_owned(),
            what: self.what,
            index,
            offset: self.offset + (index * P::BYTES) as u64,
            expected: P::GROUP,
            found,
        }
    }
}

/// Decodes `bytes` (a whole number of points) in parallel. The first bad point is named.
pub(crate) fn decode_all<P: Encoded>(
    bytes: &[u8],
    place: Place<'_>,
) -> Result<Vec<P>, ParamsError> {
    let mut points = vec![P::default(); bytes.len() / P::BYTES];
    let fault = points
        .par_chunks_mut(BLOCK)
        .zip(bytes.par_chunks(BLOCK * P::BYTES))
        .enumerate()
        .filter_map(|(block, (points, bytes))| {
            decode_block(points, bytes).map(|(i, fault)| (block * BLOCK + i, fault))
        })
        .min_by_key(|(index, _)| *index);
    match fault {
        None => Ok(points),
        Some((index, fault)) => Err(place.fault::<P>(index, fault)),
    }
}

/// Decodes one block; returns the position of the first bad point, if any.
fn decode_block<P: Encoded>(points: &mut [P], bytes: &[u8]) -> Option<(usize, PointFault)> {
    for (i, (point, bytes)) in points
        .iter_mut()
        .zip(bytes.chunks_exact(P::BYTES))
        .enumerate()
    {
        match P::decode(bytes) {
            Ok(decoded) => *point = decoded,
            Err(fault) => return Some((i, fault)),
        }
    }
    None
}

/// What is wrong with the point at `index` of a section's bytes, if anything.
pub(crate) fn fault_at<P: Encoded>(
    section: &[u8],
    index: usize,
    place: Place<'_>,
) -> Option<ParamsError> {
    let bytes = section.get(index * P::BYTES..(index + 1) * P::BYTES)?;
    let fault = match P::decode(bytes) {
        Err(fault) => fault,
        Ok(point) if point.in_subgroup() => return None,
        Ok(_) => PointFault::OutsideSubgroup,
    };
    Some(place.fault::<P>(index, fault))
}

/// Decodes one point and checks its subgroup.
pub(crate) fn decode_checked<P: Encoded>(bytes: &[u8], place: Place<'_>) -> Result<P, ParamsError> {
    let point = P::decode(bytes).map_err(|fault| place.fault::<P>(0, fault))?;
    if point.in_subgroup() {
        Ok(point)
    } else {
        Err(place.fault::<P>(0, PointFault::OutsideSubgroup))
    }
}
