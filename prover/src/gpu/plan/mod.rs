//! What a proof keeps on the device, what it brings there again, and in how many pieces it works.
//!
//! [`Plan::new`] takes what a proof consists of ([`Shape`]) and how much memory it may take, and chooses:
//!
//! - which base sets stay on the device; the others are streamed from host memory for each proof through
//!   two buffers, while the sums work on the slice before;
//! - whether the quotient's three arrays lie on the device, or the transforms run in 2^k parts with the
//!   arrays in host memory ([`super::parts`]);
//! - in how many pieces the sums are made: h by points, the others by ranges of private variables, each
//!   of them by groups of windows.
//!
//! Every choice gives the same proof. What cannot be made to fit is an error that says how much would do.

mod bases;
mod display;
mod h;
mod variables;

pub use bases::{BaseSet, BaseSets};
pub use h::HPlan;
pub use variables::{Blocks, Chunk, GROUP, Position, VariablesPlan};

use cuzk_circuit::{Assignment, CompiledCircuit};

use super::evaluate::{CircuitTables, DeviceWitness};
use super::{parts, quotient};
use crate::{Counts, Params};

/// Bytes a second that reach the device from ordinary host memory.
const BUS: f64 = 40e9;
/// Additions a second in G1 and G2 and seconds of a transform's butterfly on this many multiprocessors.
const MEASURED_ON: f64 = 132.0;
const G1_RATE: f64 = 3.3e9;
const G2_RATE: f64 = 1.05e9;
const QUOTIENT_RATE: f64 = 13.5e9;
/// Bytes for what is allocated besides (roundings, scales).
const REST: u64 = 64 << 10;
/// Numbers of pieces that are considered.
const PIECES: [usize; 20] = [
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
];
/// Further numbers of pieces that are considered after the first that fits.
const FURTHER: usize = 4;

/// What a proof consists of.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Points of the parameters.
    pub counts: Counts,
    /// The private variables.
    pub blocks: Blocks,
    /// What the evaluation of A and B takes; none if they are given.
    pub evaluation: Option<Evaluation>,
    /// Base sets that have no copy in host memory, so that they cannot be streamed.
    pub device_only: BaseSets,
}

/// What the evaluation of A and B on the device takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The circuit's tables.
    pub tables: u64,
    /// Working memory besides the witness.
    pub scratch: u64,
}

impl Shape {
    /// Counts what a proof consists of. `circuit` is what A and B are evaluated from, if they are.
    pub fn new(
        params: &Params,
        assignment: &Assignment,
        circuit: Option<&CompiledCircuit>,
    ) -> Self {
        let (aux, counts) = (&assignment.witness.aux, params.counts());
        Shape {
            counts,
            blocks: Blocks::new(
                aux,
                circuit.map_or(&assignment.densities, |c| c.densities()),
            ),
            evaluation: circuit.map(|circuit| Evaluation {
                tables: CircuitTables::bytes_for(circuit),
                scratch: CircuitTables::scratch_bytes(aux.len(), counts.inputs),
            }),
            device_only: match params.generator() {
                Some(_) => BaseSets::ALL,
                None => BaseSets::NONE,
            },
        }
    }

    /// Bytes of the whole witness on the device.
    fn witness_bytes(&self) -> u64 {
        let total = self.blocks.total();
        DeviceWitness::bytes(total.variables, total.others)
    }
}

/// The device and what may be used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory for parameters, tables and working memory together.
    pub bytes: u64,
}

/// Leaves the planner less choice: for tests and measurements. What is `None` is the planner's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Base sets on the device.
    pub resident: Option<BaseSets>,
    /// Binary logarithm of the transforms' parts.
    pub rows: Option<u32>,
    /// Pieces of the sum over h (of each part, if there are parts).
    pub h_pieces: Option<usize>,
    /// Pieces of the private variables.
    pub variable_pieces: Option<usize>,
    /// Proofs that are worked on at once.
    pub lanes: Option<u32>,
}

