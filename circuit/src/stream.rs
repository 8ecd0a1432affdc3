//! Constraints of a circuit handed over one by one, without storing them and without values.

use crate::{CircuitError, Scalar};
use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use ff::Field;

/// Receives a circuit's variables and rows in order of synthesis.
pub trait ConstraintVisitor: Send {
    /// Input `index` now exists; 0 is the constant one.
    fn alloc_input(&mut self, index: usize);

    /// Private variable `index` now exists.
    fn alloc_aux(&mut self, index: usize);

    /// The next row `a · b = c`. A linear combination names each variable once (inputs first,
    /// each kind ascending), possibly with coefficient zero, and only variables that exist.
    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    );
}

/// Streams all rows of the circuit's QAP through `visitor`: the constraints in order, then one
/// row `x_i · 0 = 0` for each input. No value is asked for, so a blank circuit will do.
///
/// Synthesis is sequential here: the order of rows defines the parameters.
///
/// # Errors
/// [`CircuitError`] when synthesis fails or a constraint refers to an unknown variable; the
/// visitor has then seen the rows before it.
pub fn stream_constraints<C, V>(circuit: C, visitor: &mut V) -> Result<(), CircuitError>
where
    C: Circuit<Scalar>,
    V: ConstraintVisitor,
{
    let mut system = StreamSystem {
        visitor,
        inputs: 0,
        aux: 0,
        rows: 0,
        failure: None,
    };
    system.alloc_input(|| "one", || Ok(Scalar::ONE))?;
    circuit.synthesize(&mut system)?;
    for i in 0..system.inputs {
        system.enforce(
            || "input",
            |lc| lc + Variable(Index::Input(i)),
            |lc| lc,
            |lc| lc,
        );
    }
    match system.failure {
        Some(failure) => Err(failure),
        None if system.rows as u64 > 1 << 32 => Err(CircuitError::TooLarge { rows: system.rows }),
        None => Ok(()),
    }
}

struct StreamSystem<'v, V> {
    visitor: &'v mut V,
    inputs: usize,
    aux: usize,
    rows: usize,
    failure: Option<CircuitError>,
}

impl<V: ConstraintVisitor> StreamSystem<'_, V> {
    fn unknown_variable(&self, lc: &LinearCombination<Scalar>) -> Option<CircuitError> {
        // Indices ascend within each kind, so the last one is the largest.
        let beyond = |last: Option<(&usize, &Scalar)>, allocated: usize, kind| {
            let index = *last?.0;
            (index >= allocated).then_some(CircuitError::UnknownVariable {
                row: self.rows,
                kind,
                index,
                allocated,
            })
        };
        beyond(lc.iter_inputs().last(), self.inputs, "input")
            .or_else(|| beyond(lc.iter_aux().last(), self.aux, "auxiliary"))
    }
}

impl<V: ConstraintVisitor> ConstraintSystem<Scalar> for StreamSystem<'_, V> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let index = self.aux;
        self.visitor.alloc_aux(index);
        self.aux += 1;
        Ok(Variable(Index::Aux(index)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let index = self.inputs;
        self.visitor.alloc_input(index);
        self.inputs += 1;
        Ok(Variable(Index::Input(index)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
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
        self.failure = [&a, &b, &c]
            .into_iter()
            .find_map(|lc| self.unknown_variable(lc));
        if self.failure.is_none() {
            self.visitor.row(&a, &b, &c);
            self.rows += 1;
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
}
