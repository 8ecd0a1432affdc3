//! Number-theoretic transforms over Fr in place, and the pointwise steps of the quotient.
//!
//! A transform of n = 2^k elements is cut into passes. A pass takes `stages` of the k radix-2 stages: it
//! sees the array as blocks of N = 2^(k − start) elements, each block as M = 2^stages rows of D = N/M
//! elements, and transforms the columns of M elements in shared memory, one tile a thread block. A tile is
//! 2^columns neighbouring columns, or whole columns one after the other where D = 1. Between a column
//! transform and the rest of the transform lies the multiplication by the twiddle factor w_N^(c·f), with c
//! the column and f the bit-reversed row.
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
//! **Tables.** All factors are [`FixedFr`](cuzk_field::FixedFr) in planes of 16-byte words, in the order in
//! which the threads of a warp read them: a table of 64-byte entries in the order of exponents would keep
//! the load unit as busy as the multiplier. A column c = c₁·K + c₀ splits its factor into one of the *near*
//! table, for (c₀, f), and one of the *far* table, for (c₁·K, f), so that tables stay small; with K = D
//! there is no far table. [`Columns`] says which entry is which.
//!
//! Transforms do not scale: after an inverse transform values are n times too large.

mod butterfly;
mod layout;
mod pass;
mod pointwise;
mod small;
mod strips;

pub use layout::Columns;
pub use pass::{
    ntt_dif_pass, ntt_dif_pass_8, ntt_dif_pass_9, ntt_dit_pass, ntt_dit_pass_8, ntt_dit_pass_9,
};
pub use pointwise::{ntt_multiply, ntt_quotient};
pub use small::{ntt_dif_small, ntt_dit_small};
pub use strips::{LOW_LOG2, ntt_strip_dif, ntt_strip_dit};

/// Binary logarithms of the tiles that pass kernels exist for, in elements.
pub const TILES_LOG2: [u32; 3] = [8, 9, 10];

/// Entries of the table of roots of unity inside of a tile, as a power of two: entry 2^(t−1) + i is
/// w_(2^t)^i, for i < 2^(t−1).
pub const ROOTS_LOG2: u32 = 10;

/// Largest transform of the single-block kernels, as a power of two.
pub const SMALL_LOG2: u32 = 10;
