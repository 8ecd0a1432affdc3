//! Transforms and the quotient.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{Fr, casts};
use cuzk_kernels::Element;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime};
use ff::Field;

use super::{MeasureError, Measured, device_time, inputs};
use crate::gpu::ntt::{At, Direction, Layout, Transform, TransformError};
use crate::gpu::quotient::Quotient;
use crate::ntt::{Domain, root_of_unity};

/// Wide multiply-adds of a product by a fixed factor, and of one of two elements.
const FIXED: f64 = 93.0;
const PRODUCT: f64 = 112.0;
/// Largest quotient that is compared with the host's.
const CHECKED_LOG2: u32 = 20;

/// A transform as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Coefficients to values, natural to bit-reversed order.
    Forward,
    /// Values to coefficients, natural to bit-reversed order.
    Inverse,
    /// Coefficients to values on the coset, bit-reversed to natural order.
    Coset,
    /// Values on the coset to coefficients, natural to bit-reversed order.
    InverseCoset,
}

impl Kind {
    /// All.
    pub const ALL: [Kind; 4] = [
        Kind::Forward,
        Kind::Inverse,
        Kind::Coset,
        Kind::InverseCoset,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Forward => "NTT forward",
            Kind::Inverse => "NTT inverse",
            Kind::Coset => "NTT coset",
            Kind::InverseCoset => "NTT inverse coset",
        }
    }

    fn direction(self) -> Direction {
        match self {
            Kind::Forward | Kind::Coset => Direction::Forward,
            Kind::Inverse | Kind::InverseCoset => Direction::Inverse,
        }
    }

    fn at(self) -> At {
        match self {
            Kind::Forward | Kind::Inverse => At::Roots,
            Kind::Coset | Kind::InverseCoset => At::OddRoots,
        }
    }

    /// What comes out at i when u^j for j < n, in natural order, goes in: a geometric sum.
    fn expected(self, u: Scalar, log2: u32, i: u64) -> Result<Scalar, TransformError> {
        let mut w = root_of_unity(log2 + 1)?;
        if self.direction() == Direction::Inverse {
            w = w.pow_vartime([(2u64 << log2) - 1]);
        }
        let (ratio, factor) = match self {
            Kind::Forward | Kind::Inverse => (u * w.pow_vartime([2 * i]), Scalar::ONE),
            Kind::Coset => (u * w.pow_vartime([2 * i + 1]), Scalar::ONE),
            Kind::InverseCoset => (u * w.pow_vartime([2 * i]), w.pow_vartime([i])),
        };
        let inverse = Option::<Scalar>::from((ratio - Scalar::ONE).invert());
        let sum =
            (ratio.pow_vartime([1u64 << log2]) - Scalar::ONE) * inverse.unwrap_or(Scalar::ZERO);
        Ok(factor * sum)
    }
}

/// One transform of 2^log2 elements, with the layout that is used or a chosen one.
///
/// # Errors
/// When the device fails, computes wrongly, or there is no such transform or layout.
pub fn transform(
    runtime: &Arc<dyn Runtime>,
    log2: u32,
    kind: Kind,
    layout: Option<Layout>,
    repetitions: usize,
) -> Result<Measured, MeasureError> {
    let layout = layout.unwrap_or(Layout::of(log2));
    let transform = Transform::with_layout(runtime, log2, kind.direction(), kind.at(), layout)?;
    let n = 1usize << log2;
    let u = Scalar::from(0x1234_5678_9abc_def1);
    let mut values = inputs::powers(u, n);
    if kind == Kind::Coset {
        reverse(&mut values, log2);
    }
    let from = DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(&values))?;
    let to = DeviceBuffer::<Fr>::new(runtime, n)?;
    let batch = (1 << 21 >> log2).clamp(1, 20);
    let seconds = device_time(runtime, repetitions, batch, || match kind {
        Kind::Coset => transform.dit(from.global(), to.global_mut()),
        _ => transform.dif(from.global(), to.global_mut()),
    })?;
    let mut found = vec![Fr::ZERO; 1];
    for i in [0, 1, n / 3, n / 2, n - 1] {
        let position = if kind == Kind::Coset {
            i
        } else {
            reversed(i, log2)
        };
        to.download(position, &mut found)?;
        if casts::to_blst(&found) != [kind.expected(u, log2, i as u64)?] {
            return Err(MeasureError::Wrong(format!("{} of 2^{log2}", kind.name())));
        }
    }
    let products = transform.products() * n as f64;
    Ok(Measured {
        work: kind.name().to_owned(),
        log2: Some(log2),
        seconds,
        operations: n as f64,
        wide: FIXED * products,
        bytes: (2 * transform.launches() * n * Fr::BYTES as usize) as f64,
    })
}

/// The quotient on a domain of 2^log2 points.
///
/// # Errors
/// When the device fails, computes wrongly, or there is no such domain.
pub fn quotient(
    runtime: &Arc<dyn Runtime>,
    log2: u32,
    repetitions: usize,
) -> Result<Measured, MeasureError> {
    let n = 1usize << log2;
    let quotient = Quotient::new(runtime, log2)?;
    let mut a = inputs::random_scalars(n);
    let mut b: Vec<Scalar> = a.iter().rev().copied().collect();
    let [on_a, on_b] =
        [&a, &b].map(|values| DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(values)));
    let (on_a, on_b, on_c) = (on_a?, on_b?, DeviceBuffer::<Fr>::new(runtime, n)?);
    let run = || quotient.run(on_a.global_mut(), on_b.global_mut(), on_c.global_mut());
    run()?;
    if log2 <= CHECKED_LOG2 {
        let domain = Domain::new(log2).map_err(TransformError::from)?;
        let expected =
            crate::quotient::quotient(&domain, &mut a, &mut b).map_err(TransformError::from)?;
        if casts::to_blst(&on_b.to_vec()?) != expected {
            return Err(MeasureError::Wrong(format!("the quotient of 2^{log2}")));
        }
    }
    drop((a, b));
    let seconds = device_time(runtime, repetitions, 1, run)?;
    let (products, launches) = quotient.products();
    Ok(Measured {
        work: "quotient".to_owned(),
        log2: Some(log2),
        seconds,
        operations: n as f64,
        wide: (FIXED * (products + 1.0) + 2.0 * PRODUCT) * n as f64,
        bytes: ((2 * launches + 5) * n * Fr::BYTES as usize) as f64,
    })
}

fn reversed(i: usize, log2: u32) -> usize {
    i.reverse_bits()
        .checked_shr(usize::BITS - log2)
        .unwrap_or(0)
}

fn reverse(values: &mut [Scalar], log2: u32) {
    for i in 0..values.len() {
        let j = reversed(i, log2);
        if i < j {
            values.swap(i, j);
        }
    }
}
