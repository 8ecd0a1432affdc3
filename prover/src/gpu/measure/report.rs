//! What is measured in one call, and the table of it.

use std::sync::Arc;

use cuzk_field::{G1, G2};
use cuzk_kernels::ntt::TILES_LOG2;
use cuzk_kernels::runtime::Runtime;
use serde_json::{Value, json};

use super::{
    Kind, Limits, MeasureError, Measured, compact_sum, field, multiples, quotient, sum, transform,
};
use crate::gpu::ntt::Layout;

/// Operations of one thread in the loops of field arithmetic.
const ITERATIONS: u32 = 2000;
/// From this size on a repetition takes long enough that few do.
const LARGE_LOG2: u32 = 24;

/// Which rows to measure; sizes are binary logarithms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The field arithmetic.
    pub field: bool,
    /// Transforms of each kind.
    pub transforms: Vec<u32>,
    /// The layouts that [`Layout::of`] does not choose, too.
    pub layouts: bool,
    /// Quotients.
    pub quotients: Vec<u32>,
    /// Sums over random scalars in G1.
    pub g1: Vec<u32>,
    /// Sums over random scalars in G2.
    pub g2: Vec<u32>,
    /// Sums in G1 over a compact witness.
    pub compact: Vec<u32>,
    /// Repetitions of a row; large ones are repeated less often.
    pub repetitions: usize,
}

/// Measures the selected rows; `each` sees every row as soon as it is there.
///
/// # Errors
/// At the first row that fails or is wrong.
pub fn measure(
    runtime: &Arc<dyn Runtime>,
    selection: &Selection,
    mut each: impl FnMut(&Measured),
) -> Result<Vec<Measured>, MeasureError> {
    let mut rows = Vec::new();
    let mut add = |row: Measured| {
        each(&row);
        rows.push(row);
    };
    let times = |log2: u32| {
        if log2 < LARGE_LOG2 {
            selection.repetitions
        } else {
            selection.repetitions.div_ceil(3)
        }
    };
    if selection.field {
        field(runtime, ITERATIONS, selection.repetitions)?
            .into_iter()
            .for_each(&mut add);
    }
    for &log2 in &selection.transforms {
        for kind in Kind::ALL {
            add(transform(runtime, log2, kind, None, times(log2))?);
        }
        if selection.layouts {
            for layout in other_layouts(log2) {
                let mut row = transform(runtime, log2, Kind::Forward, Some(layout), times(log2))?;
                row.work = format!(
                    "{}, tile {}, direct {}",
                    row.work, layout.tile, layout.direct
                );
                add(row);
            }
        }
    }
    for &log2 in &selection.quotients {
        add(quotient(runtime, log2, times(log2))?);
    }
    if let Some(&most) = selection.g1.iter().chain(&selection.compact).max() {
        let points = multiples::<G1>(runtime, most)?;
        for &log2 in &selection.g1 {
            add(sum::<G1>(runtime, points.global(), log2, times(log2))?);
        }
        for &log2 in &selection.compact {
            add(compact_sum(runtime, points.global(), log2, times(log2))?);
        }
    }
    if let Some(&most) = selection.g2.iter().max() {
        let points = multiples::<G2>(runtime, most)?;
        for &log2 in &selection.g2 {
            add(sum::<G2>(runtime, points.global(), log2, times(log2))?);
        }
    }
    Ok(rows)
}

/// Every tile, with tables for all blocks, for those of 2^18 elements, and for the last but one pass only.
fn other_layouts(log2: u32) -> Vec<Layout> {
    let chosen = Layout::of(log2);
    TILES_LOG2
        .iter()
        .flat_map(|&tile| [16, 18, 20].map(|direct| Layout { tile, direct }))
        .filter(|layout| {
            *layout != chosen && (layout.direct == chosen.direct || log2 >= layout.direct)
        })
        .collect()
}

/// One line for a row.
pub fn line(row: &Measured, limits: &Limits) -> String {
    let (bound, multiplier) = row.bound(limits);
    let size = row.log2.map_or(String::new(), |log2| format!("2^{log2}"));
    format!(
        "{:<34} {size:>5} {:>11.4} ms {:>9.3} G/s {:>10.4} ms {:>5.0} % {}",
        row.work,
        1e3 * row.seconds,
        row.operations / row.seconds / 1e9,
        1e3 * bound,
        100.0 * bound / row.seconds,
        if multiplier { "multiplier" } else { "memory" }
    )
}

/// The table's heading.
pub fn heading() -> String {
    format!(
        "{:<34} {:>5} {:>14} {:>13} {:>13} {:>7} by",
        "work", "size", "median", "rate", "bound", "share"
    )
}

/// The rows as one JSON list.
pub fn json(rows: &[Measured], limits: &Limits) -> Value {
    rows.iter()
        .map(|row| {
            let (bound, multiplier) = row.bound(limits);
            json!({
                "work": row.work, "log2": row.log2, "seconds": row.seconds,
                "operations": row.operations, "bound_seconds": bound,
                "bound_by": if multiplier { "multiplier" } else { "memory" },
            })
        })
        .collect()
}
