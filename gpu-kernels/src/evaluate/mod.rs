//! A·w and B·w from the templates of a compiled circuit and the compact witness.
//!
//! 1. [`rank`]: how many values that are not bits stand before each group of 128, so that any value
//!    is found in constant time.
//! 2. [`rows`]: the sums of the rows, one thread a row, long rows by a warp together.
//!
//! The tables are those of a compiled circuit with two changes that the host makes once: a term is a
//! pair of its variable and a *code* of its coefficient, and instances are cut into *chunks* of at most
//! [`CHUNK_ROWS`] rows. Most terms are bits with coefficients ±2^k: their code says so, and they are added
//! as machine integers; a row's integer enters the field once.

pub mod rank;
pub mod rows;

/// Rows of a chunk at most: what one warp evaluates.
pub const CHUNK_ROWS: u32 = 128;
/// Terms up to which one thread sums a side of a row by itself.
pub const LONG: u32 = 8;
/// Marks an outside reference that is an input.
pub const INPUT: u32 = 1 << 31;
/// Marks the code of a coefficient that lies in the table: the rest is its index. Other codes are
/// ±2^k with k in the low bits.
pub const IN_TABLE: u32 = 1 << 31;
/// In a code that is not in the table: the coefficient is −2^k.
pub const MINUS: u32 = 1 << 30;
/// Largest k of a code ±2^k. The table of coefficients begins with 2^0 to 2^[`MAX_POWER`].
pub const MAX_POWER: u32 = 40;
/// Rows of fewer terms than this have sums of terms ±2^k, k ≤ [`MAX_POWER`], within 63 bits.
pub const MAX_TERMS: u32 = 1 << 22;
/// Largest k that is within 63 bits for every row.
pub const SAFE_POWER: u32 = 30;

/// A template as the device reads it: a stretch of rows that its instances share.
///
/// Row `i` has the A terms from the end of row `i − 1` (0 for the first) to `row_ends[rows_start + i][0]`,
/// counted from `a_start`; B likewise. A term's variable is 0 for the constant one, `1 + k` for outside
/// reference `k` of the instance, `1 + outside + j` for private variable `aux_base + j`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "nvptx64"),
    derive(bytemuck::Pod, bytemuck::Zeroable)
)]
#[repr(C)]
pub struct TemplateHead {
    /// First entry of the template in the row ends.
    pub rows_start: u64,
    /// First term of the template in the A terms.
    pub a_start: u64,
    /// First term of the template in the B terms.
    pub b_start: u64,
    /// Number of rows.
    pub rows: u32,
    /// Number of outside references of each instance.
    pub outside: u32,
}

crate::element_struct!(TemplateHead {
    rows_start: u64,
    a_start: u64,
    b_start: u64,
    rows: u32,
    outside: u32,
});

/// A use of a template.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "nvptx64"),
    derive(bytemuck::Pod, bytemuck::Zeroable)
)]
#[repr(C)]
pub struct InstanceHead {
    /// Number of the template.
    pub template: u32,
    /// First constraint of the instance.
    pub first_row: u32,
    /// First private variable of the instance.
    pub aux_base: u32,
    /// First entry of the instance in the outside references.
    pub outside_start: u32,
}

crate::element_struct!(InstanceHead {
    template: u32,
    first_row: u32,
    aux_base: u32,
    outside_start: u32,
});