/// How a proof is made within some bytes of device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What was allowed.
    pub room: Room,
    /// Base sets that stay on the device.
    pub resident: BaseSets,
    /// Their size in bytes.
    pub resident_bytes: u64,
    /// The quotient and the sum over h.
    pub h: HPlan,
    /// The sums over the private variables.
    pub variables: VariablesPlan,
    /// The tables that A and B are evaluated from, in bytes; 0 if they are given or evaluated on the host.
    pub circuit_bytes: u64,
    /// Whether the witness stays on the device from the evaluation to the end.
    pub keeps_witness: bool,
    /// Tables of one lane's transforms, in bytes.
    pub table_bytes: u64,
    /// Working memory of one lane, in bytes.
    pub arena_bytes: u64,
    /// Proofs that are worked on at once, each with tables and working memory of its own.
    pub lanes: u32,
    /// Bytes that are brought to the device for each proof, the witness not counted.
    pub streamed_bytes: u64,
    /// Estimated time of a proof in seconds, without the host's part.
    pub seconds: f64,
    counts: Counts,
}

/// The proof cannot be made within the allowed device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes of device memory needed at least, {limit} allowed")]
pub struct PlanError {
    /// The least that would do; 0 if no amount would.
    pub needed: u64,
    /// What was allowed.
    pub limit: u64,
}

impl Plan {
    /// The fastest plan within `room`.
    ///
    /// # Errors
    /// When none fits.
    pub fn new(shape: &Shape, room: Room) -> Result<Self, PlanError> {
        Self::with_choices(shape, room, Choices::default())
    }

    /// [`Plan::new`] with some choices made.
    ///
    /// # Errors
    /// When nothing fits with these choices.
    pub fn with_choices(shape: &Shape, room: Room, choices: Choices) -> Result<Self, PlanError> {
        Self::search(shape, room, choices).ok_or_else(|| PlanError {
            needed: least(shape, room, choices),
            limit: room.bytes,
        })
    }

    /// All device memory that the plan takes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.shared_bytes() + u64::from(self.lanes) * self.lane_bytes()
    }

    /// Device memory of what all lanes use, in bytes.
    pub fn shared_bytes(&self) -> u64 {
        self.resident_bytes + self.circuit_bytes
    }

    /// Device memory of one lane, in bytes.
    pub fn lane_bytes(&self) -> u64 {
        self.table_bytes + self.arena_bytes + REST
    }

    /// Whether everything stays on the device and nothing is cut to pieces.
    pub fn is_undivided(&self) -> bool {
        let whole = (self.h.rows, self.h.pieces, self.variables.chunks) == (0, 1, 1);
        whole && self.resident == BaseSets::ALL
    }

    /// The most working memory that one lane may hold, in bytes.
    pub fn most_arena_bytes(&self) -> u64 {
        let lane = (self.room.bytes - self.shared_bytes()) / u64::from(self.lanes);
        lane - self.table_bytes - REST
    }

    fn search(shape: &Shape, room: Room, choices: Choices) -> Option<Self> {
        let all = choices.resident.unwrap_or(BaseSets::ALL);
        let one = Self::with_resident(shape, room, choices, all, 1);
        let two = || {
            let comfortable = Choices {
                rows: choices.rows.or(Some(0)),
                h_pieces: choices.h_pieces.or(Some(1)),
                variable_pieces: choices.variable_pieces.or(Some(1)),
                ..choices
            };
            Self::with_resident(shape, room, comfortable, all, 2)
        };
        let best = match (one, choices.lanes) {
            // A second proof at once is worth a little of each one's speed, not more.
            (Some(one), None) => match two() {
                Some(two) if two.seconds <= 1.05 * one.seconds => return Some(two),
                _ => Some(one),
            },
            (one, Some(2)) => two().or(one),
            (one, _) => one,
        };
        let fits = best.as_ref().is_some_and(|plan| plan.h.rows == 0);
        if fits || choices.resident.is_some() || shape.device_only == BaseSets::ALL {
            return best;
        }
        let others = BaseSets::subsets()
            .filter(|sets| sets.contains_all(shape.device_only) && *sets != all)
            .filter_map(|sets| Self::with_resident(shape, room, choices, sets, 1));
        best.into_iter()
            .chain(others)
            .min_by(|x, y| x.seconds.total_cmp(&y.seconds))
    }

    /// The fastest plan with these base sets on the device.
    fn with_resident(
        shape: &Shape,
        room: Room,
        choices: Choices,
        resident: BaseSets,
        lanes: u32,
    ) -> Option<Self> {
        let resident_bytes = resident.bytes(&shape.counts);
        let left = |rows: u32| {
            let shared = resident_bytes + circuit_bytes(shape, rows);
            Some(room.bytes.checked_sub(shared)? / u64::from(lanes))
        };
        let log2 = shape.counts.domain_log2();
        let tables = |rows: u32| match rows {
            0 => quotient::table_bytes(log2),
            rows => parts::table_bytes(log2, rows),
        };
        let rows = match choices.rows {
            Some(rows) => rows..=rows,
            None => 0..=log2.saturating_sub(1).min(h::MOST_ROWS),
        };
        let mut best: Option<Self> = None;
        for rows in rows {
            let arena = left(rows).and_then(|left| left.checked_sub(tables(rows) + REST));
            let Some(arena) = arena else {
                continue;
            };
            let room_for_arena = Room {
                bytes: arena,
                ..room
            };
            let h = HPlan::new(shape, room_for_arena, resident, rows, choices.h_pieces);
            let Some(h) = h else {
                continue;
            };
            let variables =
                VariablesPlan::new(shape, room_for_arena, resident, choices.variable_pieces)?;
            let kept = shape.witness_bytes();
            let keeps_witness = variables.chunks == 1 && kept + h.arena_bytes <= arena;
            let h_bytes = h.arena_bytes + if keeps_witness { kept } else { 0 };
            let plan = Plan {
                room,
                circuit_bytes: circuit_bytes(shape, rows),
                keeps_witness,
                resident,
                resident_bytes,
                table_bytes: tables(rows),
                arena_bytes: h_bytes.max(variables.arena_bytes),
                lanes,
                streamed_bytes: h.streamed_bytes + variables.streamed_bytes,
                seconds: h.seconds + variables.seconds,
                h,
                variables,
                counts: shape.counts,
            };
            if best.as_ref().is_none_or(|best| plan.seconds < best.seconds) {
                best = Some(plan);
            }
            if rows == 0 {
                // Parts are for what does not fit whole.
                break;
            }
        }
        best
    }
}

