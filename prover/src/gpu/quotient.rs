//! The quotient on a device: six transforms, no C.
//!
//! The identity is that of [`crate::quotient`](mod@crate::quotient) with γ = w_2n, so that s = γⁿ = −1 and
//! h_i = (C_i − D_i)/2. Transforms on this coset cost what plain ones cost (see `cuzk_kernels::ntt`). The
//! factors n that the inverse transforms leave are taken out in two places: A and B on the coset are n
//! times too large, so that their product is multiplied by 1/n²; the last two transforms leave another n,
//! so that the difference is multiplied by 1/(2n).

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{FixedFr, Fr};
use cuzk_kernels::GlobalMut;
use cuzk_kernels::ntt::{ntt_multiply, ntt_multiply_scaled, ntt_quotient};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use ff::{Field, PrimeField};

use super::ntt::{At, Direction, Transform, TransformError, fixed};

/// The quotient of systems on a domain of one size.
pub struct Quotient {
    runtime: Arc<dyn Runtime>,
    log2: u32,
    to_coefficients: Transform,
    to_coset: Transform,
    from_coset: Transform,
    /// 1/n², then 1/(2n).
    scales: DeviceBuffer<FixedFr>,
}

impl Quotient {
    /// Prepares the domain of 2^`log2` points.
    ///
    /// # Errors
    /// When the domain does not exist or is too large, or the device fails.
    pub fn new(runtime: &Arc<dyn Runtime>, log2: u32) -> Result<Self, TransformError> {
        let inverse = Scalar::TWO_INV.pow_vartime([u64::from(log2)]);
        let scales = [fixed(inverse.square()), fixed(inverse * Scalar::TWO_INV)];
        Ok(Quotient {
            runtime: runtime.clone(),
            log2,
            to_coefficients: Transform::new(runtime, log2, Direction::Inverse, At::Roots)?,
            to_coset: Transform::new(runtime, log2, Direction::Forward, At::OddRoots)?,
            from_coset: Transform::new(runtime, log2, Direction::Inverse, At::OddRoots)?,
            scales: DeviceBuffer::from_slice(runtime, &scales)?,
        })
    }

    /// Binary logarithm of the domain's size.
    pub fn log2(&self) -> u32 {
        self.log2
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
        let n = 1u32 << self.log2;
        let blocks = n.div_ceil(ntt_multiply::THREADS);
        let [to_coset_scale, to_h_scale] = [0, 1].map(|i| self.scales.global().offset(i));
        self.runtime
            .launch(&ntt_multiply::launch(blocks, n, a.read(), b.read(), c))?;
        for values in [a, b] {
            self.to_coefficients.dif(values.read(), values)?;
            self.to_coset.dit(values.read(), values)?;
        }
        self.to_coefficients.dif(c.read(), c)?;
        let product = ntt_multiply_scaled::launch(blocks, n, to_coset_scale, a.read(), b.read(), a);
        self.runtime.launch(&product)?;
        self.from_coset.dif(a.read(), a)?;
        self.runtime.launch(&ntt_quotient::launch(
            blocks,
            self.log2,
            to_h_scale,
            c.read(),
            a.read(),
            b,
        ))
    }
}
