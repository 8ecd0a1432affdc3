//! The quotient on a device: six transforms, no C.
//!
//! The identity is that of [`crate::quotient`](mod@crate::quotient) with γ = w_2n, so that s = γⁿ = −1 and
//! h_i = (C_i − D_i)/2. Transforms on this coset cost what plain ones cost (see `cuzk_kernels::ntt`). The
//! factors n that the inverse transforms leave are taken out in two places: the twiddle factors of the
//! transform to the coset contain 1/n, and the difference of the last two is multiplied by 1/(2n). The two
//! pointwise products happen where the transforms of their results read their input.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{FixedFr, Fr};
use cuzk_kernels::GlobalMut;
use cuzk_kernels::ntt::ntt_quotient;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use ff::{Field, PrimeField};

use super::ntt::{At, Direction, Transform, TransformError};
use super::twiddles::fixed;

/// Device memory that the tables for a domain of 2^`log2` points take.
pub fn table_bytes(log2: u32) -> u64 {
    Transform::table_bytes(log2, At::Roots) + 2 * Transform::table_bytes(log2, At::OddRoots)
}

/// The quotient of systems on a domain of one size.
pub struct Quotient {
    runtime: Arc<dyn Runtime>,
    log2: u32,
    to_coefficients: Transform,
    to_coset: Transform,
    from_coset: Transform,
    /// 1/(2n).
    scale: DeviceBuffer<FixedFr>,
}

impl Quotient {
    /// Prepares the domain of 2^`log2` points.
    ///
    /// # Errors
    /// When the domain does not exist or is too large, or the device fails.
    pub fn new(runtime: &Arc<dyn Runtime>, log2: u32) -> Result<Self, TransformError> {
        let inverse = Scalar::TWO_INV.pow_vartime([u64::from(log2)]);
        Ok(Quotient {
            runtime: runtime.clone(),
            log2,
            to_coefficients: Transform::new(runtime, log2, Direction::Inverse, At::Roots)?,
            to_coset: Transform::scaled_on_coset(runtime, log2, Direction::Forward, inverse)?,
            from_coset: Transform::new(runtime, log2, Direction::Inverse, At::OddRoots)?,
            scale: DeviceBuffer::from_slice(runtime, &[fixed(inverse * Scalar::TWO_INV)])?,
        })
    }

    /// Binary logarithm of the domain's size.
    pub fn log2(&self) -> u32 {
        self.log2
    }

    /// Products by fixed factors that the transforms take for each element of the domain, and how often an
    /// array passes through memory.
    pub(super) fn products(&self) -> (f64, usize) {
        let all = [
            (3.0, &self.to_coefficients),
            (2.0, &self.to_coset),
            (1.0, &self.from_coset),
        ];
        let products = all.iter().map(|(times, t)| times * t.products()).sum();
        let launches = all.iter().map(|(times, t)| *times as usize * t.launches());
        (products, launches.sum())
    }

    /// The n coefficients of h, lowest first, in `b`, from the values of A and B on the n-th roots of unity
    /// in natural order, padded with zeros. All three arrays have n elements; `c` may have any content, `a`
    /// and `c` are left without meaning.
    ///
    /// # Errors
    /// When the device fails.
    pub fn run(
        &self,
        a: GlobalMut<Fr>,
        b: GlobalMut<Fr>,
        c: GlobalMut<Fr>,
    ) -> Result<(), RuntimeError> {
        self.to_coefficients.dif_of_product(a.read(), b.read(), c)?;
        self.to_coefficients.dif_both(a, b)?;
        self.to_coset.dit_both(a, b)?;
        self.from_coset.dif_of_product(a.read(), b.read(), a)?;
        let blocks = (1u32 << self.log2).div_ceil(ntt_quotient::THREADS);
        let scale = self.scale.global();
        let difference = ntt_quotient::launch(blocks, self.log2, scale, c.read(), a.read(), b);
        self.runtime.launch(&difference)
    }
}
