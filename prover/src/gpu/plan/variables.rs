//! The plan of the sums over the private variables.

use cuzk_circuit::{Bitmap, CompactScalars, Densities};
use cuzk_field::{Fr, G1, G2};
use cuzk_kernels::runtime::Arena;
use rayon::prelude::*;

use super::{
    BUS, BaseSet, BaseSets, G1_RATE, G2_RATE, Room, Shape, best_of_pieces, slowdown, with_slack,
};
use crate::gpu::msm::{self, Selection, ones_per_sum, sum_of_points_bytes};

/// Blocks that private variables are divided into at most.
const MOST_BLOCKS: usize = 4096;
/// Variables whose bits the selection reads at once: blocks are multiples of it.
pub const GROUP: usize = 128;

/// How many of the private variables before some point there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// All of them.
    pub variables: usize,
    /// Neither 0 nor 1.
    pub others: usize,
    /// Of the value 1.
    pub ones: usize,
    /// With a base in a.
    pub a: usize,
    /// With a base in b.
    pub b: usize,
}

/// The private variables, counted block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Counts before each block, and all at the end.
    before: Vec<Position>,
}

/// Neighbouring blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Counts before the first variable.
    pub start: Position,
    /// Counts after the last variable.
    pub end: Position,
}

impl Chunk {
    /// How many there are of each kind.
    pub fn counts(&self) -> Position {
        let (from, to) = (self.start, self.end);
        Position {
            variables: to.variables - from.variables,
            others: to.others - from.others,
            ones: to.ones - from.ones,
            a: to.a - from.a,
            b: to.b - from.b,
        }
    }
}

impl Blocks {
    /// Counts the variables of a witness.
    pub fn new(aux: &CompactScalars, densities: &Densities) -> Self {
        let size = block_size(aux.len());
        let of = |bitmap: &Bitmap, words: std::ops::Range<usize>| -> usize {
            let words = bitmap.words().get(words).unwrap_or_default();
            words.iter().map(|word| word.count_ones() as usize).sum()
        };
        let len = aux.len();
        let counts: Vec<Position> = (0..len.div_ceil(size))
            .into_par_iter()
            .map(|block| {
                let end = ((block + 1) * size).min(len);
                let words = block * size / 64..end.div_ceil(64);
                Position {
                    variables: end - block * size,
                    others: of(aux.is_other(), words.clone()),
                    ones: of(aux.bits(), words.clone()),
                    a: of(&densities.a_aux, words.clone()),
                    b: of(&densities.b_aux, words),
                }
            })
            .collect();
        Self::accumulate(counts)
    }

    /// Variables of each kind, evenly mixed: for plans before there is a witness.
    pub fn even(total: Position) -> Self {
        let size = block_size(total.variables);
        let blocks = total.variables.div_ceil(size);
        let share = |count: usize, end: usize| {
            (count as u128 * end as u128 / total.variables.max(1) as u128) as usize
        };
        let before = (0..=blocks).map(|block| {
            let end = (block * size).min(total.variables);
            Position {
                variables: end,
                others: share(total.others, end),
                ones: share(total.ones, end),
                a: share(total.a, end),
                b: share(total.b, end),
            }
        });
        Blocks {
            before: before.collect(),
        }
    }

    fn accumulate(counts: Vec<Position>) -> Self {
        let mut before = vec![Position::default()];
        let mut sum = Position::default();
        for block in counts {
            sum.variables += block.variables;
            sum.others += block.others;
            sum.ones += block.ones;
            sum.a += block.a;
            sum.b += block.b;
            before.push(sum);
        }
        Blocks { before }
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        self.before.len() - 1
    }

    /// All variables.
    pub fn total(&self) -> Position {
        self.before.last().copied().unwrap_or_default()
    }

    /// Chunks of `blocks` blocks; at least one chunk, which may be empty.
    pub fn chunks(&self, blocks: usize) -> impl Iterator<Item = Chunk> + '_ {
        let count = self.count();
        (0..count.max(1))
            .step_by(blocks.max(1))
            .map(move |first| Chunk {
                start: self.before[first],
                end: self.before[(first + blocks).min(count)],
            })
    }

    /// The most that a chunk of `blocks` blocks has of each kind.
    fn most(&self, blocks: usize) -> Position {
        self.chunks(blocks)
            .fold(Position::default(), |most, chunk| {
                let counts = chunk.counts();
                Position {
                    variables: most.variables.max(counts.variables),
                    others: most.others.max(counts.others),
                    ones: most.ones.max(counts.ones),
                    a: most.a.max(counts.a),
                    b: most.b.max(counts.b),
                }
            })
    }
}

