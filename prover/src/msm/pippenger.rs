//! Pippenger's bucket method over signed windows, parallel over windows and runs of points.

use super::{
    buckets::{self, Buckets},
    curve::{Curve, Point},
    digits::{Recoded, Windows},
};
use group::Group;
use rayon::prelude::*;

/// Additions that one task should have at least.
const TASK: usize = 1 << 13;
/// Cost of a bucket in the final sum, relative to the addition of a point: two additions.
const BUCKET_COST: f64 = 2.5;

/// `Σ scalars[i] · points[i]` over the shorter of the two.
pub(crate) fn multiply<C: Curve>(points: &[C::Affine], scalars: &[Recoded]) -> C::Projective {
    let n = points.len().min(scalars.len());
    let job = Job::<C> {
        points: &points[..n],
        scalars: &scalars[..n],
        windows: best_windows(n),
    };
    let sums: Vec<C::Projective> = job
        .plan(rayon::current_num_threads())
        .into_par_iter()
        .with_max_len(1)
        .flat_map_iter(|task| job.run(&task))
        .collect();
    let mut result = C::Projective::identity();
    for sum in sums.into_iter().rev() {
        for _ in 0..job.windows.bits {
            result = result.double();
        }
        result += sum;
    }
    result
}

/// The window width with the fewest additions for `n` points.
fn best_windows(n: usize) -> Windows {
    let cost = |windows: &Windows| {
        let buckets = (1u64 << (windows.bits - 1)) as f64;
        windows.count as f64 * (n as f64 + BUCKET_COST * buckets)
    };
    (2..=22)
        .map(Windows::new)
        .min_by(|x, y| cost(x).total_cmp(&cost(y)))
        .unwrap_or(Windows::new(2))
}

/// Windows `first .. first + count`, with the points cut into `runs`.
struct Task {
    first: usize,
    count: usize,
    runs: usize,
}

struct Job<'a, C: Curve> {
    points: &'a [C::Affine],
    scalars: &'a [Recoded],
    windows: Windows,
}

impl<C: Curve> Job<'_, C> {
    /// Cuts the windows into tasks. Small jobs put several windows into one task, so that their
    /// batches fill; where the tasks do not spread evenly over the threads, those of the last
    /// round cut the points as well, as long as merging their buckets stays cheap.
    fn plan(&self, threads: usize) -> Vec<Task> {
        let n = self.points.len().max(1);
        let count = TASK.div_ceil(n).clamp(1, self.windows.count);
        let tasks = self.windows.count.div_ceil(count);
        let last_round = tasks % threads;
        let affordable = n >> (self.windows.bits + 1);
        let runs = threads
            .checked_div(last_round)
            .map_or(1, |_| threads.div_ceil(last_round))
            .clamp(1, affordable.max(1));
        (0..tasks)
            .map(|task| Task {
                first: task * count,
                count: count.min(self.windows.count - task * count),
                runs: if task < tasks - last_round { 1 } else { runs },
            })
            .collect()
    }

    /// The sums of the task's windows, lowest first.
    fn run(&self, task: &Task) -> Vec<C::Projective> {
        let sizes: Vec<usize> = (task.first..task.first + task.count)
            .map(|i| self.windows.largest(i))
            .collect();
        let run = self.points.len().div_ceil(task.runs).max(1);
        let mut parts: Vec<Vec<Point<C::Field>>> = self
            .points
            .par_chunks(run)
            .zip(self.scalars.par_chunks(run))
            .map(|(points, scalars)| self.accumulate(task.first, &sizes, points, scalars))
            .collect();
        let Some(mut sums) = parts.pop() else {
            return vec![C::Projective::identity(); task.count];
        };
        for part in parts {
            buckets::merge::<C>(&mut sums, &part);
        }
        buckets::weighted_sums::<C>(&sums, &sizes)
    }

    /// The buckets of the windows from `first` on, one after the other, for a run of points.
    fn accumulate(
        &self,
        first: usize,
        sizes: &[usize],
        points: &[C::Affine],
        scalars: &[Recoded],
    ) -> Vec<Point<C::Field>> {
        let mut buckets = Buckets::<C>::new(sizes.iter().sum());
        for (point, scalar) in points.iter().zip(scalars) {
            let point = C::load(point);
            if point.is_identity() {
                continue;
            }
            let mut offset = 0;
            for (i, size) in sizes.iter().enumerate() {
                let (magnitude, negative) = scalar.digit(&self.windows, first + i);
                if magnitude != 0 {
                    buckets.add(offset + magnitude - 1, point.negated_if(negative));
                }
                offset += *size as u32;
            }
        }
        buckets.finish()
    }
}
