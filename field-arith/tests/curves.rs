//! Endomorphisms, subgroup membership, scalars in base z and encodings, against blst.

use cuzk_field::bls12_381::encoding::{PointError, Uncompressed};
use cuzk_field::bls12_381::endomorphism::{
    BETA, PSI_X, PSI_Y, Subgroup, Z, digits_in_base_z, halves,
};
use cuzk_field::casts::{from_blst, to_blst};
use cuzk_field::params::{FieldParams, divide_small, minus_one, shift_right};
use cuzk_field::{Affine, FieldOps, Fp, Fp2, Fr, G1, G1Affine, G2, G2Affine, Xyzz};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

const SEED: u64 = 0x5eed_0002;

fn rng() -> ChaCha20Rng {
    println!("seed {SEED:#x}");
    ChaCha20Rng::seed_from_u64(SEED)
}

fn minus_one_over(k: u32) -> [u32; 12] {
    divide_small(&minus_one(&Fp::MODULUS), k)
}

fn power(x: &Fp2, e: &[u32; 12]) -> Fp2 {
    let mut z = Fp2::ONE;
    for i in (0..384).rev() {
        z = z.sqr();
        if e[i / 32] >> (i % 32) & 1 == 1 {
            z = z.mul(x);
        }
    }
    z
}

#[test]
fn endomorphism_constants_satisfy_their_formulas() {
    assert!(BETA != Fp::ONE && BETA.sqr().mul(&BETA) == Fp::ONE);
    let twist = Fp2::new(Fp::ONE, Fp::ONE);
    assert_eq!(PSI_X.mul(&power(&twist, &minus_one_over(3))), Fp2::ONE);
    assert_eq!(PSI_Y.mul(&power(&twist, &minus_one_over(2))), Fp2::ONE);
}

/// A point of the curve that is almost surely outside the subgroup: x random, y its root.
fn outside<C: cuzk_field::Curve>(
    rng: &mut ChaCha20Rng,
    random: impl Fn(&mut ChaCha20Rng) -> C::Base,
    root: impl Fn(&C::Base) -> C::Base,
) -> Affine<C> {
    loop {
        let x = random(rng);
        let square = x.sqr().mul(&x).add(&C::B);
        let p = Affine {
            x,
            y: root(&square),
        };
        if p.is_on_curve() {
            return p.canonical();
        }
    }
}

fn random_fp(rng: &mut ChaCha20Rng) -> Fp {
    Fp::from_integer(&std::array::from_fn(|_| rng.next_u32()))
}

fn root_fp(x: &Fp) -> Fp {
    // p = 3 mod 4: x^((p + 1) / 4)
    x.pow_vartime(&shift_right(&Fp::MODULUS, 2)).mul(x)
}

fn root_fp2(x: &Fp2) -> Fp2 {
    // complex method: c0 = sqrt((a + |x|) / 2)
    let half = Fp::from_u32(2).invert();
    let norm = root_fp(&x.norm());
    for norm in [norm, norm.neg()] {
        let c0 = root_fp(&x.c0.add(&norm).mul(&half));
        let c1 = x.c1.mul(&half).mul(&c0.invert());
        let y = Fp2::new(c0, c1);
        if y.sqr() == *x {
            return y;
        }
    }
    Fp2::ZERO
}

/// Multiplication by an integer, the naive way.
fn multiple<C: cuzk_field::Curve>(p: &Affine<C>, k: &[u32]) -> Xyzz<C> {
    let mut sum = Xyzz::IDENTITY;
    for i in (0..32 * k.len()).rev() {
        sum.double();
        if k[i / 32] >> (i % 32) & 1 == 1 {
            sum.add_affine(p);
        }
    }
    sum
}

fn check_membership<C: Subgroup>(members: &[Affine<C>], others: &[Affine<C>]) {
    for p in members {
        assert!(C::contains(p));
        assert!(multiple(p, &Fr::MODULUS).is_identity());
    }
    for p in others {
        assert!(p.is_on_curve());
        assert_eq!(C::contains(p), multiple(p, &Fr::MODULUS).is_identity());
        // r P is in the complement, cofactor components of small order included
        let torsion = multiple(p, &Fr::MODULUS).to_affine();
        assert_eq!(C::contains(&torsion), torsion.is_identity());
    }
    assert!(C::contains(&Affine::IDENTITY));
}

#[test]
fn membership_in_g1_is_what_multiplication_by_r_says() {
    let mut rng = rng();
    let members: Vec<_> = (0..4)
        .map(|_| blstrs::G1Projective::random(&mut rng).to_affine())
        .collect();
    let others: Vec<G1Affine> = (0..4)
        .map(|_| outside::<G1>(&mut rng, random_fp, root_fp))
        .collect();
    check_membership::<G1>(from_blst(&members), &others);
    // a point of order 3, x = 0: addition meets every exceptional case on the way
    let three = G1Affine {
        x: Fp::ZERO,
        y: Fp::from_u32(2),
    };
    assert!(three.is_on_curve() && multiple(&three, &[3]).is_identity());
    assert!(!G1::contains(&three));
}

