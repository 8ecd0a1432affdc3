//! The circuit's polynomials at τ, from one pass over its rows.

use super::{
    SetupError,
    waste::{Secret, ToxicWaste},
};
use crate::ntt::root_of_unity;
use bellpepper_core::{Circuit, LinearCombination};
use cuzk_circuit::{ConstraintVisitor, Scalar, Shape, stream_constraints};
use ff::Field;
use rayon::prelude::*;

/// Lagrange values that one task computes with a common inversion.
const BLOCK: usize = 1 << 12;

/// uᵢ(τ), vᵢ(τ), wᵢ(τ) for all variables of one kind.
pub(super) struct Polynomials {
    pub(super) u: Secret,
    pub(super) v: Secret,
    pub(super) w: Secret,
}

/// All that the parameters depend on besides the secrets.
pub(super) struct Evaluations {
    pub(super) domain_log2: u32,
    pub(super) inputs: Polynomials,
    pub(super) aux: Polynomials,
}

/// Evaluates the polynomials of a circuit of this shape.
pub(super) fn evaluate<C: Circuit<Scalar>>(
    circuit: C,
    shape: &Shape,
    waste: &ToxicWaste,
) -> Result<Evaluations, SetupError> {
    let log2 = shape.domain_log2();
    let lagrange = lagrange(log2, shape.rows(), waste.tau)?;
    let mut evaluator = Evaluator {
        lagrange: &lagrange,
        rows: 0,
        inputs: Sums::with_capacity(shape.inputs),
        aux: Sums::with_capacity(shape.aux),
    };
    stream_constraints(circuit, &mut evaluator)?;
    if evaluator.rows != shape.rows() {
        return Err(SetupError::Unstable {
            first: shape.rows(),
            second: evaluator.rows,
        });
    }
    Ok(Evaluations {
        domain_log2: log2,
        inputs: evaluator.inputs.finish(),
        aux: evaluator.aux.finish(),
    })
}

/// Lⱼ(τ) = (τⁿ − 1) / n · ωʲ / (τ − ωʲ) for the first `rows` points.
fn lagrange(log2: u32, rows: usize, tau: Scalar) -> Result<Secret, SetupError> {
    let lagrange = Lagrange::new(log2, tau)?;
    let mut values = Secret::zeros(rows);
    lagrange.fill(0, &mut values.0);
    Ok(values)
}

/// The Lagrange polynomials of a domain at τ.
pub(super) struct Lagrange {
    tau: Scalar,
    root: Scalar,
    inverse_root: Scalar,
    /// (τⁿ − 1) / n.
    scale: Scalar,
}

impl Lagrange {
    /// The domain of 2^`log2` points.
    pub(super) fn new(log2: u32, tau: Scalar) -> Result<Self, SetupError> {
        let root = root_of_unity(log2)?;
        let n = 1u64 << log2;
        let vanishing = tau.pow_vartime([n]) - Scalar::ONE;
        if vanishing.is_zero_vartime() {
            return Err(SetupError::Waste {
                secret: "tau",
                value: "a root of unity of the domain's order",
            });
        }
        Ok(Self {
            tau,
            root,
            inverse_root: root.invert().unwrap_or(Scalar::ZERO),
            scale: vanishing * Scalar::from(n).invert().unwrap_or(Scalar::ZERO),
        })
    }

    /// The values of the polynomials from number `first` on, in parallel.
    pub(super) fn fill(&self, first: usize, values: &mut [Scalar]) {
        values
            .par_chunks_mut(BLOCK)
            .enumerate()
            .for_each(|(k, values)| self.fill_here(first + k * BLOCK, values));
    }

    /// As [`Lagrange::fill`], by this thread alone.
    pub(super) fn fill_here(&self, first: usize, values: &mut [Scalar]) {
        for (k, values) in values.chunks_mut(BLOCK).enumerate() {
            let point = self.root.pow_vartime([(first + k * BLOCK) as u64]);
            self.block(point, values);
        }
    }

