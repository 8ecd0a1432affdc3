//! Limb arithmetic in PTX carry chains.
//!
//! An accumulator is kept as V = E + O 2^32: E takes the products that start on an even limb
//! position, O those that start on an odd one. Each (`mad.lo.cc`, `madc.hi.cc`) pair then writes a
//! 64-bit aligned register pair, and ptxas fuses it to one `IMAD.WIDE.U32` with carry: the
//! instruction whose rate bounds all field work.
//!
//! `macros` holds the chains once, `n8` and `n12` instantiate them per limb count.

#[macro_use]
mod macros;
#[macro_use]
mod chains;
mod karatsuba;
mod n12;
mod n8;

/// Back end for `nvptx64`.
pub struct Ptx;

/// (low, high) of ab.
#[inline(always)]
fn wide(a: u32, b: u32) -> (u32, u32) {
    let t = a as u64 * b as u64;
    (t as u32, (t >> 32) as u32)
}

/// c + a b in signed arithmetic.
#[inline(always)]
pub(crate) fn mad_wide_signed(c: i64, a: i32, b: i32) -> i64 {
    let r;
    // SAFETY: pure register arithmetic.
    unsafe {
        core::arch::asm!(
            "mad.wide.s32 {}, {}, {}, {};",
            out(reg64) r, in(reg32) a, in(reg32) b, in(reg64) c,
            options(pure, nomem, nostack)
        )
    };
    r
}
