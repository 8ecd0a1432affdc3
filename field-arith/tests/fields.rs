//! The field axioms and every derived constant, for BLS12-381 and for a curve that only this test
//! knows: what another curve needs is its constants.

use cuzk_field::bls12_381::{FpParams, FrParams};
use cuzk_field::curve::{Curve, Xyzz};
use cuzk_field::field_axioms;
use cuzk_field::fixed::Fixed;
use cuzk_field::fp2::Quadratic;
use cuzk_field::montgomery::Mont;
use cuzk_field::params::{FieldParams, TwoAdicParams, mul_mont};
use cuzk_field::wide::Wide;
use cuzk_field::{Affine, FieldOps, Fp, Fp2, Fr};

/// BN254 (alt_bn128), parameters of EIP-196.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BnFpParams;
impl FieldParams<8> for BnFpParams {
    const NAME: &'static str = "BN254 Fp";
    const MODULUS: [u32; 8] = [
        0xd87cfd47, 0x3c208c16, 0x6871ca8d, 0x97816a91, 0x8181585d, 0xb85045b6, 0xe131a029,
        0x30644e72,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct BnFrParams;
impl FieldParams<8> for BnFrParams {
    const NAME: &'static str = "BN254 Fr";
    const MODULUS: [u32; 8] = [
        0xf0000001, 0x43e1f593, 0x79b97091, 0x2833e848, 0x8181585d, 0xb85045b6, 0xe131a029,
        0x30644e72,
    ];
}
impl TwoAdicParams<8> for BnFrParams {
    const GENERATOR: u32 = 5;
}

type BnFp = Mont<BnFpParams, 8>;
type BnFr = Mont<BnFrParams, 8>;

/// y^2 = x^3 + 3 with the generator (1, 2).
#[derive(Clone, Copy, Debug, PartialEq)]
struct BnG1;
impl Curve for BnG1 {
    type Base = BnFp;
    const NAME: &'static str = "BN254 G1";
    const B: BnFp = BnFp::from_limbs(cuzk_field::params::small_to_mont(&BnFpParams::MODULUS, 3));
}

field_axioms! {
    fp_is_a_field: Fp;
    fp2_is_a_field: Fp2;
    fr_is_a_field: Fr;
    bn254_fp_is_a_field: BnFp;
    bn254_fr_is_a_field: BnFr;
    bn254_fp2_is_a_field: Quadratic<BnFpParams, 8>;
}

/// Each constant against its formula, by another route than the one that computes it.
fn check_constants<P: FieldParams<N>, const N: usize>(spare_bits: u32) {
    let p = P::MODULUS;
    assert_eq!(P::INV.wrapping_mul(p[0]), u32::MAX, "INV = -1/p mod 2^32");
    assert_eq!(p[N - 1].leading_zeros(), spare_bits);
    assert_eq!(P::LAZY, spare_bits >= 2, "LAZY: 4p < R");
    assert_eq!(P::DOT2_CLOSED, spare_bits >= 3, "DOT2_CLOSED: 8p < R");
    let mut unit = [0; N];
    unit[0] = 1;
    // R = 1 in Montgomery form: R * 1 / R = 1; R2 leaves it: R2 * 1 / R = R
    assert_eq!(mul_mont(&p, &P::R, &unit), unit);
    assert_eq!(mul_mont(&p, &P::R2, &unit), P::R);
    for i in 0..N {
        let carry = if i == 0 { 0 } else { p[i - 1] >> 31 };
        assert_eq!(P::DOUBLE_MODULUS[i], p[i] << 1 | carry);
    }
    assert_eq!(P::BOUND, if P::LAZY { P::DOUBLE_MODULUS } else { p });
}

#[test]
fn every_constant_satisfies_its_formula() {
    check_constants::<FpParams, 12>(3);
    check_constants::<FrParams, 8>(1);
    check_constants::<BnFpParams, 8>(2);
    check_constants::<BnFrParams, 8>(2);
}

#[test]
fn base_field_modulus_is_the_polynomial_in_the_curve_parameter() {
    // p = (x - 1)^2 r / 3 + x with x = -z, so 3 p = (z + 1)^2 r - 3 z, computed mod 2^512
    let z = [0x0001_0000u32, 0xd201_0000];
    let multiply = |a: &[u32], b: &[u32]| -> Vec<u32> {
        let mut t = vec![0u32; a.len() + b.len()];
        for (i, &x) in a.iter().enumerate() {
            let mut carry = 0u64;
            for (j, &y) in b.iter().enumerate() {
                let s = t[i + j] as u64 + x as u64 * y as u64 + carry;
                t[i + j] = s as u32;
                carry = s >> 32;
            }
            t[i + b.len()] = carry as u32;
        }
        t
    };
    let sum = |a: &[u32], b: &[u32]| -> Vec<u32> {
        let mut carry = 0u64;
        let limb = |x: &[u32], i: usize| x.get(i).copied().unwrap_or(0) as u64;
        let add = |i| {
            let s = limb(a, i) + limb(b, i) + carry;
            carry = s >> 32;
            s as u32
        };
        (0..16).map(add).collect()
    };
    let next = [z[0] + 1, z[1]];
    let right = multiply(&multiply(&next, &next), &FrParams::MODULUS);
    let left = sum(&multiply(&FpParams::MODULUS, &[3]), &multiply(&z, &[3]));
    assert_eq!(left, sum(&right, &[]));
    // r = z^4 - z^2 + 1
    let z2 = multiply(&z, &z);
    let left = sum(&sum(&FrParams::MODULUS, &z2), &[]);
    assert_eq!(left, sum(&multiply(&z2, &z2), &[1]));
}

fn check_roots<P: TwoAdicParams<8>>(two_adicity: u32) {
    assert_eq!(P::TWO_ADICITY, two_adicity);
    let mut x = Mont::<P, 8>::ROOT_OF_UNITY;
    for _ in 1..two_adicity {
        x = x.sqr();
    }
    assert_eq!(x, Mont::ONE.neg(), "the root has order exactly 2^s");
    // a generator is no square: Euler's criterion
    let half = cuzk_field::params::shift_right(&P::MODULUS, 1);
    let generator = Mont::<P, 8>::GENERATOR;
    assert_eq!(generator, Mont::from_u32(P::GENERATOR));
    assert_eq!(generator.pow_vartime(&half), Mont::ONE.neg());
}

#[test]
fn roots_of_unity_have_the_full_order() {
    check_roots::<FrParams>(32);
    check_roots::<BnFrParams>(28);
}

#[test]
fn another_curve_needs_nothing_but_its_constants() {
    let one = BnFp::ONE;
    let generator = Affine::<BnG1> {
        x: one,
        y: one.double(),
    };
    assert!(generator.is_on_curve());
    // [r] G = 0 by double and add, and no smaller multiple on the way is the identity
    let mut multiple = Xyzz::<BnG1>::IDENTITY;
    for i in (0..256).rev() {
        multiple.double();
        if BnFrParams::MODULUS[i / 32] >> (i % 32) & 1 == 1 {
            multiple.add_affine(&generator);
        }
        assert!(i == 0 || i > 253 || !multiple.is_identity());
    }
    assert!(multiple.is_identity());
    assert_eq!(FieldOps::mul(&one, &one), one);
}

#[test]
fn products_by_fixed_factors_agree_with_ordinary_ones() {
    fn check<P: FieldParams<8>>() {
        let samples = cuzk_field::axioms::samples::<Mont<P, 8>>(7, 60);
        for w in &samples {
            let fixed = Fixed::new(w);
            for x in &samples {
                let lazy = fixed.mul_lazy(x);
                assert!(lazy.canonical() == w.mul(x), "{w:?} {x:?}");
                assert!(cuzk_field::axioms::TestElement::in_range(&fixed.mul(x)));
            }
        }
    }
    check::<FrParams>();
    check::<BnFrParams>();
    check::<BnFpParams>();
}

#[test]
fn sums_of_products_are_reduced_at_once() {
    let samples = cuzk_field::axioms::samples::<Fp>(8, 20);
    for a in &samples {
        for b in &samples {
            let (ab, aa) = (Wide::product(a, b), Wide::product(a, a));
            assert_eq!(ab.reduce(), a.mul(b));
            assert_eq!(ab.add(&aa).reduce(), a.mul(&a.add(b)));
            assert_eq!(ab.add(&aa).sub(&ab).reduce(), a.sqr());
            assert_eq!(Wide::square(a).reduce(), a.sqr());
            assert_eq!(ab.sub_mod(&aa).reduce(), a.mul(&b.sub(a)));
        }
    }
}
