//! Circuits for tests and benches: random, satisfiable, of any size and density.

use crate::Scalar;
use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// A random satisfiable circuit.
///
/// Its structure depends on `seed` and the counts alone, its values on `value_seed` as well, so
/// that circuits which differ only in `value_seed` share their parameters. Rows use repeated
/// variables, constants, zero coefficients, empty sides and inputs allocated between the rows.
#[derive(Clone, Debug)]
pub struct RandomCircuit {
    /// Number of constraints.
    pub constraints: usize,
    /// Number of public inputs, without the constant one.
    pub inputs: usize,
    /// Share of the rows whose new private variable is 0 or 1, from 0 to 1.
    pub bit_share: f64,
    /// Share of the variables that may occur in B, from 0 to 1; with 0, B is empty in all rows.
    pub b_density: f64,
    /// Whether rows allocate private variables at all.
    pub aux: bool,
    /// Number of independent parts, synthesised in parallel where the system is extensible.
    pub parts: usize,
    /// Determines the structure.
    pub seed: u64,
    /// Determines the values.
    pub value_seed: u64,
}

impl RandomCircuit {
    /// A circuit with half of its witness 0 or 1 and half of its variables in B, in one part.
    pub fn new(constraints: usize, inputs: usize, seed: u64) -> Self {
        Self {
            constraints,
            inputs,
            bit_share: 0.5,
            b_density: 0.5,
            aux: true,
            parts: 1,
            seed,
            value_seed: seed,
        }
    }

    fn part(&self, k: usize) -> Part<'_> {
        let parts = self.parts.max(1);
        let share = |total: usize| total * (k + 1) / parts - total * k / parts;
        Part {
            circuit: self,
            constraints: share(self.constraints),
            inputs: share(self.inputs),
            structure: stream(self.seed, 2 * k as u64),
            values: stream(self.value_seed, 2 * k as u64 + 1),
            a_pool: vec![(Variable(Index::Input(0)), Scalar::ONE)],
            b_pool: vec![(Variable(Index::Input(0)), Scalar::ONE)],
            drawn: 0,
            altered: None,
        }
    }
}

impl Circuit<Scalar> for RandomCircuit {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let parts = self.parts.max(1);
        if parts == 1 || !CS::is_extensible() {
            return (0..parts).try_for_each(|k| self.part(k).synthesize(cs).map(drop));
        }
        let systems = (0..parts)
            .into_par_iter()
            .map(|k| {
                let mut system = CS::new();
                system.alloc_input(|| "one", || Ok(Scalar::ONE))?;
                self.part(k).synthesize(&mut system)?;
                Ok(system)
            })
            .collect::<Result<Vec<CS>, SynthesisError>>()?;
        systems.iter().for_each(|system| cs.extend(system));
        Ok(())
    }
}

/// A block of random rows, repeated: each repetition refers to variables of the one before it, to
/// an input of its own and to the constant one, and is otherwise the same.
#[derive(Clone, Debug)]
pub struct RepeatedCircuit {
    /// The block; its `parts` are ignored.
    pub block: RandomCircuit,
    /// Number of repetitions.
    pub repetitions: usize,
    /// Whether each repetition has a namespace of its own.
    pub namespaces: bool,
    /// Adds 1 to one coefficient: which repetition, which coefficient in order of use.
    pub altered: Option<(usize, usize)>,
}

impl Circuit<Scalar> for RepeatedCircuit {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut carried = Vec::new();
        for k in 0..self.repetitions {
            let mut part = self.block.part(0);
            part.constraints = self.block.constraints;
            part.inputs = self.block.inputs;
            part.values = stream(self.block.value_seed, 2 * k as u64 + 1);
            part.altered = self.altered.and_then(|(r, c)| (r == k).then_some(c));
            let value = Scalar::random(&mut part.values);
            let input = cs.alloc_input(|| format!("input of {k}"), || Ok(value))?;
            carried.resize(4, (input, value));
            part.a_pool.append(&mut carried);
            part.a_pool.push((input, value));
            carried = match self.namespaces {
                true => part.synthesize(&mut cs.namespace(|| format!("block {k}")))?,
                false => part.synthesize(cs)?,
            };
        }
        Ok(())
    }
}

fn stream(seed: u64, stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// One independent part under synthesis: its variables so far with their values.
struct Part<'c> {
    circuit: &'c RandomCircuit,
    constraints: usize,
    inputs: usize,
    structure: ChaCha20Rng,
    values: ChaCha20Rng,
    a_pool: Vec<(Variable, Scalar)>,
    b_pool: Vec<(Variable, Scalar)>,
    /// Coefficients so far, and which of them to alter.
    drawn: usize,
    altered: Option<usize>,
}

/// A linear combination as terms, with its value.
struct Sum {
    terms: Vec<(Scalar, Variable)>,
    value: Scalar,
}

impl Sum {
    fn lc(&self) -> LinearCombination<Scalar> {
        let zero = LinearCombination::zero();
        self.terms.iter().fold(zero, |lc, term| lc + *term)
    }
}