fn block_size(variables: usize) -> usize {
    variables
        .div_ceil(MOST_BLOCKS)
        .next_multiple_of(GROUP)
        .max(GROUP)
}

/// How the sums over the private variables are made.
#[derive(Clone, Debug, PartialEq)]
pub struct VariablesPlan {
    /// Blocks of a chunk.
    pub blocks: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Most variables of a chunk.
    pub piece: usize,
    /// Window width for the fullest chunk.
    pub bits: u32,
    /// Bytes of each of the two buffers for streamed points; 0 if there are none.
    pub stage_bytes: u64,
    /// Working memory in bytes.
    pub arena_bytes: u64,
    /// Points that are brought to the device, in bytes.
    pub streamed_bytes: u64,
    /// Estimated time.
    pub seconds: f64,
}

impl VariablesPlan {
    /// The fastest plan, if one fits.
    pub(super) fn new(
        shape: &Shape,
        room: Room,
        resident: BaseSets,
        pieces: Option<usize>,
    ) -> Option<Self> {
        let blocks = shape.blocks.count();
        best_of_pieces(
            pieces,
            blocks,
            |plan: &Self| plan.seconds,
            |pieces| Self::in_chunks(shape, room, resident, blocks.div_ceil(pieces).max(1)),
        )
    }

    fn in_chunks(shape: &Shape, room: Room, resident: BaseSets, blocks: usize) -> Option<Self> {
        let most = shape.blocks.most(blocks);
        let chunks = shape.blocks.count().div_ceil(blocks).max(1);
        let stage_bytes = stage_bytes(most, resident);
        let fixed = 2 * stage_bytes + kept_bytes(most);
        let memory = room.bytes.checked_sub(fixed)?;
        let sms = room.multiprocessors;
        let plan = msm::Plan::new::<G2>(most.others, sms, memory).ok()?;
        let adding = adding_bytes(most, sms, memory.checked_sub(plan.kept_bytes())?)?;
        let sums = (plan.kept_bytes() + adding)
            .max(plan.bytes::<G1>())
            .max(plan.bytes::<G2>());
        let arena_bytes = fixed + with_slack(sums);
        if arena_bytes > room.bytes {
            return None;
        }
        let streamed_bytes: u64 = resident
            .complement()
            .iter()
            .filter(|&set| set != BaseSet::H)
            .map(|set| set.bytes(&shape.counts))
            .sum();
        let first = streamed_bytes as f64 / chunks as f64 / 4.0;
        let adding = seconds(shape, &plan, chunks) * slowdown(room);
        Some(VariablesPlan {
            blocks,
            chunks,
            piece: most.variables,
            bits: plan.bits,
            stage_bytes,
            arena_bytes,
            streamed_bytes,
            seconds: adding.max(streamed_bytes as f64 / BUS) + first / BUS,
        })
    }
}

/// Bytes of the largest streamed slice of a chunk.
fn stage_bytes(most: Position, resident: BaseSets) -> u64 {
    let points = |set: BaseSet| match set {
        BaseSet::H => 0,
        BaseSet::L => most.variables,
        BaseSet::A => most.a,
        BaseSet::BG1 | BaseSet::BG2 => most.b,
    };
    let bytes = |set: BaseSet| set.point_bytes() * points(set) as u64;
    let largest = resident.complement().iter().map(bytes).max().unwrap_or(0);
    largest.next_multiple_of(cuzk_kernels::runtime::ALIGNMENT)
}

/// A chunk's bitmaps, values and selection.
fn kept_bytes(most: Position) -> u64 {
    3 * Arena::bytes::<[u32; 4]>(most.variables.div_ceil(GROUP))
        + Arena::bytes::<Fr>(most.others)
        + Selection::bytes(most.variables as u32, most.others as u32)
}

/// Memory for adding up the ones, as many at a time as fit.
fn adding_bytes(most: Position, sms: u32, memory: u64) -> Option<u64> {
    if most.ones == 0 {
        return Some(0);
    }
    let ones = most.ones as u32;
    let in_g1 = ones_per_sum::<G1>(ones, sms, memory)?;
    let in_g2 = ones_per_sum::<G2>(ones, sms, memory)?;
    Some(sum_of_points_bytes::<G1>(in_g1, sms).max(sum_of_points_bytes::<G2>(in_g2, sms)))
}

/// Time of all chunks on the measured device.
fn seconds(shape: &Shape, plan: &msm::Plan, chunks: usize) -> f64 {
    let total = shape.blocks.total();
    let share = |count: usize| count as f64 / total.variables.max(1) as f64;
    let (a, b) = (share(total.a), share(total.b));
    let additions = chunks as f64 * plan.additions() + total.ones as f64;
    additions * ((1.0 + a + b) / G1_RATE + b / G2_RATE)
}
