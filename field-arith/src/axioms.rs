//! The field axioms, checked over anything that computes field operations on arrays: a CPU type,
//! an emulated kernel, interpreted PTX, a GPU.
//!
//! A machine implements [`FieldMachine`]; [`check`] runs every axiom on every rotation of the
//! samples against each other, so that edge values meet edge values. [`CpuMachine`] is the machine
//! of a type on this processor, and [`field_axioms!`](crate::field_axioms) makes it a test.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use crate::backend::{Backend, Native};
use crate::fp2::Quadratic;
use crate::montgomery::Mont;
use crate::ops::{DivisionSteps, FieldOps};
use crate::params::FieldParams;

/// An elementwise operation; unary ones ignore the second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// -a
    Neg,
    /// 2a
    Double,
    /// ab
    Mul,
    /// ab by the other algorithm
    MulKaratsuba,
    /// a^2
    Sqr,
    /// 1/a, or 0 for 0
    Invert,
    /// ab - ba, which must be zero, with one reduction where the field has one
    Commutator,
}

/// Computes elementwise.
pub trait FieldMachine {
    /// Element of the field.
    type Element: TestElement;
    /// What can go wrong with the machine itself.
    type Error;
    /// op(a\[i\], b\[i\]) for all i, or `None` if this machine has no such operation.
    fn run(
        &mut self,
        op: Operation,
        a: &[Self::Element],
        b: &[Self::Element],
    ) -> Result<Option<Vec<Self::Element>>, Self::Error>;
}

/// A field whose values the axioms can be tried on.
pub trait TestElement: FieldOps {
    /// The representative lies in the range that operations promise.
    fn in_range(&self) -> bool;
    /// Values at the edges of the range: 0, 1, p - 1, and for lazy fields p and 2p - 1.
    fn edge_values() -> Vec<Self>;
    /// A value from random words; the words may come from any generator.
    fn from_words(next: &mut dyn FnMut() -> u32) -> Self;
}

impl<P: FieldParams<N>, const N: usize> TestElement for Mont<P, N>
where
    Native: Backend<N>,
    Self: DivisionSteps,
{
    fn in_range(&self) -> bool {
        <Native as Backend<N>>::sub(self.limbs(), &P::BOUND).1 != 0
    }

    fn edge_values() -> Vec<Self> {
        let mut unit = [0; N];
        unit[0] = 1;
        let unit = Self::from_limbs(unit);
        let last = Self::from_limbs(crate::params::minus_one(&P::MODULUS));
        let mut values = [Self::ZERO, Self::ONE, Self::ONE.neg(), unit, last].to_vec();
        if P::LAZY {
            values.push(Self::from_limbs(P::MODULUS));
            values.push(Self::from_limbs(P::BOUND).sub(&unit));
        }
        values
    }

    fn from_words(next: &mut dyn FnMut() -> u32) -> Self {
        Self::from_integer(&core::array::from_fn(|_| next()))
    }
}

impl<P: FieldParams<N>, const N: usize> TestElement for Quadratic<P, N>
where
    Native: Backend<N>,
    Mont<P, N>: DivisionSteps,
{
    fn in_range(&self) -> bool {
        self.c0.in_range() && self.c1.in_range()
    }

    fn edge_values() -> Vec<Self> {
        let base = Mont::<P, N>::edge_values();
        let pairs = base
            .iter()
            .flat_map(|&c0| base.iter().map(move |&c1| Self::new(c0, c1)));
        pairs.collect()
    }

    fn from_words(next: &mut dyn FnMut() -> u32) -> Self {
        Self::new(Mont::from_words(next), Mont::from_words(next))
    }
}

/// A field type on this processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuMachine<F>(PhantomData<F>);

impl<F> CpuMachine<F> {
    /// The machine of the type `F`.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F: TestElement> FieldMachine for CpuMachine<F> {
    type Element = F;
    type Error = core::convert::Infallible;

    fn run(&mut self, op: Operation, a: &[F], b: &[F]) -> Result<Option<Vec<F>>, Self::Error> {
        let one = |a: &F, b: &F| match op {
            Operation::Add => a.add(b),
            Operation::Sub => a.sub(b),
            Operation::Neg => a.neg(),
            Operation::Double => a.double(),
            Operation::Mul => a.mul(b),
            Operation::MulKaratsuba => a.mul_karatsuba(b),
            Operation::Sqr => a.sqr(),
            Operation::Invert => a.invert(),
            Operation::Commutator => a.mul_sub_mul(b, b, a),
        };
        Ok(Some(a.iter().zip(b).map(|(a, b)| one(a, b)).collect()))
    }
}

