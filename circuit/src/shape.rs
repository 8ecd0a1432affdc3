//! Counts of a circuit, taken without any values.

use crate::stream::{ConstraintVisitor, stream_circuit};
use crate::{Bitmap, CircuitError, Scalar};
use bellpepper_core::{Circuit, Index, LinearCombination};
use ff::Field;

/// Bytes of an uncompressed point of G1 in a parameter file.
const G1_BYTES: u64 = 96;
/// Bytes of an uncompressed point of G2 in a parameter file.
const G2_BYTES: u64 = 192;

/// The counts that determine a circuit's parameters and its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Constraints, without the rows appended for the inputs.
    pub constraints: usize,
    /// Inputs, the constant one included.
    pub inputs: usize,
    /// Private variables.
    pub aux: usize,
    /// Private variables that occur in A.
    pub a_aux: usize,
    /// Inputs that occur in B.
    pub b_inputs: usize,
    /// Private variables that occur in B.
    pub b_aux: usize,
    /// Coefficients other than zero in A, B and C, without the appended rows.
    pub nonzeros: [u64; 3],
}

impl Shape {
    /// Rows of the QAP: constraints and inputs.
    pub fn rows(&self) -> usize {
        self.constraints + self.inputs
    }

    /// Logarithm to base 2 of the evaluation domain: the smallest power of two that holds all
    /// rows.
    pub fn domain_log2(&self) -> u32 {
        self.rows().max(1).next_power_of_two().trailing_zeros()
    }

    /// Number of bases of the A query.
    pub fn a_len(&self) -> usize {
        self.inputs + self.a_aux
    }

    /// Number of bases of each of the two B queries.
    pub fn b_len(&self) -> usize {
        self.b_inputs + self.b_aux
    }

    /// Size of the circuit's `.params` file in bytes.
    pub fn params_bytes(&self) -> u64 {
        let counts = 6 * 4;
        let key = 3 * G1_BYTES + 3 * G2_BYTES + self.inputs as u64 * G1_BYTES;
        let h = (1u64 << self.domain_log2()) - 1;
        let g1 = h + self.aux as u64 + self.a_len() as u64 + self.b_len() as u64;
        counts + key + g1 * G1_BYTES + self.b_len() as u64 * G2_BYTES
    }
}

/// Counts a circuit. No value is asked for, so a blank circuit will do.
///
/// # Errors
/// [`CircuitError`] when synthesis fails or a constraint refers to an unknown variable.
pub fn shape<C: Circuit<Scalar>>(circuit: C) -> Result<Shape, CircuitError> {
    let mut counter = Counter::default();
    stream_circuit(circuit, &mut counter)?;
    let mut shape = counter.shape;
    shape.a_aux = counter.a_aux.count_ones();
    shape.b_inputs = counter.b_inputs.count_ones();
    shape.b_aux = counter.b_aux.count_ones();
    Ok(shape)
}

#[derive(Default)]
struct Counter {
    shape: Shape,
    a_aux: Bitmap,
    b_inputs: Bitmap,
    b_aux: Bitmap,
}

impl ConstraintVisitor for Counter {
    fn alloc_input(&mut self, _index: usize) {
        self.shape.inputs += 1;
        self.b_inputs.push(false);
    }

    fn alloc_aux(&mut self, _index: usize) {
        self.shape.aux += 1;
        self.a_aux.push(false);
        self.b_aux.push(false);
    }

    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    ) {
        for (side, lc) in [a, b, c].into_iter().enumerate() {
            for (variable, coefficient) in lc.iter() {
                if *coefficient == Scalar::ZERO {
                    continue;
                }
                self.shape.nonzeros[side] += 1;
                match (side, variable.0) {
                    (0, Index::Aux(i)) => self.a_aux.set(i),
                    (1, Index::Aux(i)) => self.b_aux.set(i),
                    (1, Index::Input(i)) => self.b_inputs.set(i),
                    _ => true,
                };
            }
        }
        self.shape.constraints += 1;
    }
}