/// Tables for the evaluation of A and B: transforms in parts take them from the host.
fn circuit_bytes(shape: &Shape, rows: u32) -> u64 {
    match (rows, shape.evaluation) {
        (0, Some(evaluation)) => evaluation.tables,
        _ => 0,
    }
}

/// The least memory with which a plan is found, to a percent; 0 if there is none.
fn least(shape: &Shape, room: Room, choices: Choices) -> u64 {
    let fits = |bytes: u64| Plan::search(shape, Room { bytes, ..room }, choices).is_some();
    let mut enough = room.bytes.max(1 << 20);
    while !fits(enough) {
        if enough > 1 << 50 {
            return 0;
        }
        enough *= 2;
    }
    let mut short = room.bytes;
    while enough - short > enough / 100 {
        let middle = short + (enough - short) / 2;
        if fits(middle) {
            enough = middle;
        } else {
            short = middle;
        }
    }
    enough
}

/// A little more than the planned bytes of a sum: shorter pieces are cut into other tiles.
fn with_slack(bytes: u64) -> u64 {
    (bytes + bytes / 64 + (16 << 10)).next_multiple_of(cuzk_kernels::runtime::ALIGNMENT)
}

/// Tries numbers of pieces from few to many; the fastest of the first that fits and some further ones.
fn best_of_pieces<T>(
    wanted: Option<usize>,
    most: usize,
    seconds: impl Fn(&T) -> f64,
    plan: impl Fn(usize) -> Option<T>,
) -> Option<T> {
    if let Some(pieces) = wanted {
        return plan(pieces);
    }
    let pieces = PIECES
        .into_iter()
        .take_while(|&pieces| pieces <= most.max(1));
    pieces
        .filter_map(plan)
        .take(1 + FURTHER)
        .min_by(|x, y| seconds(x).total_cmp(&seconds(y)))
}

/// How much faster than this device the measured one is.
fn slowdown(room: Room) -> f64 {
    MEASURED_ON / f64::from(room.multiprocessors.max(1))
}

#[cfg(test)]
mod tests;