/// An axiom that does not hold, or a machine that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation<F, E> {
    /// The two sides differ for these operands.
    Axiom {
        /// The axiom.
        axiom: &'static str,
        /// Operands a, b, c.
        operands: [F; 3],
        /// Left and right side.
        sides: [F; 2],
    },
    /// A result is outside the promised range.
    Range {
        /// The operation.
        operation: Operation,
        /// Operands a, b.
        operands: [F; 2],
        /// The result.
        result: F,
    },
    /// The machine returned another number of results than operands.
    Length {
        /// The operation.
        operation: Operation,
        /// Number of operands.
        expected: usize,
        /// Number of results.
        found: usize,
    },
    /// The machine itself failed.
    Machine(E),
}

impl<F: fmt::Debug, E: fmt::Display> fmt::Display for Violation<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axiom {
                axiom,
                operands,
                sides,
            } => {
                write!(
                    f,
                    "{axiom}: {:?} differs from {:?} for {operands:?}",
                    sides[0], sides[1]
                )
            }
            Self::Range {
                operation,
                operands,
                result,
            } => {
                write!(
                    f,
                    "{operation:?} of {operands:?} leaves the range: {result:?}"
                )
            }
            Self::Length {
                operation,
                expected,
                found,
            } => {
                write!(
                    f,
                    "{operation:?} of {expected} operands gave {found} results"
                )
            }
            Self::Machine(error) => write!(f, "{error}"),
        }
    }
}

/// Edge values and `random` random ones, from a seed.
pub fn samples<F: TestElement>(seed: u64, random: usize) -> Vec<F> {
    // SplitMix64 (Steele, Lea, Flood 2014)
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as u32
    };
    let mut values = F::edge_values();
    values.extend((0..random).map(|_| F::from_words(&mut next)));
    values
}

struct Checker<'a, M: FieldMachine> {
    machine: &'a mut M,
    a: Vec<M::Element>,
    b: Vec<M::Element>,
    c: Vec<M::Element>,
    checked: usize,
}

type Outcome<T, M> = Result<T, Violation<<M as FieldMachine>::Element, <M as FieldMachine>::Error>>;

