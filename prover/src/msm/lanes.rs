//! The plain sum of many points, by batched affine additions.

use super::{
    batch::{BATCH, Batch},
    curve::{Curve, Point},
};
use group::Group;

/// Below this many partial sums an inversion costs more than it saves.
const LAST: usize = 16;

/// A growing sum of points, kept as [`BATCH`] partial sums that take turns.
pub(crate) struct Sum<C: Curve> {
    partial: Vec<Point<C::Field>>,
    batch: Batch<C::Field>,
}

impl<C: Curve> Sum<C> {
    pub(crate) fn new() -> Self {
        Self {
            partial: Vec::with_capacity(BATCH),
            batch: Batch::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, point: Point<C::Field>) {
        if point.is_identity() {
            return;
        }
        if self.partial.len() < BATCH {
            self.partial.push(point);
            return;
        }
        let turn = self.batch.slots().len() as u32;
        self.batch.push(turn, point);
        if self.batch.is_full() {
            self.batch.flush(&mut self.partial);
        }
    }

    pub(crate) fn finish(mut self) -> C::Projective {
        self.batch.flush(&mut self.partial);
        while self.partial.len() > LAST {
            let half = self.partial.len().div_ceil(2);
            for (slot, point) in self.partial[half..].iter().enumerate() {
                self.batch.push(slot as u32, *point);
            }
            self.partial.truncate(half);
            self.batch.flush(&mut self.partial);
        }
        self.partial
            .iter()
            .fold(C::Projective::identity(), |sum, point| {
                sum + C::project(point)
            })
    }
}
