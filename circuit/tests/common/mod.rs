//! What the tests share: a naive constraint system that stores everything and evaluates at the
//! end (the oracle), and circuits.
#![allow(dead_code, missing_docs)]

use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use cuzk_circuit::Scalar;
use cuzk_circuit::testing::RandomCircuit;
use ff::Field;
use std::collections::BTreeSet;

pub type Row = [LinearCombination<Scalar>; 3];

#[derive(Default)]
pub struct Oracle {
    pub inputs: Vec<Scalar>,
    pub aux: Vec<Scalar>,
    pub rows: Vec<Row>,
}

impl Oracle {
    pub fn of<C: Circuit<Scalar>>(circuit: C) -> Self {
        let mut oracle = Oracle::default();
        oracle.inputs.push(Scalar::ONE);
        circuit.synthesize(&mut oracle).expect("synthesis");
        for i in 0..oracle.inputs.len() {
            oracle.enforce(|| "", |lc| lc + Variable(Index::Input(i)), |lc| lc, |lc| lc);
        }
        oracle
    }

    pub fn side(&self, side: usize) -> Vec<Scalar> {
        let value = |row: &Row| row[side].eval(&self.inputs, &self.aux);
        self.rows.iter().map(value).collect()
    }

    /// Variables with a coefficient other than zero: inputs, then private ones.
    pub fn occurring(&self, side: usize) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut inputs, mut aux) = (BTreeSet::new(), BTreeSet::new());
        for row in &self.rows {
            for (variable, coefficient) in row[side].iter() {
                match variable.0 {
                    _ if *coefficient == Scalar::ZERO => false,
                    Index::Input(i) => inputs.insert(i),
                    Index::Aux(i) => aux.insert(i),
                };
            }
        }
        (inputs, aux)
    }

    pub fn nonzeros(&self, side: usize) -> u64 {
        let count = |row: &Row| row[side].iter().filter(|t| *t.1 != Scalar::ZERO).count() as u64;
        self.rows.iter().map(count).sum()
    }
}

impl ConstraintSystem<Scalar> for Oracle {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(f()?);
        Ok(Variable(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(f()?);
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let zero = LinearCombination::zero;
        self.rows.push([a(zero()), b(zero()), c(zero())]);
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

/// Circuits of many shapes, each with a text that reproduces it.
pub fn circuits() -> Vec<(String, RandomCircuit)> {
    let mut all = Vec::new();
    let sizes = [
        0, 1, 2, 3, 5, 8, 17, 64, 65, 127, 300, 1000, 1024, 1025, 4096,
    ];
    for (k, &constraints) in sizes.iter().enumerate() {
        for variant in 0..8u64 {
            let seed = 100 * k as u64 + variant;
            let circuit = RandomCircuit {
                bit_share: [0.0, 0.5, 0.99, 1.0][variant as usize % 4],
                b_density: [0.0, 0.1, 0.5, 1.0][(seed / 3) as usize % 4],
                aux: variant != 5,
                parts: [1, 1, 2, 3, 7, 1, 1, 16][variant as usize],
                value_seed: seed + 7,
                ..RandomCircuit::new(constraints, [0, 1, 5, 40][(seed / 2) as usize % 4], seed)
            };
            all.push((format!("{circuit:?}"), circuit));
        }
    }
    all
}

/// Knowledge of a preimage of a SHA-256 digest.
#[derive(Clone)]
pub struct Sha256(pub Vec<u8>);

impl Circuit<Scalar> for Sha256 {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        use bellpepper_core::boolean::{AllocatedBit, Boolean};
        let mut bits = Vec::new();
        for (i, byte) in self.0.iter().enumerate() {
            for k in (0..8).rev() {
                let name = || format!("bit {i}.{k}");
                let bit = AllocatedBit::alloc(cs.namespace(name), Some(byte >> k & 1 == 1))?;
                bits.push(Boolean::from(bit));
            }
        }
        let hash = bellperson::gadgets::sha256::sha256(cs.namespace(|| "hash"), &bits)?;
        bellperson::gadgets::multipack::pack_into_inputs(cs.namespace(|| "pack"), &hash)
    }
}
