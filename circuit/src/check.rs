//! The debug mode: evaluates all three sides and names the first constraint that does not hold.

use crate::synthesis::{Unknown, evaluate};
use crate::{CircuitError, Scalar, Witness};
use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use ff::Field;

/// Checks that a circuit's assignment satisfies all its constraints.
///
/// # Errors
/// [`CircuitError::Unsatisfied`] with the number, the path and the three values of the first
/// constraint that does not hold; otherwise as [`crate::synthesize`].
pub fn check<C: Circuit<Scalar>>(circuit: C) -> Result<(), CircuitError> {
    let mut system = CheckSystem::default();
    system.alloc_input(|| "one", || Ok(Scalar::ONE))?;
    let result = circuit.synthesize(&mut system);
    // An unsatisfied constraint explains a later synthesis error, not the other way round.
    match system.failure {
        Some(failure) => Err(failure),
        None => Ok(result?),
    }
}

#[derive(Default)]
struct CheckSystem {
    witness: Witness,
    namespaces: Vec<String>,
    rows: usize,
    failure: Option<CircuitError>,
}

impl CheckSystem {
    fn values(&self, sides: [&LinearCombination<Scalar>; 3]) -> Result<[Scalar; 3], CircuitError> {
        let mut values = [Scalar::ZERO; 3];
        for (value, lc) in values.iter_mut().zip(sides) {
            *value = evaluate(lc, &self.witness, |_| {}).map_err(|variable| Unknown {
                row: self.rows,
                variable,
                allocated: match variable {
                    Index::Input(_) => self.witness.inputs.len(),
                    Index::Aux(_) => self.witness.aux.len(),
                },
            })?;
        }
        Ok(values)
    }
}

impl ConstraintSystem<Scalar> for CheckSystem {
    type Root = Self;

    fn new() -> Self {
        Self::default()
    }

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.witness.aux.push(f()?);
        Ok(Variable(Index::Aux(self.witness.aux.len() - 1)))
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

    fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, a: LA, b: LB, c: LC)
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
        let c = c(LinearCombination::zero());
        match self.values([&a, &b, &c]) {
            Ok([a, b, c]) if a * b == c => {}
            Ok([a, b, c]) => {
                let mut path = self.namespaces.clone();
                path.push(annotation().into());
                self.failure = Some(CircuitError::Unsatisfied {
                    row: self.rows,
                    path: path.join("/"),
                    a: Box::new(a),
                    b: Box::new(b),
                    c: Box::new(c),
                });
            }
            Err(failure) => self.failure = Some(failure),
        }
        self.rows += 1;
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.namespaces.push(name().into());
    }

    fn pop_namespace(&mut self) {
        self.namespaces.pop();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
