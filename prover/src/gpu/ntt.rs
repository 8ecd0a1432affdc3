//! Transforms on a device: sequences of the kernels of `cuzk_kernels::ntt`.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{FixedFr, Fr};
use cuzk_kernels::ntt::{
    Columns, ROOTS_LOG2, SMALL_LOG2, TILES_LOG2, ntt_dif_pass, ntt_dif_pass_8, ntt_dif_pass_9,
    ntt_dif_small, ntt_dit_pass, ntt_dit_pass_8, ntt_dit_pass_9, ntt_dit_small, ntt_multiply,
};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut, Launch};
use ff::Field;

use super::twiddles::{Planes, Twiddles, powers, tile_roots};
use crate::ntt::NttError;

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
    /// There are no kernels for tiles of this size.
    #[error("no kernel has tiles of 2^{log2} elements")]
    Tile {
        /// Binary logarithm of the tile's size.
        log2: u32,
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

/// How a transform is cut: what is best depends on the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Elements of a tile as a power of two, one of [`TILES_LOG2`].
    pub tile: u32,
    /// Blocks of up to this many elements, as a power of two, have a twiddle factor for each; larger ones
    /// two smaller tables and one more multiplication.
    pub direct: u32,
}

impl Layout {
    /// The layout for 2^`log2` elements: tiles of 512, smaller where all multiprocessors would not have one,
    /// larger where that saves a pass.
    pub fn of(log2: u32) -> Self {
        let tile = match log2 {
            0..=14 => 8,
            15..=18 | 21..=27 => 9,
            _ => 10,
        };
        Layout { tile, direct: 20 }
    }

    /// How a pass of `stages` stages over blocks of 2^`block` elements sees them.
    fn columns(self, block: u32, stages: u32) -> Columns {
        let distance = block - stages;
        let near = if distance == 0 || block <= self.direct {
            distance
        } else {
            (self.tile - stages).max((distance / 2).saturating_sub(1))
        };
        Columns {
            tile: self.tile,
            stages,
            distance,
            near,
        }
    }

    /// Numbers of stages of the passes: as few passes as possible, as equal as possible.
    fn split(self, log2: u32) -> impl Iterator<Item = u32> {
        let passes = log2.div_ceil(self.tile);
        (0..passes).map(move |i| log2 / passes + u32::from(i < log2 % passes))
    }
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
        roots: Planes,
        passes: Vec<Pass>,
    },
}

struct Pass {
    start: u32,
    columns: Columns,
    twiddles: Option<Twiddles>,
}

/// The arrays that one call transforms.
#[derive(Clone, Copy)]
struct Arrays {
    from: Global<Fr>,
    factor: Option<Global<Fr>>,
    to: GlobalMut<Fr>,
    /// How many, and the distance in bytes.
    count: u32,
    stride: u64,
}

/// The typed launchers of the passes.
type DifLaunch = fn(
    (u32, u32),
    u32,
    u32,
    u32,
    u32,
    u64,
    Global<Fr>,
    Global<Fr>,
    GlobalMut<Fr>,
    Global<FixedFr>,
    Global<FixedFr>,
    Global<FixedFr>,
) -> Launch;
type DitLaunch = fn(
    (u32, u32),
    u32,
    u32,
    u32,
    u32,
    u64,
    Global<Fr>,
    GlobalMut<Fr>,
    Global<FixedFr>,
    Global<FixedFr>,
    Global<FixedFr>,
) -> Launch;

