//! Carry chains as macros over lists of limbs.

/// Text of "`lo, hi += a b`", carry in and out.
macro_rules! mad_next {
    ($acc:literal, $a:literal, $lo:literal, $hi:literal, $b:literal) => {
        concat!(
            "madc.lo.cc.u32 {",
            $acc,
            $lo,
            "}, {",
            $a,
            "}, ",
            $b,
            ", {",
            $acc,
            $lo,
            "};\n",
            "madc.hi.cc.u32 {",
            $acc,
            $hi,
            "}, {",
            $a,
            "}, ",
            $b,
            ", {",
            $acc,
            $hi,
            "};\n",
        )
    };
}
/// The same at the start of a chain: no carry in.
macro_rules! mad_first {
    ($acc:literal, $a:literal, $lo:literal, $hi:literal, $b:literal) => {
        concat!(
            "mad.lo.cc.u32 {",
            $acc,
            $lo,
            "}, {",
            $a,
            "}, ",
            $b,
            ", {",
            $acc,
            $lo,
            "};\n",
            "madc.hi.cc.u32 {",
            $acc,
            $hi,
            "}, {",
            $a,
            "}, ",
            $b,
            ", {",
            $acc,
            $hi,
            "};\n",
        )
    };
}
/// The same at the end of a chain: no carry out.
macro_rules! mad_last {
    ($acc:literal, $a:literal, $lo:literal, $hi:literal, $b:literal) => {
        concat!(
            "madc.lo.cc.u32 {",
            $acc,
            $lo,
            "}, {",
            $a,
            "}, ",
            $b,
            ", {",
            $acc,
            $lo,
            "};\n",
            "madc.hi.u32 {",
            $acc,
            $hi,
            "}, {",
            $a,
            "}, ",
            $b,
            ", {",
            $acc,
            $hi,
            "};\n",
        )
    };
}

/// Defines `mac_row`, `red_row` and `red_row_carry` for one limb count.
macro_rules! define_rows {
    (
        n = $n:literal, top = $top:literal,
        mid = [$( $lo:literal $hi:literal $even:literal $odd:literal ),*],
        last = [$llo:literal $lhi:literal $leven:literal $lodd:literal],
        limbs = [$( $idx:literal $e:ident $o:ident $a:ident ),*]
    ) => {
        /// V += carry_limb + a b, where `carry_limb` is the limb E\[1\] that a shift by 2^32 left
        /// over. V + ab must fit in N + 1 limbs.
        #[inline(always)]
        fn mac_row(ev: &mut [u32; $n], od: &mut [u32; $n], carry_limb: u32, av: &[u32; $n], b: u32) {
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    "add.cc.u32 {e0}, {e0}, {cl};",
                    concat!(
                        // the odd chain takes the carry of that addition: position 1 is O[0]
                        mad_next!("o", "a1", "0", "1", "{b}"),
                        $( mad_next!("o", $odd, $lo, $hi, "{b}"), )*
                        mad_last!("o", $lodd, $llo, $lhi, "{b}"),
                        // the even chain carries out to position n, which is O[n - 1]
                        mad_first!("e", "a0", "0", "1", "{b}"),
                        $( mad_next!("e", $even, $lo, $hi, "{b}"), )*
                        mad_next!("e", $leven, $llo, $lhi, "{b}"),
                        "addc.u32 {", $top, "}, {", $top, "}, 0;",
                    ),
                    $( $e = inout(reg32) ev[$idx], $o = inout(reg32) od[$idx], $a = in(reg32) av[$idx], )*
                    b = in(reg32) b, cl = in(reg32) carry_limb,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
        }

        /// V += p m with the m that makes limb 0 of V zero. Modulus limbs are immediates.
        #[inline(always)]
        fn red_row<P: FieldParams<$n>>(ev: &mut [u32; $n], od: &mut [u32; $n]) {
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    "{{ .reg .u32 m; mul.lo.u32 m, {e0}, {inv};",
                    concat!(
                        mad_first!("o", "a1", "0", "1", "m"),
                        $( mad_next!("o", $odd, $lo, $hi, "m"), )*
                        mad_last!("o", $lodd, $llo, $lhi, "m"),
                        mad_first!("e", "a0", "0", "1", "m"),
                        $( mad_next!("e", $even, $lo, $hi, "m"), )*
                        mad_next!("e", $leven, $llo, $lhi, "m"),
                        "addc.u32 {", $top, "}, {", $top, "}, 0; }}",
                    ),
                    $( $e = inout(reg32) ev[$idx], $o = inout(reg32) od[$idx], $a = const P::MODULUS[$idx], )*
                    inv = const P::INV,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
        }

        /// V += carry_limb, then as `red_row`.
        #[inline(always)]
        fn red_row_carry<P: FieldParams<$n>>(ev: &mut [u32; $n], od: &mut [u32; $n], carry_limb: u32) {
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    "{{ .reg .u32 m; add.cc.u32 {e0}, {e0}, {cl}; mul.lo.u32 m, {e0}, {inv};",
                    concat!(
                        mad_next!("o", "a1", "0", "1", "m"),
                        $( mad_next!("o", $odd, $lo, $hi, "m"), )*
                        mad_last!("o", $lodd, $llo, $lhi, "m"),
                        mad_first!("e", "a0", "0", "1", "m"),
                        $( mad_next!("e", $even, $lo, $hi, "m"), )*
                        mad_next!("e", $leven, $llo, $lhi, "m"),
                        "addc.u32 {", $top, "}, {", $top, "}, 0; }}",
                    ),
                    $( $e = inout(reg32) ev[$idx], $o = inout(reg32) od[$idx], $a = const P::MODULUS[$idx], )*
                    inv = const P::INV, cl = in(reg32) carry_limb,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
        }
    };
}

