//! Number-theoretic transforms over Fr in place, and the pointwise steps of the quotient.
//!
//! A transform of n = 2^k elements is cut into passes. A pass takes `stages` of the k radix-2 stages: it
//! sees the array as blocks of N = 2^(k − start) elements, each block as M = 2^stages rows of D = N/M
//! elements, and transforms the columns of M elements in shared memory, 1,024 elements a thread block.
//! Between a column transform and the rest of the transform lies the multiplication by the twiddle
//! factor w_N^(c·f), with c the column and f the bit-reversed row.
//!
//! - *Decimation in frequency* (natural order in, bit-reversed order out) runs passes from start 0
//!   upwards: column transform, then twiddle factors.
//! - *Decimation in time* (bit-reversed in, natural out) runs them downwards: twiddle factors, then
//!   column transform. No permutation of memory is ever done.
//!
//! **Cosets.** With g = w_2n, a primitive 2n-th root, the coset's points are g·w_n^i = w_2n^(2i+1). A
//! polynomial of N coefficients on such points splits into M polynomials on the points
//! w_(2D)^(2c+1), which is the same kind of coset one size down, and the twiddle factor of column c and
//! row f is w_2N^((2c+1)·f). So a transform on the coset is the same pass with exponents (2c+1)·f of a
//! 2N-th root instead of c·f of an N-th root, and costs no more, but for the innermost pass, which then
//! has twiddle factors, too. gⁿ = −1, which is what the quotient needs.
//!
//! Transforms do not scale: after an inverse transform values are n times too large.

mod pass;
mod pointwise;
mod small;

pub use pass::{ntt_dif_pass, ntt_dit_pass};
pub use pointwise::{ntt_multiply, ntt_multiply_scaled, ntt_quotient};
pub use small::{ntt_dif_small, ntt_dit_small};

/// Elements that a block of the pass kernels holds in shared memory, as a power of two.
pub const TILE_LOG2: u32 = 10;

/// Entries of the low table of twiddle factors, as a power of two.
pub const LOW_LOG2: u32 = 12;

/// Largest number of stages that a pass can take.
pub const MAX_STAGES: u32 = TILE_LOG2;

/// Largest transform of the single-block kernels, as a power of two.
pub const SMALL_LOG2: u32 = TILE_LOG2;
