//! The plan of the quotient and of the sum over its coefficients.

use cuzk_field::{Fr, G1, G1Affine};
use cuzk_kernels::runtime::Arena;

use super::{
    BUS, BaseSet, BaseSets, G1_RATE, QUOTIENT_RATE, Room, Shape, best_of_pieces, slowdown,
    with_slack,
};
use crate::gpu::{msm, parts::strip_bytes};

/// Binary logarithm of the most parts of a transform.
pub const MOST_ROWS: u32 = 8;
/// Elements that travel over the bus for each element of the domain when transforms run in parts.
const PARTED_TRAFFIC: f64 = 16.0;

/// How the quotient and the sum over h are made.
#[derive(Clone, Debug, PartialEq)]
pub struct HPlan {
    /// Binary logarithm of the transforms' parts; 0: the three arrays lie on the device.
    pub rows: u32,
    /// Width of the strips that transforms in parts work on.
    pub columns: usize,
    /// Most points of a sum.
    pub piece: usize,
    /// Number of sums.
    pub pieces: usize,
    /// Window width.
    pub bits: u32,
    /// Working memory in bytes.
    pub arena_bytes: u64,
    /// Points and values that are brought to the device, in bytes.
    pub streamed_bytes: u64,
    /// Estimated time.
    pub seconds: f64,
}

impl HPlan {
    /// The fastest plan with transforms in 2^`rows` parts, if one fits.
    pub(super) fn new(
        shape: &Shape,
        room: Room,
        resident: BaseSets,
        rows: u32,
        pieces: Option<usize>,
    ) -> Option<Self> {
        let part = (shape.counts.h + 1) >> rows;
        best_of_pieces(
            pieces,
            part,
            |plan: &Self| plan.seconds,
            |pieces| Self::in_pieces(shape, room, resident, rows, pieces),
        )
    }

    fn in_pieces(
        shape: &Shape,
        room: Room,
        resident: BaseSets,
        rows: u32,
        pieces: usize,
    ) -> Option<Self> {
        let n = shape.counts.h + 1;
        let log2 = shape.counts.domain_log2();
        let streamed = !resident.contains(BaseSet::H);
        let part = n >> rows;
        let points = if rows == 0 { part - 1 } else { part };
        let piece = points.div_ceil(pieces);
        let stage = if streamed {
            2 * Arena::bytes::<G1Affine>(piece)
        } else {
            0
        };
        let map = match rows {
            0 => 0,
            _ if streamed => 0,
            _ => Arena::bytes::<u32>(piece),
        };
        let array = Arena::bytes::<Fr>(part);
        let left = room.bytes.checked_sub(stage)?;
        let memory = left.checked_sub(array + map)?;
        let plan = msm::Plan::new::<G1>(piece, room.multiprocessors, memory).ok()?;
        let sum = array + map + with_slack(plan.bytes::<G1>());
        let (columns, quotient) = match rows {
            0 => {
                // The witness is evaluated before the third array is taken.
                let evaluation = shape.evaluation;
                let evaluation = evaluation.map_or(0, |e| shape.witness_bytes() + e.scratch);
                (n, 2 * array + array.max(evaluation))
            }
            rows => {
                let columns = widest(rows, part, left)?;
                (columns, strip_bytes(rows, columns).max(3 * array))
            }
        };
        let arena_bytes = stage + quotient.max(sum);
        if arena_bytes > room.bytes {
            return None;
        }
        let sums = pieces << rows;
        let butterflies = 3.0 * n as f64 * f64::from(log2);
        let traffic = if rows == 0 {
            0.0
        } else {
            32.0 * PARTED_TRAFFIC * n as f64
        };
        let quotient = butterflies / QUOTIENT_RATE * slowdown(room) + traffic / BUS;
        let adding = sums as f64 * plan.additions() / G1_RATE * slowdown(room);
        let bases = if streamed {
            BaseSet::H.bytes(&shape.counts)
        } else {
            0
        };
        Some(HPlan {
            rows,
            columns,
            piece,
            pieces: sums,
            bits: plan.bits,
            arena_bytes,
            streamed_bytes: bases + (traffic * 9.0 / PARTED_TRAFFIC) as u64,
            seconds: quotient + adding.max(bases as f64 / BUS),
        })
    }
}

/// The widest strips that fit, a power of two.
fn widest(rows: u32, part: usize, bytes: u64) -> Option<usize> {
    let mut columns = part;
    while strip_bytes(rows, columns) > bytes {
        columns /= 2;
        if columns == 0 {
            return None;
        }
    }
    Some(columns)
}
