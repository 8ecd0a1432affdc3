//! Direct synthesis: a circuit's witness, evaluations and densities in one pass.

use crate::{Assignment, Bitmap, CircuitError, Densities, Scalar, Witness, compact::Compact};
use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use ff::Field;
use std::sync::Arc;

/// Synthesises a circuit into a fresh [`Assignment`].
///
/// The values and their order are those of bellperson's prover: a row for each constraint, then
/// one row `x_i · 0 = 0` for each input. C is not evaluated; [`crate::check`] does that. Circuits
/// that ask for extensible synthesis are synthesised in parallel, with the same result.
///
/// # Errors
/// [`CircuitError`] when synthesis fails, a constraint refers to an unknown variable or the rows
/// exceed the largest domain.
pub fn synthesize<C: Circuit<Scalar>>(circuit: C) -> Result<Assignment, CircuitError> {
    let mut arena = Assignment::default();
    synthesize_into(circuit, &mut arena)?;
    Ok(arena)
}

/// Synthesises a circuit into `arena`, whose previous contents are dropped and whose memory is
/// reused. The densities' memory is reused when nobody else holds them.
///
/// # Errors
/// As [`synthesize`]; `arena` is empty afterwards.
pub fn synthesize_into<C: Circuit<Scalar>>(
    circuit: C,
    arena: &mut Assignment,
) -> Result<(), CircuitError> {
    arena.clear();
    let mut system = SynthesisSystem::in_arena(std::mem::take(arena));
    let result = system.run(circuit);
    *arena = system.into_assignment();
    if result.is_err() {
        arena.clear();
    }
    result
}

/// A reference to a variable that did not exist when the constraint was made.
#[derive(Clone, Copy)]
pub(crate) struct Unknown {
    pub row: usize,
    pub variable: Index,
    pub allocated: usize,
}

impl From<Unknown> for CircuitError {
    fn from(unknown: Unknown) -> Self {
        let (kind, index) = match unknown.variable {
            Index::Input(index) => ("input", index),
            Index::Aux(index) => ("auxiliary", index),
        };
        CircuitError::UnknownVariable {
            row: unknown.row,
            kind,
            index,
            allocated: unknown.allocated,
        }
    }
}

/// Value of a linear combination, or the first variable that does not exist.
///
/// Calls `seen` for each variable with a coefficient other than zero.
#[inline]
pub(crate) fn evaluate(
    lc: &LinearCombination<Scalar>,
    witness: &Witness,
    mut seen: impl FnMut(Index),
) -> Result<Scalar, Index> {
    let mut sum = Scalar::ZERO;
    for (&index, coefficient) in lc.iter_inputs() {
        if *coefficient == Scalar::ZERO {
            continue;
        }
        let value = witness.inputs.get(index).ok_or(Index::Input(index))?;
        add_product(&mut sum, coefficient, value);
        seen(Index::Input(index));
    }
    for (&index, coefficient) in lc.iter_aux() {
        if *coefficient == Scalar::ZERO {
            continue;
        }
        match witness.aux.compact(index).ok_or(Index::Aux(index))? {
            Compact::Bit(false) => {}
            Compact::Bit(true) => sum += coefficient,
            Compact::Other(value) => add_product(&mut sum, coefficient, value),
        }
        seen(Index::Aux(index));
    }
    Ok(sum)
}

#[inline]
fn add_product(sum: &mut Scalar, coefficient: &Scalar, value: &Scalar) {
    if *coefficient == Scalar::ONE {
        *sum += value;
    } else {
        *sum += *coefficient * value;
    }
}

/// The constraint system behind [`synthesize`].
struct SynthesisSystem {
    witness: Witness,
    a: Vec<Scalar>,
    b: Vec<Scalar>,
    densities: Densities,
    failure: Option<Unknown>,
}

impl SynthesisSystem {
    /// Starts in the memory of an empty assignment.
    fn in_arena(arena: Assignment) -> Self {
        Self {
            witness: arena.witness,
            a: arena.a,
            b: arena.b,
            densities: Arc::try_unwrap(arena.densities).unwrap_or_default(),
            failure: None,
        }
    }

    fn run<C: Circuit<Scalar>>(&mut self, circuit: C) -> Result<(), CircuitError> {
        self.alloc_input(|| "one", || Ok(Scalar::ONE))?;
        circuit.synthesize(self)?;
        if let Some(unknown) = self.failure {
            return Err(unknown.into());
        }
        let rows = self.a.len() + self.witness.inputs.len();
        if rows as u64 > 1 << 32 {
            return Err(CircuitError::TooLarge { rows });
        }
        self.a.extend_from_slice(&self.witness.inputs);
        self.b.resize(rows, Scalar::ZERO);
        Ok(())
    }

    fn into_assignment(self) -> Assignment {
        Assignment {
            constraints: self.a.len().saturating_sub(self.witness.inputs.len()),
            witness: self.witness,
            a: self.a,
            b: self.b,
            densities: Arc::new(self.densities),
        }
    }

    fn enforce_row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
    ) -> Result<(), Index> {
        let Densities {
            a_aux,
            b_inputs,
            b_aux,
        } = &mut self.densities;
        let a = evaluate(a, &self.witness, |variable| {
            if let Index::Aux(i) = variable {
                a_aux.set(i);
            }
        })?;
        let b = evaluate(b, &self.witness, |variable| {
            match variable {
                Index::Input(i) => b_inputs.set(i),
                Index::Aux(i) => b_aux.set(i),
            };
        })?;
        self.a.push(a);
        self.b.push(b);
        Ok(())
    }
}

impl ConstraintSystem<Scalar> for SynthesisSystem {
    type Root = Self;

    /// An empty system without the constant one: whoever synthesises a part allocates it first.
    fn new() -> Self {
        Self::in_arena(Assignment::default())
    }

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.witness.aux.push(f()?);
        self.densities.a_aux.push(false);
        self.densities.b_aux.push(false);
        Ok(Variable(Index::Aux(self.witness.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.witness.inputs.push(f()?);
        self.densities.b_inputs.push(false);
        Ok(Variable(Index::Input(self.witness.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        if self.failure.is_some() {
            return;
        }
        let a = a(LinearCombination::zero());
        let b = b(LinearCombination::zero());
        if let Err(variable) = self.enforce_row(&a, &b) {
            self.failure = Some(Unknown {
                row: self.a.len(),
                variable,
                allocated: match variable {
                    Index::Input(_) => self.witness.inputs.len(),
                    Index::Aux(_) => self.witness.aux.len(),
                },
            });
        }
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
        if self.failure.is_none() {
            self.failure = other.failure.map(|unknown| Unknown {
                row: unknown.row + self.a.len(),
                ..unknown
            });
        }
        self.a.extend_from_slice(&other.a);
        self.b.extend_from_slice(&other.b);
        append_inputs(&mut self.witness.inputs, &other.witness.inputs);
        self.witness.aux.append(&other.witness.aux);
        self.densities.a_aux.append(&other.densities.a_aux);
        self.densities.b_aux.append(&other.densities.b_aux);
        append_input_density(&mut self.densities.b_inputs, &other.densities.b_inputs);
    }
}

/// Appends the inputs of a part, whose first one is its temporary constant one.
pub(crate) fn append_inputs(inputs: &mut Vec<Scalar>, part: &[Scalar]) {
    inputs.extend_from_slice(part.get(1..).unwrap_or_default());
}

/// Appends the density of a part's inputs; use of its constant one counts for the whole.
fn append_input_density(density: &mut Bitmap, part: &Bitmap) {
    if part.get(0) {
        density.set(0);
    }
    density.append_from(part, 1);
}