#[test]
fn membership_in_g2_is_what_multiplication_by_r_says() {
    let mut rng = rng();
    let members: Vec<_> = (0..4)
        .map(|_| blstrs::G2Projective::random(&mut rng).to_affine())
        .collect();
    let random = |rng: &mut ChaCha20Rng| Fp2::new(random_fp(rng), random_fp(rng));
    let others: Vec<G2Affine> = (0..4)
        .map(|_| outside::<G2>(&mut rng, random, root_fp2))
        .collect();
    check_membership::<G2>(from_blst(&members), &others);
    // h2 = 13^2 · 23^2 · … : the component of order 13 or 169
    let q = others[0];
    let mut cofactor = multiple(&q, &Fr::MODULUS);
    cofactor = multiple(&cofactor.to_affine(), &[2713 * 11953]);
    assert!(!G2::contains(&cofactor.to_affine()));
}

#[test]
fn digits_in_base_z_recompose_the_scalar_and_the_multiple() {
    let mut rng = rng();
    let mut scalars = vec![
        blstrs::Scalar::ZERO,
        blstrs::Scalar::ONE,
        -blstrs::Scalar::ONE,
        blstrs::Scalar::from(Z),
        blstrs::Scalar::from(Z - 1),
        blstrs::Scalar::from(Z).square(),
        blstrs::Scalar::from(Z).square() - blstrs::Scalar::ONE,
        blstrs::Scalar::from(Z).square() * blstrs::Scalar::from(Z) - blstrs::Scalar::ONE,
    ];
    scalars.extend((0..40).map(|_| blstrs::Scalar::random(&mut rng)));
    let p1 = blstrs::G1Projective::random(&mut rng);
    let p2 = blstrs::G2Projective::random(&mut rng);
    let phi = G1::endomorphism(&from_blst(&[p1.to_affine()])[0]).canonical();
    let phi = blstrs::G1Projective::from(to_blst(&[phi])[0]);
    let mut psi = vec![p2];
    for i in 0..3 {
        let image = G2::endomorphism(&from_blst(&[psi[i].to_affine()])[0]).canonical();
        psi.push(to_blst(&[image])[0].to_curve());
    }
    let scalar = |n: u128| {
        blstrs::Scalar::from((n >> 64) as u64) * blstrs::Scalar::from(2).pow_vartime([64])
            + blstrs::Scalar::from(n as u64)
    };
    for k in scalars {
        let integer: [u32; 8] = bytemuck::cast(k.to_repr());
        let digits = digits_in_base_z(&integer);
        assert!(digits.iter().all(|&d| d < Z));
        let value = |d: &[u64]| {
            d.iter().rev().fold(blstrs::Scalar::ZERO, |sum, &d| {
                sum * blstrs::Scalar::from(Z) + blstrs::Scalar::from(d)
            })
        };
        assert_eq!(value(&digits), k);
        let [low, high] = halves(&integer);
        assert_eq!(scalar(low), value(&digits[..2]));
        assert_eq!(p1 * scalar(low) - phi * scalar(high), p1 * k);
        let sum = digits
            .iter()
            .zip(&psi)
            .rev()
            .fold(blstrs::G2Projective::identity(), |sum, (&d, image)| {
                *image * blstrs::Scalar::from(d) - sum
            });
        // d0 - (d1 - (d2 - d3)) with the powers of ψ
        assert_eq!(sum, p2 * k);
    }
}

#[test]
fn points_survive_the_uncompressed_encoding_that_blst_writes() {
    let mut rng = rng();
    let mut g1: Vec<_> = (0..20)
        .map(|_| blstrs::G1Projective::random(&mut rng).to_affine())
        .collect();
    let mut g2: Vec<_> = (0..20)
        .map(|_| blstrs::G2Projective::random(&mut rng).to_affine())
        .collect();
    g1.push(blstrs::G1Affine::identity());
    g2.push(blstrs::G2Affine::identity());
    for p in &g1 {
        let words: [[u32; 12]; 2] = bytemuck::cast(p.to_uncompressed());
        let ours = G1::decode(&words).unwrap();
        assert_eq!(to_blst(&[ours])[0], *p);
        assert_eq!(G1::encode(&ours), words);
    }
    for p in &g2 {
        let words: [[u32; 12]; 4] = bytemuck::cast(p.to_uncompressed());
        let ours = G2::decode(&words).unwrap();
        assert_eq!(to_blst(&[ours])[0], *p);
        assert_eq!(G2::encode(&ours), words);
    }
}

#[test]
fn faulty_encodings_are_told_apart() {
    let good = blstrs::G1Affine::generator().to_uncompressed();
    let decode = |change: &dyn Fn(&mut [u8; 96])| {
        let mut bytes = good;
        change(&mut bytes);
        let words: [[u32; 12]; 2] = bytemuck::cast(bytes);
        G1::decode(&words).map(|_| ())
    };
    assert_eq!(decode(&|_| ()), Ok(()));
    assert_eq!(decode(&|b| b[0] |= 0x80), Err(PointError::Flags));
    assert_eq!(decode(&|b| b[0] |= 0x20), Err(PointError::Flags));
    assert_eq!(decode(&|b| b[0] |= 0x40), Err(PointError::Identity));
    assert_eq!(decode(&|b| b[95] ^= 1), Err(PointError::NotOnCurve));
    assert_eq!(decode(&|b| *b = [0; 96]), Err(PointError::NotOnCurve));
    let modulus: Vec<u8> = Fp::MODULUS
        .iter()
        .rev()
        .flat_map(|w| w.to_be_bytes())
        .collect();
    assert_eq!(
        decode(&|b| b[..48].copy_from_slice(&modulus)),
        Err(PointError::Range)
    );
    assert_eq!(
        decode(&|b| b[48..].copy_from_slice(&modulus)),
        Err(PointError::Range)
    );
    assert_eq!(cuzk_field::bls12_381::FpParams::NAME, "Fp");
}
