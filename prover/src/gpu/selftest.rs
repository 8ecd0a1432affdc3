//! What a device must get right before it is trusted: primitives, field axioms, transforms and sums, each
//! against the host.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use blstrs::Scalar;
use cuzk_field::casts::{self, Counterpart};
use cuzk_field::{Affine, Fp, Fp2, Fr, G1, G2, axioms};
use cuzk_kernels::fields::{FieldKernels, RuntimeMachine};
use cuzk_kernels::primitives::check_primitives;
use cuzk_kernels::runtime::{Arena, DeviceBuffer, Runtime, RuntimeError};
use ff::Field;
use group::{Curve, Group};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::msm::{GpuCurve, MsmError, Plan, Scalars, Sorted};
use super::ntt::TransformError;
use super::quotient::Quotient;
use crate::{msm, ntt::Domain};

/// A device that failed its test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelftestError {
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A transform could not be made.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A sum could not be made.
    #[error(transparent)]
    Msm(#[from] MsmError),
    /// A result differs from the host's.
    #[error("{0}")]
    Wrong(String),
}

/// A group of checks and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// Wall time.
    pub time: Duration,
}

type Work = fn(&Arc<dyn Runtime>, Size) -> Result<(), SelftestError>;

const CHECKS: [(&str, Work); 6] = [
    ("integer and warp primitives", |runtime, _| {
        check_primitives(runtime).map_err(|error| SelftestError::Wrong(error.to_string()))
    }),
    ("field axioms of Fr", |runtime, size| {
        field::<Fr>(runtime, size)
    }),
    ("field axioms of Fp and Fp2", |runtime, size| {
        field::<Fp>(runtime, size)?;
        field::<Fp2>(runtime, size)
    }),
    ("transforms and quotient", transforms),
    ("sums in G1", |runtime, size| {
        sums::<G1>(runtime, size, msm::g1)
    }),
    ("sums in G2", |runtime, size| {
        sums::<G2>(runtime, size, msm::g2)
    }),
];

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Enough to run every kernel, for the emulator.
    Small,
    /// Some seconds on a card.
    Full,
}

/// Runs all checks on a device; stops at the first that fails.
///
/// # Errors
/// What the device got wrong, or its failure.
pub fn selftest(runtime: &Arc<dyn Runtime>, size: Size) -> Result<Vec<Check>, SelftestError> {
    CHECKS
        .iter()
        .map(|&(name, work)| {
            let start = Instant::now();
            work(runtime, size)?;
            Ok(Check {
                name,
                time: start.elapsed(),
            })
        })
        .collect()
}

const SEED: u64 = 0x5e1f_7e57;

fn field<F: FieldKernels>(runtime: &Arc<dyn Runtime>, size: Size) -> Result<(), SelftestError> {
    let samples = axioms::samples::<F>(SEED, if size == Size::Full { 1000 } else { 4 });
    let mut machine = RuntimeMachine::<F>::new(runtime.clone());
    match axioms::check(&mut machine, &samples) {
        Ok(_) => Ok(()),
        Err(violation) => Err(SelftestError::Wrong(violation.to_string())),
    }
}

fn transforms(runtime: &Arc<dyn Runtime>, size: Size) -> Result<(), SelftestError> {
    let sizes: &[u32] = if size == Size::Full {
        &[0, 1, 2, 5, 10, 11, 16, 20, 21]
    } else {
        &[1, 11]
    };
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    for &log2 in sizes {
        let n = 1usize << log2;
        let mut random = || (0..n).map(|_| Scalar::random(&mut rng)).collect::<Vec<_>>();
        let (mut a, mut b) = (random(), random());
        let upload = |x: &[Scalar]| DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(x));
        let (on_a, on_b, on_c) = (
            upload(&a)?,
            upload(&b)?,
            DeviceBuffer::<Fr>::new(runtime, n)?,
        );
        Quotient::new(runtime, log2)?.run(
            on_a.global_mut(),
            on_b.global_mut(),
            on_c.global_mut(),
        )?;
        let domain = Domain::new(log2).map_err(TransformError::from)?;
        let expected =
            crate::quotient::quotient(&domain, &mut a, &mut b).map_err(TransformError::from)?;
        if casts::to_blst(&on_b.to_vec()?) != expected {
            return Err(SelftestError::Wrong(format!(
                "the quotient of 2^{log2} rows is wrong"
            )));
        }
    }
    Ok(())
}

/// Sums over bases and scalars with every special case: equal, opposite and infinite points, the scalars
/// 0, 1 and r − 1, all in one bucket, lengths around a warp's.
fn sums<C>(
    runtime: &Arc<dyn Runtime>,
    size: Size,
    host: fn(&[HostAffine<C>], &[Scalar]) -> C::Host,
) -> Result<(), SelftestError>
where
    C: GpuCurve,
    Affine<C>: Counterpart,
    C::Host: Curve<AffineRepr = HostAffine<C>>,
{
    let lengths: &[usize] = if size == Size::Full {
        &[1, 2, 31, 32, 33, 300, 4097, 70_000]
    } else {
        &[33]
    };
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    for &n in lengths {
        // Few distinct points, so that equal and opposite ones meet.
        let distinct: Vec<C::Host> = (0..1000.min(n))
            .map(|_| C::Host::random(&mut rng))
            .collect();
        let base = |i: usize| match i % 7 {
            3 => C::Host::identity(),
            5 => -distinct[i % distinct.len()],
            _ => distinct[i % distinct.len()],
        };
        let bases: Vec<HostAffine<C>> = (0..n).map(|i| base(i).to_affine()).collect();
        let random: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
        let special = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2)];
        let mixed: Vec<Scalar> = (0..n)
            .map(|i| {
                if i % 3 == 0 {
                    special[i % 4]
                } else {
                    random[i]
                }
            })
            .collect();
        for scalars in [random, mixed, vec![-Scalar::from(3); n]] {
            if device_sum::<C>(runtime, &bases, &scalars)? != host(&bases, &scalars) {
                return Err(SelftestError::Wrong(format!(
                    "a sum of {n} points is wrong"
                )));
            }
        }
    }
    Ok(())
}

/// blstrs' affine point on C.
type HostAffine<C> = <Affine<C> as Counterpart>::Blst;

fn device_sum<C>(
    runtime: &Arc<dyn Runtime>,
    bases: &[HostAffine<C>],
    scalars: &[Scalar],
) -> Result<C::Host, SelftestError>
where
    C: GpuCurve,
    Affine<C>: Counterpart,
{
    let plan = Plan::new::<C>(
        scalars.len(),
        runtime.multiprocessors(),
        runtime.memory()?.free / 2,
    )?;
    let mut arena = Arena::new(runtime, plan.bytes::<C>())?;
    let bases = DeviceBuffer::from_slice(runtime, casts::from_blst::<Affine<C>>(bases))?;
    let values = DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(scalars))?;
    let sorted = Sorted::new(
        &mut arena,
        &plan,
        Scalars {
            values: values.global(),
            map: None,
        },
    )?;
    Ok(sorted.sum::<C>(&mut arena, bases.global())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_kernels::runtime::EmulatedRuntime;

    #[test]
    fn the_emulated_device_passes() {
        let device = EmulatedRuntime::new(1 << 30);
        let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
        let checks = selftest(&runtime, Size::Small).unwrap();
        assert_eq!(checks.len(), CHECKS.len());
        drop(runtime);
        assert_eq!(device.reserved(), 0);
    }
}
