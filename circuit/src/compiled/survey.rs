//! Recording and counting in one pass.

use super::recorder::Recorder;
use crate::Scalar;
use crate::census::Census;
use crate::stream::ConstraintVisitor;
use bellpepper_core::LinearCombination;

/// The visitor that records A and B and counts parts.
pub(super) struct Survey {
    pub recorder: Recorder<false>,
    pub census: Census,
}

impl ConstraintVisitor for Survey {
    fn alloc_input(&mut self, index: usize) {
        self.recorder.alloc_input(index);
        self.census.alloc_input(index);
    }

    fn alloc_aux(&mut self, index: usize) {
        self.recorder.alloc_aux(index);
        self.census.alloc_aux(index);
    }

    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    ) {
        self.recorder.row(a, b, c);
        self.census.row(a, b, c);
    }

    fn enter_named(&mut self, name: impl FnOnce() -> String) {
        self.recorder.enter();
        self.census.enter_named(name);
    }

    fn leave(&mut self) {
        self.recorder.leave();
        self.census.leave();
    }
}