#[derive(Clone, Copy)]
enum Order {
    Frequency,
    Time,
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
        Self::with_layout(runtime, log2, direction, at, Layout::of(log2))
    }

    /// [`new`](Self::new) with a chosen layout, for tests and measurements.
    ///
    /// # Errors
    /// As [`new`](Self::new), or when there is no such layout.
    pub fn with_layout(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        direction: Direction,
        at: At,
        layout: Layout,
    ) -> Result<Self, TransformError> {
        Self::build(runtime, log2, direction, at, layout, Scalar::ONE)
    }

    /// The transform on the coset, times a constant at no cost.
    pub(super) fn scaled_on_coset(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        direction: Direction,
        scale: Scalar,
    ) -> Result<Self, TransformError> {
        let layout = Layout::of(log2);
        Self::build(runtime, log2, direction, At::OddRoots, layout, scale)
    }

    fn build(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        direction: Direction,
        at: At,
        layout: Layout,
        scale: Scalar,
    ) -> Result<Self, TransformError> {
        if log2 > LARGEST_LOG2 {
            return Err(NttError::TooLarge { log2 }.into());
        }
        if !TILES_LOG2.contains(&layout.tile) {
            return Err(TransformError::Tile { log2: layout.tile });
        }
        let coset = at == At::OddRoots;
        let tables = if log2 <= SMALL_LOG2 {
            let half = 1usize << log2.saturating_sub(1);
            Tables::Small {
                roots: powers(runtime, log2, direction, half, Scalar::ONE)?,
                shift: powers(runtime, log2 + 1, direction, 1 << log2, scale)?,
            }
        } else {
            Tables::Passes {
                roots: tile_roots(runtime, direction)?,
                passes: passes(runtime, log2, direction, coset, layout, scale)?,
            }
        };
        Ok(Transform {
            runtime: runtime.clone(),
            log2,
            coset,
            tables,
        })
    }

    /// Device memory that the tables of such a transform take.
    pub fn table_bytes(log2: u32, at: At) -> u64 {
        let entry = u64::from(FixedFr::BYTES);
        if log2 <= SMALL_LOG2 {
            return entry * ((1 << log2.saturating_sub(1)) + (1 << log2));
        }
        let layout = Layout::of(log2);
        let mut start = 0;
        let entries = layout.split(log2).map(|stages| {
            let columns = layout.columns(log2 - start, stages);
            start += stages;
            let near = if at == At::OddRoots || columns.distance > 0 {
                columns.near_len()
            } else {
                return 0;
            };
            let far = if columns.near < columns.distance {
                columns.far_len()
            } else {
                0
            };
            u64::from(near) + u64::from(far)
        });
        entry * (entries.sum::<u64>() + (1 << ROOTS_LOG2))
    }

    /// Natural order in `from`, bit-reversed order in `to`; they may be the same array.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dif(&self, from: Global<Fr>, to: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        self.run(Order::Frequency, Arrays::one(from, to))
    }

    /// Bit-reversed order in `from`, natural order in `to`; they may be the same array.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dit(&self, from: Global<Fr>, to: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        self.run(Order::Time, Arrays::one(from, to))
    }

    /// [`dif`](Self::dif) of the products of `x` and `y`, element by element; `to` may be either.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dif_of_product(
        &self,
        x: Global<Fr>,
        y: Global<Fr>,
        to: GlobalMut<Fr>,
    ) -> Result<(), RuntimeError> {
        let arrays = Arrays {
            factor: Some(y),
            ..Arrays::one(x, to)
        };
        self.run(Order::Frequency, arrays)
    }

    /// [`dif`](Self::dif) of two arrays in place, in the same launches.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dif_both(&self, a: GlobalMut<Fr>, b: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        self.run(Order::Frequency, Arrays::both(a, b))
    }

    /// [`dit`](Self::dit) of two arrays in place, in the same launches.
    ///
    /// # Errors
    /// When the device fails.
    pub fn dit_both(&self, a: GlobalMut<Fr>, b: GlobalMut<Fr>) -> Result<(), RuntimeError> {
        self.run(Order::Time, Arrays::both(a, b))
    }

    /// Products by fixed factors that the transform takes for each element.
    pub fn products(&self) -> f64 {
        match &self.tables {
            Tables::Small { .. } => 0.5 * f64::from(self.log2) + f64::from(u8::from(self.coset)),
            Tables::Passes { passes, .. } => passes.iter().map(Pass::products).sum(),
        }
    }

    /// Times that the elements are read from memory and written back.
    pub fn launches(&self) -> usize {
        match &self.tables {
            Tables::Small { .. } => 1,
            Tables::Passes { passes, .. } => passes.len(),
        }
    }

    fn run(&self, order: Order, arrays: Arrays) -> Result<(), RuntimeError> {
        match &self.tables {
            Tables::Small { roots, shift } => (0..arrays.count).try_for_each(|i| {
                self.run_small(order, arrays.only(i), roots.global(), shift.global())
            }),
            Tables::Passes { roots, passes } => {
                let mut arrays = arrays;
                let mut run = |pass: &Pass| {
                    self.runtime
                        .launch(&self.launch(order, pass, roots.global(), arrays))?;
                    arrays.from = arrays.to.read();
                    arrays.factor = None;
                    Ok(())
                };
                match order {
                    Order::Frequency => passes.iter().try_for_each(&mut run),
                    Order::Time => passes.iter().rev().try_for_each(&mut run),
                }
            }
        }
    }

    /// The small kernels work in place.
    fn run_small(
        &self,
        order: Order,
        arrays: Arrays,
        roots: Global<FixedFr>,
        shift: Global<FixedFr>,
    ) -> Result<(), RuntimeError> {
        let (log2, coset) = (self.log2, u32::from(self.coset));
        let Arrays { from, to, .. } = arrays;
        if let Some(factor) = arrays.factor {
            let n = 1u32 << log2;
            let blocks = n.div_ceil(ntt_multiply::THREADS);
            self.runtime
                .launch(&ntt_multiply::launch(blocks, n, from, factor, to))?;
        } else if from.address() != to.address() {
            let bytes = u64::from(Fr::BYTES) << log2;
            self.runtime.copy(to.address(), from.address(), bytes)?;
        }
        self.runtime.launch(&match order {
            Order::Frequency => ntt_dif_small::launch(1, log2, coset, to, roots, shift),
            Order::Time => ntt_dit_small::launch(1, log2, coset, to, roots, shift),
        })
    }

    fn launch(&self, order: Order, pass: &Pass, roots: Global<FixedFr>, arrays: Arrays) -> Launch {
        let Pass { start, columns, .. } = *pass;
        let none = Global::at_address(0);
        let (near, far) = pass
            .twiddles
            .as_ref()
            .map_or((none, none), Twiddles::addresses);
        let grid = (1u32 << (self.log2 - columns.tile), arrays.count);
        let (log2, stages, near_log2) = (self.log2, columns.stages, columns.near);
        let Arrays {
            from, to, stride, ..
        } = arrays;
        match order {
            Order::Frequency => {
                let launch: DifLaunch = match columns.tile {
                    8 => ntt_dif_pass_8::launch,
                    9 => ntt_dif_pass_9::launch,
                    _ => ntt_dif_pass::launch,
                };
                let factor = arrays.factor.unwrap_or(Global::at_address(0));
                launch(
                    grid, log2, start, stages, near_log2, stride, from, factor, to, roots, near,
                    far,
                )
            }
            Order::Time => {
                let launch: DitLaunch = match columns.tile {
                    8 => ntt_dit_pass_8::launch,
                    9 => ntt_dit_pass_9::launch,
                    _ => ntt_dit_pass::launch,
                };
                launch(
                    grid, log2, start, stages, near_log2, stride, from, to, roots, near, far,
                )
            }
        }
    }
}

