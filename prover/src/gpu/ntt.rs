//! Transforms on a device: sequences of the kernels of `cuzk_kernels::ntt`, and their tables.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{FixedFr, Fr, casts};
use cuzk_kernels::ntt::{
    LOW_LOG2, MAX_STAGES, SMALL_LOG2, TILE_LOG2, ntt_dif_pass, ntt_dif_small, ntt_dit_pass,
    ntt_dit_small,
};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut};
use ff::Field;
use rayon::prelude::*;

use crate::ntt::{NttError, root_of_unity};

/// Largest table of twiddle factors that holds every exponent, as a power of two (16 MiB).
const DIRECT_LOG2: u32 = 18;
/// Largest transform: exponents of the coset's 2n-th root fit 32 bits.
const LARGEST_LOG2: u32 = 29;

/// Why a transform or a quotient was not computed on the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// There is no such domain.
    #[error(transparent)]
    Domain(#[from] NttError),
    /// More values than the domain has points.
    #[error("{found} values on a domain of 2^{log2} points")]
    Length {
        /// Binary logarithm of the domain's size.
        log2: u32,
        /// Number of values.
        found: usize,
    },
}

/// Which way a transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Coefficients to values: w.
    Forward,
    /// Values to n times the coefficients: 1/w.
    Inverse,
}

/// Where the polynomial is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// On the n-th roots of unity w^i.
    Roots,
    /// On the coset w_2n^(2i+1), whose points' n-th power is −1.
    OddRoots,
}

/// One transform of a fixed size, direction and set of points, with its tables on the device.
///
/// Both orders are offered: [`dif`](Self::dif) takes natural order and leaves bit-reversed order,
/// [`dit`](Self::dit) the reverse. Neither scales.
pub struct Transform {
    runtime: Arc<dyn Runtime>,
    log2: u32,
    coset: bool,
    tables: Tables,
}

enum Tables {
    Small {
        roots: DeviceBuffer<FixedFr>,
        shift: DeviceBuffer<FixedFr>,
    },
    Passes {
        inner: DeviceBuffer<FixedFr>,
        passes: Vec<Pass>,
    },
}

struct Pass {
    start: u32,
    stages: u32,
    twiddles: Twiddles,
}

enum Twiddles {
    None,
    Direct(DeviceBuffer<FixedFr>),
    TwoLevel {
        high: DeviceBuffer<FixedFr>,
        low: DeviceBuffer<FixedFr>,
    },
}

impl Transform {
    /// Prepares the transform of 2^`log2` elements: computes the tables and sends them to the device.
    ///
    /// # Errors
    /// When the domain does not exist or is too large, or the device fails.
    pub fn new(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        direction: Direction,
        at: At,
    ) -> Result<Self, TransformError> {
        if log2 > LARGEST_LOG2 {
            return Err(NttError::TooLarge { log2 }.into());
        }
        let coset = at == At::OddRoots;
        let tables = if log2 <= SMALL_LOG2 {
            Tables::small(runtime, log2, direction)?
        } else {
            Tables::passes(runtime, log2, direction, coset)?
        };
        Ok(Transform {
            runtime: runtime.clone(),
            log2,
            coset,
            tables,
        })
    }

    /// Natural order in `from`, bit-reversed order in `to`; they may be the same array.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dif(&self, from: Global<Fr>, to: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        match &self.tables {
            Tables::Small { roots, shift } => {
                self.move_small(from, to)?;
                let (roots, shift) = (roots.global(), shift.global());
                let launch =
                    ntt_dif_small::launch(1, self.log2, self.coset.into(), to, roots, shift);
                self.runtime.launch(&launch)
            }
            Tables::Passes { inner, passes } => {
                self.run(ntt_dif_pass::launch, inner, passes.iter(), from, to)
            }
        }
    }

    /// Bit-reversed order in `from`, natural order in `to`; they may be the same array.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dit(&self, from: Global<Fr>, to: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        match &self.tables {
            Tables::Small { roots, shift } => {
                self.move_small(from, to)?;
                let (roots, shift) = (roots.global(), shift.global());
                let launch =
                    ntt_dit_small::launch(1, self.log2, self.coset.into(), to, roots, shift);
                self.runtime.launch(&launch)
            }
            Tables::Passes { inner, passes } => {
                self.run(ntt_dit_pass::launch, inner, passes.iter().rev(), from, to)
            }
        }
    }

    /// The small kernels work in place.
    fn move_small(&self, from: Global<Fr>, to: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        if from.address() == to.address() {
            return Ok(());
        }
        self.runtime.copy(
            to.address(),
            from.address(),
            u64::from(Fr::BYTES) << self.log2,
        )
    }

    fn run<'a>(
        &self,
        launch: PassLaunch,
        inner: &DeviceBuffer<FixedFr>,
        passes: impl Iterator<Item = &'a Pass>,
        from: Global<Fr>,
        to: GlobalMut<Fr>,
    ) -> Result<(), RuntimeError> {
        let blocks = 1u32 << (self.log2 - TILE_LOG2);
        let mut source = from;
        for pass in passes {
            let (direct, high, low) = pass.twiddles.arguments();
            self.runtime.launch(&launch(
                blocks,
                self.log2,
                pass.start,
                pass.stages,
                self.coset.into(),
                direct,
                source,
                to,
                inner.global(),
                high,
                low,
            ))?;
            source = to.read();
        }
        Ok(())
    }
}

