//! What synthesis yields: the witness, the evaluations and the densities.

use crate::{Bitmap, CompactScalars, Scalar};
use std::sync::Arc;

/// Values of all variables of a circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Public inputs; the first is the constant one.
    pub inputs: Vec<Scalar>,
    /// Private variables in order of allocation.
    pub aux: CompactScalars,
}

impl Witness {
    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.inputs.clear();
        self.aux.clear();
    }
}

/// Which variables occur (with a coefficient other than zero) in which query.
///
/// The A query always holds every input, because a row `x_i · 0 = 0` is appended for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Densities {
    /// Private variables in A.
    pub a_aux: Bitmap,
    /// Inputs in B.
    pub b_inputs: Bitmap,
    /// Private variables in B.
    pub b_aux: Bitmap,
}

impl Densities {
    /// Removes all bits and keeps the memory.
    pub fn clear(&mut self) {
        self.a_aux.clear();
        self.b_inputs.clear();
        self.b_aux.clear();
    }
}

/// A synthesised circuit, ready to be proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Values of the variables.
    pub witness: Witness,
    /// A·w: one value a constraint, then the inputs (rows `x_i · 0 = 0`).
    pub a: Vec<Scalar>,
    /// B·w: one value a constraint, then a zero for each input.
    pub b: Vec<Scalar>,
    /// Which variables occur in A and B.
    pub densities: Arc<Densities>,
    /// Number of constraints, without the rows appended for the inputs.
    pub constraints: usize,
}

impl Assignment {
    /// Rows of the QAP: constraints and inputs.
    pub fn rows(&self) -> usize {
        self.constraints + self.witness.inputs.len()
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.witness.clear();
        self.a.clear();
        self.b.clear();
        match Arc::get_mut(&mut self.densities) {
            Some(densities) => densities.clear(),
            None => self.densities = Arc::default(),
        }
        self.constraints = 0;
    }
}