impl Part<'_> {
    /// Answers with the last four variables.
    fn synthesize<CS: ConstraintSystem<Scalar>>(
        mut self,
        cs: &mut CS,
    ) -> Result<Vec<(Variable, Scalar)>, SynthesisError> {
        let mut allocated = 0;
        for row in 0..self.constraints {
            while allocated < self.inputs && allocated * self.constraints <= row * self.inputs {
                self.input(cs, allocated)?;
                allocated += 1;
            }
            self.row(&mut cs.namespace(|| format!("row {row}")))?;
        }
        (allocated..self.inputs).try_for_each(|k| self.input(cs, k))?;
        Ok(self.a_pool.split_off(self.a_pool.len().saturating_sub(4)))
    }

    fn input<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        k: usize,
    ) -> Result<(), SynthesisError> {
        let value = Scalar::random(&mut self.values);
        let variable = cs.alloc_input(|| format!("input {k}"), || Ok(value))?;
        self.remember(variable, value);
        Ok(())
    }

    fn row<CS: ConstraintSystem<Scalar>>(&mut self, cs: &mut CS) -> Result<(), SynthesisError> {
        if !self.circuit.aux || self.chance(0.05) {
            self.linear_row(cs);
            Ok(())
        } else if self.chance(self.circuit.bit_share) {
            self.bit_row(cs)
        } else {
            self.product_row(cs)
        }
    }

    /// L · k = k·L: holds for any values. Without B it becomes L · 0 = 0.
    fn linear_row<CS: ConstraintSystem<Scalar>>(&mut self, cs: &mut CS) {
        let sum = self.sum(false);
        let factor = if self.circuit.b_density > 0.0 {
            self.coefficient()
        } else {
            Scalar::ZERO
        };
        cs.enforce(
            || "linear",
            |_| sum.lc(),
            |lc| match factor == Scalar::ZERO {
                true => lc,
                false => lc + (factor, CS::one()),
            },
            |lc| lc + (factor, &sum.lc()),
        );
    }

    /// x · (1 − x) = 0, or (x + L) · 0 = 0 for a bit that must stay out of B.
    fn bit_row<CS: ConstraintSystem<Scalar>>(&mut self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bit = Scalar::from(u64::from(self.values.next_u32() & 1));
        let sum = self.sum(false);
        let x = cs.alloc(|| "bit", || Ok(bit))?;
        if self.remember(x, bit) {
            let one = CS::one();
            cs.enforce(|| "is a bit", |lc| lc + x, |lc| lc + one - x, |lc| lc);
        } else {
            cs.enforce(|| "free bit", |_| sum.lc() + x, |lc| lc, |lc| lc);
        }
        Ok(())
    }

    /// L · M = x with a new x, or L · 0 = 0 and a free x where nothing may occur in B.
    fn product_row<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
    ) -> Result<(), SynthesisError> {
        let free = Scalar::random(&mut self.values);
        let a = self.sum(false);
        if self.circuit.b_density <= 0.0 {
            let x = cs.alloc(|| "free", || Ok(free))?;
            self.remember(x, free);
            cs.enforce(|| "empty b", |_| a.lc(), |lc| lc, |lc| lc);
            return Ok(());
        }
        let b = self.sum(true);
        let value = a.value * b.value;
        let x = cs.alloc(|| "product", || Ok(value))?;
        self.remember(x, value);
        cs.enforce(|| "product", |_| a.lc(), |_| b.lc(), |lc| lc + x);
        Ok(())
    }

    /// Makes a variable available to later rows; answers whether B may use it.
    fn remember(&mut self, variable: Variable, value: Scalar) -> bool {
        self.a_pool.push((variable, value));
        let in_b = self.chance(self.circuit.b_density);
        if in_b {
            self.b_pool.push((variable, value));
        }
        in_b
    }

    fn chance(&mut self, probability: f64) -> bool {
        f64::from(self.structure.next_u32()) < probability * f64::from(u32::MAX)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.structure.next_u64() % bound.max(1) as u64) as usize
    }

    /// Up to four terms over the variables so far, recent ones preferred, repetitions allowed.
    fn sum(&mut self, in_b: bool) -> Sum {
        let count = match self.below(16) {
            0 => 0,
            n => 1 + n % 4,
        };
        let mut sum = Sum {
            terms: Vec::with_capacity(count),
            value: Scalar::ZERO,
        };
        for _ in 0..count {
            let coefficient = self.coefficient();
            let recent = self.chance(0.5);
            let len = if in_b { &self.b_pool } else { &self.a_pool }.len();
            let back = self.below(if recent { len.min(4) } else { len });
            let pool = if in_b { &self.b_pool } else { &self.a_pool };
            let (variable, value) = pool[len - 1 - back];
            sum.terms.push((coefficient, variable));
            sum.value += coefficient * value;
        }
        sum
    }

    fn coefficient(&mut self) -> Scalar {
        let alteration = match self.altered == Some(self.drawn) {
            true => Scalar::ONE,
            false => Scalar::ZERO,
        };
        self.drawn += 1;
        alteration
            + match self.below(20) {
                0..10 => Scalar::ONE,
                10..13 => -Scalar::ONE,
                13..16 => Scalar::from(1 << self.below(32)),
                16..19 => Scalar::from(0x9e37_79b9 + self.below(50) as u64)
                    .square()
                    .square(),
                _ => Scalar::ZERO,
            }
    }
}
