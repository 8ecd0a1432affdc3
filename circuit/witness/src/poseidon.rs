//! Poseidon hashes with the trace of their circuit.
//!
//! The circuit works on the optimised form of the permutation: round constants are added after
//! the S-boxes, and the partial rounds multiply by sparse matrices. An S-box allocates its input
//! (unless that is a variable already), its square, its fourth power and its result.

use crate::error::WitnessError;
use crate::product::{Limbs, ProductSum, limbs, scalar};
use cuzk_circuit::{CompactScalars, Scalar};
use ff::Field;
use neptune::poseidon::{Arity, PoseidonConstants};

/// The largest state: eleven elements and the tag.
const MAX_WIDTH: usize = 12;

/// The constants of one instance, prepared for hashing.
#[derive(Clone, Debug)]
pub struct Poseidon {
    width: usize,
    /// The domain tag after the first S-box: a constant of the circuit.
    tag: Scalar,
    /// Added to the preimage before the first S-boxes; without the tag's.
    first_keys: Vec<Scalar>,
    /// Added after the S-boxes: a full row a full round (but the last), one a partial round.
    keys: Vec<Scalar>,
    half_full_rounds: usize,
    /// By column.
    mds: Vec<Limbs>,
    /// By column.
    pre_sparse: Vec<Limbs>,
    /// For each partial round the first column, then the first row without its first element.
    sparse: Vec<Vec<Limbs>>,
}

impl<A: Arity<Scalar>> From<&PoseidonConstants<Scalar, A>> for Poseidon {
    fn from(constants: &PoseidonConstants<Scalar, A>) -> Self {
        let width = constants.width();
        let all = &constants.compressed_round_constants;
        let tag = constants.domain_tag + all[0];
        let columns = |matrix: &Vec<Vec<Scalar>>| {
            (0..width)
                .flat_map(|j| (0..width).map(move |i| limbs(&matrix[i][j])))
                .collect()
        };
        Self {
            width,
            tag: tag.square().square() * tag + all[width],
            first_keys: all[1..width].to_vec(),
            keys: all[width..].to_vec(),
            half_full_rounds: constants.half_full_rounds,
            mds: columns(&constants.mds_matrices.m),
            pre_sparse: columns(&constants.pre_sparse_matrix),
            sparse: constants
                .sparse_matrixes
                .iter()
                .map(|matrix| {
                    matrix
                        .w_hat
                        .iter()
                        .chain(&matrix.v_rest)
                        .map(limbs)
                        .collect()
                })
                .collect(),
        }
    }
}

impl Poseidon {
    /// How many elements are hashed.
    pub fn arity(&self) -> usize {
        self.width - 1
    }

    /// How many variables the circuit allocates: three in an S-box, and its input from the second
    /// round on, and the hash.
    fn trace_len(&self) -> usize {
        let rounds = 2 * self.half_full_rounds - 1;
        3 * self.arity() + 4 * (rounds * self.width + self.sparse.len()) + 1
    }

    /// Hashes `preimage` and appends what the circuit allocates; the last value is the hash.
    ///
    /// # Errors
    /// The preimage has another length than the instance hashes.
    pub fn hash(
        &self,
        preimage: &[Scalar],
        aux: &mut CompactScalars,
    ) -> Result<Scalar, WitnessError> {
        WitnessError::check_count("Poseidon preimage", self.arity(), preimage.len())?;
        let mut trace = Vec::with_capacity(self.trace_len());
        let mut buffer = [Scalar::ZERO; MAX_WIDTH];
        let state = &mut buffer[..self.width];
        let (first, keys) = self.keys.split_at(self.width);
        state[0] = self.tag;
        for (((x, &element), pre), post) in state[1..]
            .iter_mut()
            .zip(preimage)
            .zip(&self.first_keys)
            .zip(&first[1..])
        {
            *x = quintic(element + pre, &mut trace) + post;
            trace.push(*x);
        }
        let keys = self.first_half(state, keys, &mut trace);
        let keys = self.partial_rounds(state, keys, &mut trace);
        let hash = self.second_half(state, keys, &mut trace);
        aux.extend_from_slice(&trace);
        Ok(hash)
    }