/// Defines `$add`, a + b mod 2^(32 n), and `$sub`, (a - b mod 2^(32 n), borrow mask).
macro_rules! define_add_sub {
    ($add:ident, $sub:ident, $n:literal, first = $f:literal, mid = [$( $m:literal )*], last = $l:literal,
     limbs = [$( $idx:literal $r:ident $a:ident $b:ident ),*]) => {
        #[inline(always)]
        pub(super) fn $add(x: &[u32; $n], y: &[u32; $n]) -> [u32; $n] {
            let mut z = [0u32; $n];
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    concat!("add.cc.u32 {r", $f, "}, {a", $f, "}, {b", $f, "};\n",
                    $( "addc.cc.u32 {r", $m, "}, {a", $m, "}, {b", $m, "};\n", )*
                    "addc.u32 {r", $l, "}, {a", $l, "}, {b", $l, "};"),
                    $( $r = out(reg32) z[$idx], $a = in(reg32) x[$idx], $b = in(reg32) y[$idx], )*
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            z
        }
        #[inline(always)]
        fn $sub(x: &[u32; $n], y: &[u32; $n]) -> ([u32; $n], u32) {
            let mut z = [0u32; $n];
            let mask: u32;
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    concat!("sub.cc.u32 {r", $f, "}, {a", $f, "}, {b", $f, "};\n",
                    $( "subc.cc.u32 {r", $m, "}, {a", $m, "}, {b", $m, "};\n", )*
                    "subc.cc.u32 {r", $l, "}, {a", $l, "}, {b", $l, "};\n",
                    "subc.u32 {mask}, 0, 0;"),
                    $( $r = out(reg32) z[$idx], $a = in(reg32) x[$idx], $b = in(reg32) y[$idx], )*
                    mask = out(reg32) mask,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            (z, mask)
        }
    };
}

/// Defines `$name(acc, a, b)`: (acc + sum of a\[k\] b 2^(64 k), carry out), acc of 2K limbs.
macro_rules! define_chain {
    ($name:ident, $k:literal, $k2:literal, first = [$flo:literal $fhi:literal $fa:literal],
     rest = [$( $lo:literal $hi:literal $aa:literal ),*],
     acc = [$( $ai:literal $an:ident ),*], mul = [$( $mi:literal $mn:ident ),*]) => {
        #[inline(always)]
        pub(super) fn $name(acc: [u32; $k2], av: [u32; $k], b: u32) -> ([u32; $k2], u32) {
            let mut r = acc;
            let c: u32;
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    concat!(
                        mad_first!("x", $fa, $flo, $fhi, "{b}"),
                        $( mad_next!("x", $aa, $lo, $hi, "{b}"), )*
                        "addc.u32 {c}, 0, 0;",
                    ),
                    $( $an = inout(reg32) r[$ai], )* $( $mn = in(reg32) av[$mi], )*
                    b = in(reg32) b, c = out(reg32) c,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            (r, c)
        }
    };
}

