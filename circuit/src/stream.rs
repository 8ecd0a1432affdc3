//! Constraints of a circuit handed over one by one, without storing them and without values.

use crate::{CircuitError, Scalar};
use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use ff::Field;

/// Receives a circuit's variables and rows in order of synthesis.
pub trait ConstraintVisitor: Send {
    /// Whether [`ConstraintVisitor::row`] looks at `c`. A visitor that does not is given an empty
    /// one, which saves the time to build it.
    const READS_C: bool = true;

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

    /// A namespace begins: what follows until the matching [`ConstraintVisitor::leave`] belongs
    /// together.
    fn enter(&mut self) {}

    /// As [`ConstraintVisitor::enter`], for a visitor that wants the namespace's name.
    fn enter_named(&mut self, _name: impl FnOnce() -> String) {
        self.enter();
    }

    /// The innermost namespace ends.
    fn leave(&mut self) {}
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
    let mut system = StreamSystem::new(visitor);
    system.run(circuit)?;
    for i in 0..system.inputs {
        system.enforce(
            || "input",
            |lc| lc + Variable(Index::Input(i)),
            |lc| lc,
            |lc| lc,
        );
    }
    Ok(())
}

/// As [`stream_constraints`] without the rows for the inputs.
pub(crate) fn stream_circuit<C, V>(circuit: C, visitor: &mut V) -> Result<(), CircuitError>
where
    C: Circuit<Scalar>,
    V: ConstraintVisitor,
{
    StreamSystem::new(visitor).run(circuit)
}

struct StreamSystem<'v, V> {
    visitor: &'v mut V,
    inputs: usize,
    aux: usize,
    rows: usize,
    failure: Option<CircuitError>,
}

impl<'v, V: ConstraintVisitor> StreamSystem<'v, V> {
    fn new(visitor: &'v mut V) -> Self {
        Self {
            visitor,
            inputs: 0,
            aux: 0,
            rows: 0,
            failure: None,
        }
    }

    fn run<C: Circuit<Scalar>>(&mut self, circuit: C) -> Result<(), CircuitError> {
        self.alloc_input(|| "one", || Ok(Scalar::ONE))?;
        circuit.synthesize(self)?;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let rows = self.rows + self.inputs;
        match rows as u64 > 1 << 32 {
            true => Err(CircuitError::TooLarge { rows }),
            false => Ok(()),
        }
    }

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
        let c = match V::READS_C {
            true => c(LinearCombination::zero()),
            false => LinearCombination::zero(),
        };
        self.failure = [&a, &b, &c]
            .into_iter()
            .find_map(|lc| self.unknown_variable(lc));
        if self.failure.is_none() {
            self.visitor.row(&a, &b, &c);
            self.rows += 1;
        }
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.visitor.enter_named(|| name().into());
    }

    fn pop_namespace(&mut self) {
        self.visitor.leave();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