impl<M: FieldMachine> Checker<'_, M> {
    fn run(
        &mut self,
        operation: Operation,
        a: &[M::Element],
        b: &[M::Element],
    ) -> Outcome<Option<Vec<M::Element>>, M> {
        let Some(z) = self
            .machine
            .run(operation, a, b)
            .map_err(Violation::Machine)?
        else {
            return Ok(None);
        };
        if z.len() != a.len() {
            return Err(Violation::Length {
                operation,
                expected: a.len(),
                found: z.len(),
            });
        }
        match (0..z.len()).find(|&i| !z[i].in_range()) {
            Some(i) => Err(Violation::Range {
                operation,
                operands: [a[i], b[i]],
                result: z[i],
            }),
            None => Ok(Some(z)),
        }
    }

    fn same(
        &mut self,
        axiom: &'static str,
        left: Option<Vec<M::Element>>,
        right: Option<Vec<M::Element>>,
    ) -> Outcome<(), M> {
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(());
        };
        for i in 0..left.len() {
            if left[i] != right[i] {
                let operands = [self.a[i], self.b[i], self.c[i]];
                return Err(Violation::Axiom {
                    axiom,
                    operands,
                    sides: [left[i], right[i]],
                });
            }
        }
        self.checked += 1;
        Ok(())
    }

    fn additive(&mut self) -> Outcome<(), M> {
        use Operation::{Add, Double, Neg, Sub};
        let (a, b, c) = (self.a.clone(), self.b.clone(), self.c.clone());
        let zero: Vec<_> = a.iter().map(|_| M::Element::ZERO).collect();
        let Some(ab) = self.run(Add, &a, &b)? else {
            return Ok(());
        };
        let ba = self.run(Add, &b, &a)?;
        self.same("a + b = b + a", Some(ab.clone()), ba)?;
        let left = self.run(Add, &ab, &c)?;
        if let Some(bc) = self.run(Add, &b, &c)? {
            let right = self.run(Add, &a, &bc)?;
            self.same("(a + b) + c = a + (b + c)", left, right)?;
        }
        let sum = self.run(Add, &a, &zero)?;
        self.same("a + 0 = a", sum, Some(a.clone()))?;
        let difference = self.run(Sub, &ab, &b)?;
        self.same("(a + b) - b = a", difference, Some(a.clone()))?;
        let difference = self.run(Sub, &a, &a)?;
        self.same("a - a = 0", difference, Some(zero.clone()))?;
        let (opposite, difference) = (self.run(Neg, &a, &a)?, self.run(Sub, &zero, &a)?);
        self.same("-a = 0 - a", opposite, difference)?;
        let (twice, sum) = (self.run(Double, &a, &a)?, self.run(Add, &a, &a)?);
        self.same("2a = a + a", twice, sum)
    }

    fn multiplicative(&mut self) -> Outcome<(), M> {
        use Operation::{Add, Commutator, Invert, Mul, MulKaratsuba, Sqr};
        let (a, b, c) = (self.a.clone(), self.b.clone(), self.c.clone());
        let zero: Vec<_> = a.iter().map(|_| M::Element::ZERO).collect();
        let one: Vec<_> = a.iter().map(|_| M::Element::ONE).collect();
        let Some(ab) = self.run(Mul, &a, &b)? else {
            return Ok(());
        };
        let ba = self.run(Mul, &b, &a)?;
        self.same("ab = ba", Some(ab.clone()), ba)?;
        let product = self.run(MulKaratsuba, &a, &b)?;
        self.same("both products ab agree", product, Some(ab.clone()))?;
        let left = self.run(Mul, &ab, &c)?;
        if let Some(bc) = self.run(Mul, &b, &c)? {
            let right = self.run(Mul, &a, &bc)?;
            self.same("(ab)c = a(bc)", left, right)?;
            if let (Some(sum), Some(ac)) = (self.run(Add, &a, &b)?, self.run(Mul, &a, &c)?) {
                let (left, right) = (self.run(Mul, &sum, &c)?, self.run(Add, &ac, &bc)?);
                self.same("(a + b)c = ac + bc", left, right)?;
            }
        }
        let product = self.run(Mul, &a, &one)?;
        self.same("1a = a", product, Some(a.clone()))?;
        let product = self.run(Mul, &a, &zero)?;
        self.same("0a = 0", product, Some(zero.clone()))?;
        let (square, product) = (self.run(Sqr, &a, &a)?, self.run(Mul, &a, &a)?);
        self.same("a^2 = aa", square, product)?;
        let commutator = self.run(Commutator, &a, &b)?;
        self.same("ab - ba = 0", commutator, Some(zero))?;
        if let Some(inverse) = self.run(Invert, &a, &a)? {
            let unit_or_zero = |x: &M::Element| if x.is_zero() { *x } else { M::Element::ONE };
            let expected = a.iter().map(unit_or_zero).collect();
            let product = self.run(Mul, &a, &inverse)?;
            self.same("a (1/a) = 1, or 0 for a = 0", product, Some(expected))?;
        }
        Ok(())
    }
}

/// Runs all axioms with b and c the samples rotated against a by several distances. Returns the
/// number of axioms that were checked (each over all samples).
///
/// # Errors
/// The first [`Violation`] found, with its operands.
pub fn check<M: FieldMachine>(machine: &mut M, samples: &[M::Element]) -> Outcome<usize, M> {
    let mut checked = 0;
    for distance in [0, 1, 2, 3, 5, 7] {
        let mut b = samples.to_vec();
        b.rotate_left(distance % samples.len().max(1));
        let mut c = b.clone();
        c.rotate_left((2 * distance + 1) % samples.len().max(1));
        let mut checker = Checker {
            machine: &mut *machine,
            a: samples.to_vec(),
            b,
            c,
            checked,
        };
        checker.additive()?;
        checker.multiplicative()?;
        checked = checker.checked;
    }
    Ok(checked)
}

/// Defines a test that runs the axioms over field types on this processor:
/// `field_axioms! { fp_is_a_field: Fp; fr_is_a_field: Fr; }`.
#[macro_export]
macro_rules! field_axioms {
    ($($name:ident: $field:ty;)+) => {$(
        #[test]
        fn $name() {
            const SEED: u64 = 0x5eed_a41f;
            let samples = $crate::axioms::samples::<$field>(SEED, 40);
            let mut machine = $crate::axioms::CpuMachine::<$field>::new();
            let checked = $crate::axioms::check(&mut machine, &samples);
            assert!(matches!(checked, Ok(1..)), "seed {SEED:#x}: {checked:?}");
        }
    )+};
}