/// The functions of `Backend` that only move or compare limbs, for one list of limbs.
macro_rules! define_memory {
    ($n:literal, first = $f:literal, rest = [$($i:literal)*]) => {
        #[inline(always)]
        fn reverse_bytes(a: &[u32; $n]) -> [u32; $n] {
            [a[$n - 1].swap_bytes(), $( a[$n - 1 - $i].swap_bytes() ),*]
        }
        #[inline(always)]
        fn masked(a: &[u32; $n], mask: u32) -> [u32; $n] {
            [a[$f] & mask, $( a[$i] & mask ),*]
        }
        #[inline(always)]
        fn is_zero(a: &[u32; $n]) -> bool {
            (a[$f] $( | a[$i] )*) == 0
        }
        #[inline(always)]
        fn equal(a: &[u32; $n], b: &[u32; $n]) -> bool {
            ((a[$f] ^ b[$f]) $( | (a[$i] ^ b[$i]) )*) == 0
        }
        #[inline(always)]
        unsafe fn load(p: *const u32) -> [u32; $n] {
            // SAFETY: the caller vouches for the limbs and the alignment.
            unsafe {
                core::hint::assert_unchecked(p as usize % 16 == 0);
                [*p, $( *p.add($i) ),*]
            }
        }
        #[inline(always)]
        unsafe fn store(a: &[u32; $n], p: *mut u32) {
            // SAFETY: the caller vouches for the limbs and the alignment.
            unsafe {
                core::hint::assert_unchecked(p as usize % 16 == 0);
                *p = a[$f];
                $( *p.add($i) = a[$i]; )*
            }
        }
    };
}

/// Defines `$sub`: (a - b - borrow mod 2^(32 n), borrow out), borrows as masks.
macro_rules! define_sub_borrow {
    ($sub:ident, $n:literal, first = $f:literal, rest = [$( $m:literal )*],
     limbs = [$( $idx:literal $r:ident $a:ident $b:ident ),*]) => {
        #[inline(always)]
        fn $sub(x: &[u32; $n], y: &[u32; $n], borrow: u32) -> ([u32; $n], u32) {
            let mut z = [0u32; $n];
            let out: u32;
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    // 0 - borrow borrows exactly if the mask is not zero
                    "{{ .reg .u32 t; sub.cc.u32 t, 0, {borrow}; }}",
                    concat!("subc.cc.u32 {r", $f, "}, {a", $f, "}, {b", $f, "};\n",
                    $( "subc.cc.u32 {r", $m, "}, {a", $m, "}, {b", $m, "};\n", )*
                    "subc.u32 {out}, 0, 0;"),
                    $( $r = out(reg32) z[$idx], $a = in(reg32) x[$idx], $b = in(reg32) y[$idx], )*
                    borrow = in(reg32) borrow, out = out(reg32) out,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            (z, out)
        }
    };
}

/// Defines `$add`: (a + b + carry mod 2^(32 n), carry out), carries 0 or 1.
macro_rules! define_add_carry {
    ($add:ident, $n:literal, first = $f:literal, rest = [$( $m:literal )*],
     limbs = [$( $idx:literal $r:ident $a:ident $b:ident ),*]) => {
        #[inline(always)]
        pub(super) fn $add(x: &[u32; $n], y: &[u32; $n], carry: u32) -> ([u32; $n], u32) {
            let mut z = [0u32; $n];
            let out: u32;
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    // carry + (2^32 - 1) carries exactly if `carry` is 1
                    "{{ .reg .u32 t; add.cc.u32 t, {carry}, 0xffffffff; }}",
                    concat!("addc.cc.u32 {r", $f, "}, {a", $f, "}, {b", $f, "};\n",
                    $( "addc.cc.u32 {r", $m, "}, {a", $m, "}, {b", $m, "};\n", )*
                    "addc.u32 {out}, 0, 0;"),
                    $( $r = out(reg32) z[$idx], $a = in(reg32) x[$idx], $b = in(reg32) y[$idx], )*
                    carry = in(reg32) carry, out = out(reg32) out,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            (z, out)
        }
    };
}

/// Defines `$name(acc, a, b)` for products mod a power of two: acc + sum of a\[k\] b 2^(64 k), of
/// which the last product has only its low limb in acc (2K - 1 limbs).
macro_rules! define_low_chain {
    ($name:ident, $k:literal, $limbs:literal, first = [$flo:literal $fhi:literal $fa:literal],
     rest = [$( $lo:literal $hi:literal $aa:literal ),*], last = [$llo:literal $la:literal],
     acc = [$( $ai:literal $an:ident ),*], mul = [$( $mi:literal $mn:ident ),*]) => {
        #[inline(always)]
        pub(super) fn $name(acc: [u32; $limbs], av: [u32; $k], b: u32) -> [u32; $limbs] {
            let mut r = acc;
            // SAFETY: pure register arithmetic.
            unsafe {
                core::arch::asm!(
                    concat!(
                        mad_first!("x", $fa, $flo, $fhi, "{b}"),
                        $( mad_next!("x", $aa, $lo, $hi, "{b}"), )*
                        "madc.lo.u32 {x", $llo, "}, {", $la, "}, {b}, {x", $llo, "};",
                    ),
                    $( $an = inout(reg32) r[$ai], )* $( $mn = in(reg32) av[$mi], )*
                    b = in(reg32) b,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            r
        }
    };
}