/// The typed launcher that both pass kernels have.
type PassLaunch = fn(
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    Global<Fr>,
    GlobalMut<Fr>,
    Global<FixedFr>,
    Global<FixedFr>,
    Global<FixedFr>,
) -> cuzk_kernels::Launch;

impl Tables {
    fn small(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        direction: Direction,
    ) -> Result<Self, TransformError> {
        let half = 1usize << log2.saturating_sub(1);
        Ok(Tables::Small {
            roots: powers(runtime, root(log2, direction)?, half)?,
            shift: powers(runtime, root(log2 + 1, direction)?, 1 << log2)?,
        })
    }

    fn passes(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        direction: Direction,
        coset: bool,
    ) -> Result<Self, TransformError> {
        let inner = powers(runtime, root(TILE_LOG2, direction)?, 1 << (TILE_LOG2 - 1))?;
        let mut passes = Vec::new();
        let mut start = 0;
        for stages in split(log2) {
            let last = start + stages == log2;
            let order = log2 - start + u32::from(coset);
            let twiddles = match (last, coset) {
                (true, false) => Twiddles::None,
                _ => Twiddles::new(runtime, root(order, direction)?, order)?,
            };
            passes.push(Pass {
                start,
                stages,
                twiddles,
            });
            start += stages;
        }
        Ok(Tables::Passes { inner, passes })
    }
}

impl Twiddles {
    /// The powers of `w`, of order 2^`order`.
    fn new(runtime: &Arc<dyn Runtime>, w: Scalar, order: u32) -> Result<Self, TransformError> {
        if order <= DIRECT_LOG2 {
            return Ok(Twiddles::Direct(powers(runtime, w, 1 << order)?));
        }
        let step = w.pow_vartime([1u64 << LOW_LOG2]);
        Ok(Twiddles::TwoLevel {
            high: powers(runtime, step, 1 << (order - LOW_LOG2))?,
            low: powers(runtime, w, 1 << LOW_LOG2)?,
        })
    }

    /// `direct`, `high`, `low` as the kernels take them.
    fn arguments(&self) -> (u32, Global<FixedFr>, Global<FixedFr>) {
        match self {
            Twiddles::None => (0, Global::at_address(0), Global::at_address(0)),
            Twiddles::Direct(all) => (1, all.global(), all.global()),
            Twiddles::TwoLevel { high, low } => (0, high.global(), low.global()),
        }
    }
}

/// Numbers of stages of the passes: as few passes as possible, as equal as possible.
fn split(log2: u32) -> impl Iterator<Item = u32> {
    let passes = log2.div_ceil(MAX_STAGES);
    (0..passes).map(move |i| log2 / passes + u32::from(i < log2 % passes))
}

/// w_n for n = 2^`log2`, or its inverse.
fn root(log2: u32, direction: Direction) -> Result<Scalar, NttError> {
    let w = root_of_unity(log2)?;
    Ok(match direction {
        Direction::Forward => w,
        // w^(n − 1)
        Direction::Inverse => w.pow_vartime([(1u64 << log2) - 1]),
    })
}

/// w^i for i < len as fixed factors in device memory.
fn powers(
    runtime: &Arc<dyn Runtime>,
    w: Scalar,
    len: usize,
) -> Result<DeviceBuffer<FixedFr>, RuntimeError> {
    const CHUNK: usize = 1 << 10;
    let chunks = len.div_ceil(CHUNK);
    let table: Vec<FixedFr> = (0..chunks)
        .into_par_iter()
        .flat_map_iter(|chunk| {
            let first = w.pow_vartime([(chunk * CHUNK) as u64]);
            let count = CHUNK.min(len - chunk * CHUNK);
            std::iter::successors(Some(first), move |x| Some(x * w))
                .take(count)
                .map(fixed)
        })
        .collect();
    DeviceBuffer::from_slice(runtime, &table)
}

/// A factor for repeated multiplication.
pub(crate) fn fixed(factor: Scalar) -> FixedFr {
    FixedFr::new(&casts::from_blst::<Fr>(&[factor])[0])
}
