//! Carry chains of one to six products by a common factor.

define_chain!(chain1, 1, 2, first = ["0" "1" "a0"], rest = [], acc = [0 x0, 1 x1], mul = [0 a0]);
define_chain!(chain2, 2, 4, first = ["0" "1" "a0"], rest = ["2" "3" "a1"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3], mul = [0 a0, 1 a1]);
define_chain!(chain3, 3, 6, first = ["0" "1" "a0"], rest = ["2" "3" "a1", "4" "5" "a2"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3, 4 x4, 5 x5], mul = [0 a0, 1 a1, 2 a2]);
define_chain!(chain4, 4, 8, first = ["0" "1" "a0"],
    rest = ["2" "3" "a1", "4" "5" "a2", "6" "7" "a3"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3, 4 x4, 5 x5, 6 x6, 7 x7], mul = [0 a0, 1 a1, 2 a2, 3 a3]);
define_chain!(chain5, 5, 10, first = ["0" "1" "a0"],
    rest = ["2" "3" "a1", "4" "5" "a2", "6" "7" "a3", "8" "9" "a4"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3, 4 x4, 5 x5, 6 x6, 7 x7, 8 x8, 9 x9],
    mul = [0 a0, 1 a1, 2 a2, 3 a3, 4 a4]);
define_chain!(chain6, 6, 12, first = ["0" "1" "a0"],
    rest = ["2" "3" "a1", "4" "5" "a2", "6" "7" "a3", "8" "9" "a4", "10" "11" "a5"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3, 4 x4, 5 x5, 6 x6, 7 x7, 8 x8, 9 x9, 10 x10, 11 x11],
    mul = [0 a0, 1 a1, 2 a2, 3 a3, 4 a4, 5 a5]);

define_low_chain!(low_chain2, 2, 3, first = ["0" "1" "a0"], rest = [], last = ["2" "a1"],
    acc = [0 x0, 1 x1, 2 x2], mul = [0 a0, 1 a1]);
define_low_chain!(low_chain3, 3, 5, first = ["0" "1" "a0"], rest = ["2" "3" "a1"], last = ["4" "a2"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3, 4 x4], mul = [0 a0, 1 a1, 2 a2]);
define_low_chain!(low_chain4, 4, 7, first = ["0" "1" "a0"], rest = ["2" "3" "a1", "4" "5" "a2"],
    last = ["6" "a3"],
    acc = [0 x0, 1 x1, 2 x2, 3 x3, 4 x4, 5 x5, 6 x6], mul = [0 a0, 1 a1, 2 a2, 3 a3]);

/// Runs one chain in place: `row!(acc, chain, factor, [positions], [multipliers], carry position)`.
macro_rules! row {
    ($acc:ident, $chain:ident, $b:expr, [$($p:literal)*], [$($m:expr),*], $carry:literal) => {{
        let (r, c) = $chain([$($acc[$p]),*], [$($m),*], $b);
        [$($acc[$p]),*] = r;
        $acc[$carry] = c;
    }};
    // a chain whose last product has only a low limb
    (low $acc:ident, $chain:ident, $b:expr, [$($p:literal)*], [$($m:expr),*]) => {
        [$($acc[$p]),*] = $chain([$($acc[$p]),*], [$($m),*], $b)
    };
    // a chain whose carry is known to be zero
    ($acc:ident, $chain:ident, $b:expr, [$($p:literal)*], [$($m:expr),*]) => {{
        let (r, _) = $chain([$($acc[$p]),*], [$($m),*], $b);
        [$($acc[$p]),*] = r;
    }};
}
/// First products of an accumulator: `products!(acc, factor, [position position multiplier] …)`.
macro_rules! products {
    ($acc:ident, $b:expr, $([$p:literal $q:literal $m:expr])*) => {
        $( ($acc[$p], $acc[$q]) = super::wide($m, $b); )*
    };
}