    /// The full rounds before the partial ones, from the first matrix on.
    fn first_half<'k>(
        &self,
        state: &mut [Scalar],
        mut keys: &'k [Scalar],
        trace: &mut Vec<Scalar>,
    ) -> &'k [Scalar] {
        for _ in 1..self.half_full_rounds {
            multiply(state, &self.mds);
            keys = self.full_round(state, keys, trace);
        }
        multiply(state, &self.pre_sparse);
        keys
    }

    fn full_round<'k>(
        &self,
        state: &mut [Scalar],
        keys: &'k [Scalar],
        trace: &mut Vec<Scalar>,
    ) -> &'k [Scalar] {
        let (now, later) = keys.split_at(self.width);
        for (x, key) in state.iter_mut().zip(now) {
            trace.push(*x);
            *x = quintic(*x, trace) + key;
            trace.push(*x);
        }
        later
    }

    fn partial_rounds<'k>(
        &self,
        state: &mut [Scalar],
        keys: &'k [Scalar],
        trace: &mut Vec<Scalar>,
    ) -> &'k [Scalar] {
        let (now, later) = keys.split_at(self.sparse.len());
        let mut current = [Limbs::default(); MAX_WIDTH];
        let current = &mut current[..self.width];
        for (limb, x) in current.iter_mut().zip(&*state) {
            *limb = limbs(x);
        }
        for (matrix, key) in self.sparse.iter().zip(now) {
            let x = scalar(current[0]);
            trace.push(x);
            let x = quintic(x, trace) + key;
            trace.push(x);
            let x = limbs(&x);
            current[0] = x;
            let (column, row) = matrix.split_at(self.width);
            let first = dot(current, column);
            for (element, factor) in current[1..].iter_mut().zip(row) {
                let mut sum = ProductSum::from_element(element);
                sum.add(&x, factor);
                *element = sum.reduce();
            }
            current[0] = first;
        }
        for (x, limb) in state.iter_mut().zip(&*current) {
            *x = scalar(*limb);
        }
        later
    }

    /// The full rounds after the partial ones; of the last product only the hash is computed.
    fn second_half(
        &self,
        state: &mut [Scalar],
        mut keys: &[Scalar],
        trace: &mut Vec<Scalar>,
    ) -> Scalar {
        for _ in 1..self.half_full_rounds {
            keys = self.full_round(state, keys, trace);
            multiply(state, &self.mds);
        }
        for x in state.iter_mut() {
            trace.push(*x);
            *x = quintic(*x, trace);
            trace.push(*x);
        }
        let mut last = [Limbs::default(); MAX_WIDTH];
        for (limb, x) in last.iter_mut().zip(&*state) {
            *limb = limbs(x);
        }
        let hash = scalar(dot(
            &last[..self.width],
            &self.mds[self.width..2 * self.width],
        ));
        trace.push(hash);
        hash
    }
}

/// Appends square and fourth power of `x`; returns the fifth.
#[inline]
fn quintic(x: Scalar, trace: &mut Vec<Scalar>) -> Scalar {
    let square = x.square();
    trace.push(square);
    let fourth = square.square();
    trace.push(fourth);
    fourth * x
}

#[inline]
fn dot(state: &[Limbs], column: &[Limbs]) -> Limbs {
    let mut sum = ProductSum::default();
    for (x, y) in state.iter().zip(column) {
        sum.add(x, y);
    }
    sum.reduce()
}

/// Multiplies the state, a row, by a matrix given by columns.
fn multiply(state: &mut [Scalar], matrix: &[Limbs]) {
    let mut row = [Limbs::default(); MAX_WIDTH];
    for (limb, x) in row.iter_mut().zip(&*state) {
        *limb = limbs(x);
    }
    let row = &row[..state.len()];
    for (x, column) in state.iter_mut().zip(matrix.chunks_exact(row.len())) {
        *x = scalar(dot(row, column));
    }
}

/// The instances that Filecoin's circuits use.
#[derive(Clone, Debug)]
pub struct Poseidons {
    /// Two elements of a tree.
    pub two: Poseidon,
    /// Four elements of a tree.
    pub four: Poseidon,
    /// Eight elements of a tree.
    pub eight: Poseidon,
    /// The eleven labels of a column.
    pub eleven: Poseidon,
    /// Two elements, for the randomness of updates.
    pub randomness: Poseidon,
}

impl Poseidons {
    /// The instance for trees and columns that hashes that many elements.
    ///
    /// # Errors
    /// There is none.
    pub fn of_arity(&self, arity: usize) -> Result<&Poseidon, WitnessError> {
        match arity {
            2 => Ok(&self.two),
            4 => Ok(&self.four),
            8 => Ok(&self.eight),
            11 => Ok(&self.eleven),
            found => Err(WitnessError::Arity { found }),
        }
    }
}
