//! Fields and points against blst: casts, arithmetic on random and on edge values.

use cuzk_field::casts::{from_blst, to_blst};
use cuzk_field::{FieldOps, Fp, Fp2, Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz};
use ff::Field;
use group::{Curve, Group};
use oracle::{BlstFp, BlstFp2};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

mod oracle;

const SEED: u64 = 0x5eed_0001;

fn rng() -> ChaCha20Rng {
    println!("seed {SEED:#x}");
    ChaCha20Rng::seed_from_u64(SEED)
}

fn blst_fr(x: &Fr) -> blstrs::Scalar {
    to_blst(&[x.canonical()])[0]
}

fn blst_fp(x: &Fp) -> BlstFp {
    BlstFp::new(x)
}

fn blst_fp2(x: &Fp2) -> BlstFp2 {
    BlstFp2::new(x)
}

fn random_fp(rng: &mut ChaCha20Rng) -> Fp {
    let mut n = [0; 12];
    n.iter_mut().for_each(|limb| *limb = rng.next_u32());
    Fp::from_integer(&n).canonical()
}

/// p - 1, p, 2p - 1 and the like in Montgomery limbs, then random values over the lazy range.
fn fp_values(rng: &mut ChaCha20Rng) -> Vec<Fp> {
    let one = Fp::from_limbs([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let minus_one = one.neg();
    let mut values = vec![
        Fp::ZERO,
        one,
        Fp::ONE,
        Fp::ONE.neg(),
        minus_one.canonical(),
        Fp::from_limbs(Fp::MODULUS),
        minus_one,
    ];
    for _ in 0..24 {
        let x = random_fp(rng);
        values.push(x);
        values.push(x.add_unreduced(&Fp::from_limbs(Fp::MODULUS)));
    }
    values
}

fn fr_values(rng: &mut ChaCha20Rng) -> Vec<Fr> {
    let one = Fr::from_limbs([1, 0, 0, 0, 0, 0, 0, 0]);
    let mut values = vec![Fr::ZERO, one, one.neg(), Fr::ONE, Fr::ONE.neg()];
    values.extend((0..40).map(|_| from_blst::<Fr>(&[blstrs::Scalar::random(&mut *rng)])[0]));
    values
}

#[test]
fn scalar_operations_agree_with_blst_and_stay_canonical() {
    let values = fr_values(&mut rng());
    let check = |ours: Fr, theirs: blstrs::Scalar| {
        assert_eq!(ours.limbs(), from_blst::<Fr>(&[theirs])[0].limbs());
    };
    for a in &values {
        let x = blst_fr(a);
        check(a.neg(), -x);
        check(a.double(), x + x);
        check(a.sqr(), x * x);
        check(a.invert(), x.invert().unwrap_or(blstrs::Scalar::ZERO));
        check(Fr::from_integer(&a.to_integer()), x);
        for b in &values {
            let y = blst_fr(b);
            check(a.add(b), x + y);
            check(a.sub(b), x - y);
            check(a.mul(b), x * y);
            check(a.mul_karatsuba(b), x * y);
            check(a.mul_lazy(b).canonical(), x * y);
            check(a.mul_add_mul(b, a, a), x * y + x * x);
            check(a.mul_sub_mul(b, b, b), x * y - y * y);
        }
    }
}

#[test]
fn base_field_operations_agree_with_blst_over_the_whole_lazy_range() {
    let values = fp_values(&mut rng());
    let bound = Fp::from_limbs([0; 12]).neg_unreduced();
    let check = |ours: Fp, theirs: BlstFp| {
        assert!(
            ours.limbs().iter().rev().lt(bound.limbs().iter().rev()),
            "{ours:?}"
        );
        assert_eq!(ours.canonical().limbs(), theirs.ours().limbs());
    };
    for a in &values {
        let x = blst_fp(a);
        check(a.neg(), -x);
        check(a.double(), x + x);
        check(a.sqr(), x * x);
        check(a.invert(), x.invert());
        check(Fp::from_integer(&a.to_integer()), x);
        assert_eq!(a.is_zero(), x.ours().is_raw_zero());
        for b in &values {
            let y = blst_fp(b);
            check(a.add(b), x + y);
            check(a.sub(b), x - y);
            check(a.mul(b), x * y);
            check(a.mul_karatsuba(b), x * y);
            check(a.mul_add_mul(b, a, a), x * y + x * x);
            check(a.mul_sub_mul(b, b, b), x * y - y * y);
            assert_eq!(a == b, x == y);
        }
    }
}

#[test]
fn quadratic_extension_agrees_with_blst_over_the_whole_lazy_range() {
    let mut rng = rng();
    let edge = fp_values(&mut rng);
    let values: Vec<Fp2> = (0..60)
        .map(|_| {
            let mut pick = || edge[rng.next_u32() as usize % edge.len()];
            Fp2::new(pick(), pick())
        })
        .collect();
    for a in &values {
        let x = blst_fp2(a);
        assert_eq!(blst_fp2(&a.sqr()), x * x);
        assert_eq!(blst_fp2(&a.neg()), -x);
        assert_eq!(blst_fp2(&a.invert()), x.invert());
        for b in &values {
            let y = blst_fp2(b);
            assert_eq!(blst_fp2(&a.mul(b)), x * y);
            assert_eq!(blst_fp2(&a.mul_karatsuba(b)), x * y);
            assert_eq!(blst_fp2(&a.add(b)), x + y);
            assert_eq!(blst_fp2(&a.sub(b)), x - y);
            assert_eq!(blst_fp2(&a.mul_sub_mul(b, b, b)), x * y - y * y);
        }
    }
}

/// Every pair out of random points, their opposites, doubles and the identity, in affine and in
/// XYZZ form with random denominators.
macro_rules! point_test {
    ($name:ident, $affine:ident, $xyzz:ident, $field:ty, $group:ty, $theirs:ty) => {
        #[test]
        fn $name() {
            let mut rng = rng();
            let p = <$group>::random(&mut rng);
            let q = <$group>::random(&mut rng);
            let points: Vec<$group> = vec![
                p,
                -p,
                p + p,
                q,
                -q,
                p + q,
                <$group>::identity(),
                <$group>::generator(),
            ];
            let affine: Vec<$theirs> = points.iter().map(|p| p.to_affine()).collect();
            let ours: &[$affine] = from_blst(&affine);
            let rescale = |p: &$affine, k: u32| {
                let mut z = <$field as FieldOps>::ONE;
                for _ in 0..k {
                    z = z.double().add(&FieldOps::ONE);
                }
                let zz = z.sqr();
                let zzz = zz.mul(&z);
                let at_infinity = if p.is_identity() { FieldOps::ZERO } else { zz };
                $xyzz {
                    x: p.x.mul(&zz),
                    y: p.y.mul(&zzz),
                    zz: at_infinity,
                    zzz,
                }
            };
            let expect = |got: &$xyzz, want: $group| {
                let got = got.to_affine();
                assert_eq!(to_blst(&[got])[0], want.to_affine());
                assert_eq!(got.is_identity(), bool::from(want.is_identity()));
            };
            for (i, a) in ours.iter().enumerate() {
                assert!(a.is_on_curve());
                expect(&$xyzz::from_affine(a), points[i]);
                let mut twice = rescale(a, 5);
                twice.double();
                expect(&twice, points[i].double());
                for (j, b) in ours.iter().enumerate() {
                    let mut sum = rescale(a, 3);
                    sum.add_affine(b);
                    expect(&sum, points[i] + points[j]);
                    let mut sum = rescale(a, 3);
                    sum.add(&rescale(b, 4));
                    expect(&sum, points[i] + points[j]);
                    assert_eq!(
                        rescale(a, 1).is_same_point(&rescale(b, 2)),
                        points[i] == points[j]
                    );
                }
            }
        }
    };
}
point_test!(
    g1_additions_are_right_in_every_case,
    G1Affine,
    G1Xyzz,
    Fp,
    blstrs::G1Projective,
    blstrs::G1Affine
);
point_test!(
    g2_additions_are_right_in_every_case,
    G2Affine,
    G2Xyzz,
    Fp2,
    blstrs::G2Projective,
    blstrs::G2Affine
);
