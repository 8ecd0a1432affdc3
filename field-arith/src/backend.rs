//! The interface between field elements and an architecture's limb arithmetic.

use crate::params::FieldParams;

#[cfg(not(target_arch = "nvptx64"))]
pub use crate::portable::Portable as Native;
#[cfg(target_arch = "nvptx64")]
pub use crate::ptx::Ptx as Native;

/// Arithmetic on `N` little-endian 32-bit limbs. "Mask" is all ones for true, 0 for false.
pub trait Backend<const N: usize> {
    /// a + b mod 2^(32 N).
    fn add(a: &[u32; N], b: &[u32; N]) -> [u32; N];
    /// (a - b mod 2^(32 N), mask of a < b).
    fn sub(a: &[u32; N], b: &[u32; N]) -> ([u32; N], u32);
    /// (a + b + carry mod 2^(32 N), carry out), carries 0 or 1.
    fn add_carry(a: &[u32; N], b: &[u32; N], carry: u32) -> ([u32; N], u32);
    /// (a - b - borrow mod 2^(32 N), borrow out), borrows as masks.
    fn sub_with_borrow(a: &[u32; N], b: &[u32; N], borrow: u32) -> ([u32; N], u32);
    /// a if the mask is all ones, 0 if it is 0.
    fn masked(a: &[u32; N], mask: u32) -> [u32; N];
    /// All limbs are zero.
    fn is_zero(a: &[u32; N]) -> bool;
    /// All limbs agree.
    fn equal(a: &[u32; N], b: &[u32; N]) -> bool;
    /// ab / R mod p, below ab/R + p. Needs a + p < R.
    fn mont_mul<P: FieldParams<N>>(a: &[u32; N], b: &[u32; N]) -> [u32; N];
    /// a^2 / R mod p, below a^2/R + p. Needs a^2/R + p < R.
    fn mont_sqr<P: FieldParams<N>>(a: &[u32; N]) -> [u32; N];
    /// (ab + cd) / R mod p with one reduction, below (ab + cd)/R + p, which must be below R.
    fn mont_dot2<P: FieldParams<N>>(
        a: &[u32; N],
        b: &[u32; N],
        c: &[u32; N],
        d: &[u32; N],
    ) -> [u32; N];
    /// (low, high) halves of ab.
    fn mul_wide(a: &[u32; N], b: &[u32; N]) -> ([u32; N], [u32; N]);
    /// (low, high) halves of a^2.
    fn sqr_wide(a: &[u32; N]) -> ([u32; N], [u32; N]);
    /// (low + 2^(32 N) high) / R mod p, below high + p + 1, which must not exceed R.
    fn mont_reduce<P: FieldParams<N>>(low: &[u32; N], high: &[u32; N]) -> [u32; N];
    /// The integer whose big-endian bytes are these words read in little-endian order, and back.
    fn reverse_bytes(a: &[u32; N]) -> [u32; N];
    /// Limb-wise read, 16 bytes an access on the device.
    ///
    /// # Safety
    /// `p` is valid for reads of `N` limbs and aligned to 16 bytes on the device, 4 on the host.
    unsafe fn load(p: *const u32) -> [u32; N];
    /// Limb-wise write, 16 bytes an access on the device.
    ///
    /// # Safety
    /// `p` is valid for writes of `N` limbs and aligned to 16 bytes on the device, 4 on the host.
    unsafe fn store(a: &[u32; N], p: *mut u32);
}

/// Multiplication by fixed operands, see [`fixed`](crate::fixed).
pub trait FixedBackend<const N: usize>: Backend<N> {
    /// ab mod 2^(32 N).
    fn mul_low(a: &[u32; N], b: &[u32; N]) -> [u32; N];
    /// wx mod p in [0, 2p) for x < 2p < R, with `quotient` = ⌊w 2^(32 N) / p⌋.
    fn mul_fixed<P: FieldParams<N>>(
        value: &[u32; N],
        quotient: &[u32; N],
        x: &[u32; N],
    ) -> [u32; N];
}