impl Pass {
    /// Products by fixed factors for each element: one for two stages, a half for a single stage, a quarter
    /// for the two stages over neighbouring rows, and the twiddle factors.
    fn products(&self) -> f64 {
        let stages = self.columns.stages;
        let steps = f64::from(stages / 2 - 1) + 0.5 * f64::from(stages % 2) + 0.25;
        let tables = self.twiddles.as_ref().map_or(0, Twiddles::tables);
        steps + f64::from(tables)
    }
}

impl Arrays {
    fn one(from: Global<Fr>, to: GlobalMut<Fr>) -> Self {
        Arrays {
            from,
            factor: None,
            to,
            count: 1,
            stride: 0,
        }
    }

    fn both(a: GlobalMut<Fr>, b: GlobalMut<Fr>) -> Self {
        Arrays {
            count: 2,
            stride: b.address().wrapping_sub(a.address()),
            ..Arrays::one(a.read(), a)
        }
    }

    /// The ith.
    fn only(self, i: u32) -> Self {
        let skip = self.stride.wrapping_mul(i.into());
        Arrays {
            from: Global::at_address(self.from.address().wrapping_add(skip)),
            to: GlobalMut::at_address(self.to.address().wrapping_add(skip)),
            count: 1,
            ..self
        }
    }
}

/// The passes of a transform in the order of decimation in frequency.
fn passes(
    runtime: &Arc<dyn Runtime>,
    log2: u32,
    direction: Direction,
    coset: bool,
    layout: Layout,
    scale: Scalar,
) -> Result<Vec<Pass>, TransformError> {
    let mut start = 0;
    let mut pass = |stages: u32| {
        let block = log2 - start;
        let columns = layout.columns(block, stages);
        let last = columns.distance == 0;
        let scale = if last { scale } else { Scalar::ONE };
        let twiddles = (coset || !last)
            .then(|| Twiddles::new(runtime, columns, block, direction, coset, scale))
            .transpose()?;
        let pass = Pass {
            start,
            columns,
            twiddles,
        };
        start += stages;
        Ok(pass)
    };
    layout.split(log2).map(&mut pass).collect()
}
