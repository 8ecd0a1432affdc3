//! Witness generation alone: no linear combination is built.

use crate::synthesis::append_inputs;
use crate::{CircuitError, CompactScalars, Scalar, Witness};
use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use ff::Field;
use std::cell::OnceCell;

/// Computes the values of a circuit's variables and nothing else.
///
/// Gadgets that know witness generators (Poseidon, for instance) take their short way; circuits
/// that ask for extensible synthesis run in parallel. The result is that of
/// [`crate::synthesize`].
///
/// # Errors
/// [`CircuitError`] when synthesis fails. Constraints are not looked at.
pub fn witness<C: Circuit<Scalar>>(circuit: C) -> Result<Witness, CircuitError> {
    let mut witness = Witness::default();
    witness_into(circuit, &mut witness)?;
    Ok(witness)
}

/// As [`witness`], in the memory of `arena`, whose previous contents are dropped.
///
/// # Errors
/// As [`witness`]; `arena` is empty afterwards.
pub fn witness_into<C: Circuit<Scalar>>(
    circuit: C,
    arena: &mut Witness,
) -> Result<(), CircuitError> {
    arena.clear();
    let mut system = WitnessSystem {
        witness: std::mem::take(arena),
        ..WitnessSystem::new()
    };
    let result = system
        .alloc_input(|| "one", || Ok(Scalar::ONE))
        .and_then(|_| circuit.synthesize(&mut system));
    system.flush();
    *arena = system.witness;
    if result.is_err() {
        arena.clear();
    }
    Ok(result?)
}

/// The constraint system behind [`witness`].
struct WitnessSystem {
    witness: Witness,
    /// Full-width values that a gadget is writing in place; they follow `witness.aux`.
    pending: Vec<Scalar>,
    /// All private values at full width, made only when a gadget asks for the slice.
    expanded: OnceCell<Vec<Scalar>>,
}

impl WitnessSystem {
    fn flush(&mut self) {
        for value in self.pending.drain(..) {
            self.witness.aux.push(value);
        }
        self.expanded.take();
    }

    fn aux(&mut self) -> &mut CompactScalars {
        if !self.pending.is_empty() || self.expanded.get().is_some() {
            self.flush();
        }
        &mut self.witness.aux
    }
}

impl ConstraintSystem<Scalar> for WitnessSystem {
    type Root = Self;

    fn new() -> Self {
        Self {
            witness: Witness::default(),
            pending: Vec::new(),
            expanded: OnceCell::new(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let value = f()?;
        let aux = self.aux();
        aux.push(value);
        Ok(Variable(Index::Aux(aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.witness.inputs.push(f()?);
        Ok(Variable(Index::Input(self.witness.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, other: &Self) {
        append_inputs(&mut self.witness.inputs, &other.witness.inputs);
        let aux = self.aux();
        aux.append(&other.witness.aux);
        for &value in &other.pending {
            aux.push(value);
        }
    }

    fn is_witness_generator(&self) -> bool {
        true
    }

    fn extend_inputs(&mut self, new_inputs: &[Scalar]) {
        self.witness.inputs.extend_from_slice(new_inputs);
    }

    fn extend_aux(&mut self, new_aux: &[Scalar]) {
        let aux = self.aux();
        for &value in new_aux {
            aux.push(value);
        }
    }

    fn allocate_empty(&mut self, aux_n: usize, inputs_n: usize) -> (&mut [Scalar], &mut [Scalar]) {
        self.flush();
        self.pending.resize(aux_n, Scalar::ZERO);
        let inputs = self.witness.inputs.len();
        self.witness.inputs.resize(inputs + inputs_n, Scalar::ZERO);
        (&mut self.pending, &mut self.witness.inputs[inputs..])
    }

    fn allocate_empty_inputs(&mut self, n: usize) -> &mut [Scalar] {
        self.allocate_empty(0, n).1
    }

    fn allocate_empty_aux(&mut self, n: usize) -> &mut [Scalar] {
        self.allocate_empty(n, 0).0
    }

    fn inputs_slice(&self) -> &[Scalar] {
        &self.witness.inputs
    }

    fn aux_slice(&self) -> &[Scalar] {
        self.expanded.get_or_init(|| {
            let pending = self.pending.iter().copied();
            self.witness.aux.iter().chain(pending).collect()
        })
    }
}