    /// The values of consecutive points from `point` on, with one inversion.
    fn block(&self, mut point: Scalar, values: &mut [Scalar]) {
        let mut product = Scalar::ONE;
        for value in values.iter_mut() {
            *value = product;
            product *= self.tau - point;
            point *= self.root;
        }
        // τ is none of the points, so the product is not zero.
        let mut inverse = product.invert().unwrap_or(Scalar::ZERO) * self.scale;
        for value in values.iter_mut().rev() {
            point *= self.inverse_root;
            let before = *value;
            *value = inverse * before * point;
            inverse *= self.tau - point;
        }
    }
}

/// Growing sums for the variables of one kind.
struct Sums {
    u: Vec<Scalar>,
    v: Vec<Scalar>,
    w: Vec<Scalar>,
}

impl Sums {
    fn with_capacity(variables: usize) -> Self {
        let empty = || Vec::with_capacity(variables);
        Self {
            u: empty(),
            v: empty(),
            w: empty(),
        }
    }

    fn alloc(&mut self) {
        for sums in [&mut self.u, &mut self.v, &mut self.w] {
            sums.push(Scalar::ZERO);
        }
    }

    fn finish(self) -> Polynomials {
        Polynomials {
            u: Secret(self.u),
            v: Secret(self.v),
            w: Secret(self.w),
        }
    }
}

struct Evaluator<'a> {
    lagrange: &'a [Scalar],
    rows: usize,
    inputs: Sums,
    aux: Sums,
}

impl ConstraintVisitor for Evaluator<'_> {
    fn alloc_input(&mut self, _: usize) {
        self.inputs.alloc();
    }

    fn alloc_aux(&mut self, _: usize) {
        self.aux.alloc();
    }

    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    ) {
        let row = self.rows;
        self.rows += 1;
        // Surplus rows of an unstable circuit are counted and reported.
        let Some(value) = self.lagrange.get(row) else {
            return;
        };
        add(a, value, &mut self.inputs.u, &mut self.aux.u);
        add(b, value, &mut self.inputs.v, &mut self.aux.v);
        add(c, value, &mut self.inputs.w, &mut self.aux.w);
    }
}

/// Adds `value` times each coefficient to its variable's sum.
fn add(
    combination: &LinearCombination<Scalar>,
    value: &Scalar,
    inputs: &mut [Scalar],
    aux: &mut [Scalar],
) {
    let minus_one = -Scalar::ONE;
    let accumulate = |sum: Option<&mut Scalar>, coefficient: &Scalar| {
        let Some(sum) = sum else { return };
        if *coefficient == Scalar::ONE {
            *sum += value;
        } else if *coefficient == minus_one {
            *sum -= value;
        } else {
            *sum += value * coefficient;
        }
    };
    for (index, coefficient) in combination.iter_inputs() {
        accumulate(inputs.get_mut(*index), coefficient);
    }
    for (index, coefficient) in combination.iter_aux() {
        accumulate(aux.get_mut(*index), coefficient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntt::{Domain, Points};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn lagrange_values_interpolate_any_polynomial_at_tau() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        for log2 in [0, 1, 5, 13] {
            let domain = Domain::new(log2).unwrap();
            let tau = Scalar::random(&mut rng);
            let coefficients: Vec<Scalar> = (0..domain.len())
                .map(|_| Scalar::random(&mut rng))
                .collect();
            let expected = coefficients
                .iter()
                .rev()
                .fold(Scalar::ZERO, |value, c| value * tau + c);
            let mut values = coefficients;
            domain.evaluate(&mut values, Points::Subgroup).unwrap();
            let lagrange = lagrange(log2, domain.len(), tau).unwrap();
            let sum: Scalar = values.iter().zip(lagrange.iter()).map(|(y, l)| y * l).sum();
            assert_eq!(sum, expected, "2^{log2}");
        }
    }

    #[test]
    fn tau_on_the_domain_is_refused() {
        let root = root_of_unity(4).unwrap();
        assert!(matches!(
            lagrange(4, 16, root),
            Err(SetupError::Waste { secret: "tau", .. })
        ));
    }
}
