//! Times the CPU mathematics against its peers in one run, interleaved, and prints ratios.
//!
//! `cargo bench -p cuzk-prover --bench cpu_mathematics -- [field|msm|compact|ntt|quotient|setup] [--log2 N] [--rounds N]`
//!
//! Without a name all parts run. Peers: blst's Pippenger for multi-scalar multiplication,
//! bellperson's evaluation domain for transforms and the quotient, its generator for parameters
//! (of a random circuit with 2^(N − 4) constraints). Each figure is the minimum over the rounds.

use bellperson::{domain::EvaluationDomain, groth16::generate_parameters};
use blst::MultiPoint;
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_circuit::{CompactScalars, testing::RandomCircuit};
use cuzk_prover::{
    msm,
    ntt::{Domain, Points},
    quotient::quotient_into,
    setup::{ToxicWaste, generate},
};
use ec_gpu_gen::threadpool::Worker;
use ff::{Field, PrimeField};
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use std::{error::Error, hint::black_box, time::Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut parts = Vec::new();
    let mut log2 = 18u32;
    let mut rounds = 3usize;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--log2" => log2 = arguments.next().ok_or("--log2 takes a number")?.parse()?,
            "--rounds" => rounds = arguments.next().ok_or("--rounds takes a number")?.parse()?,
            "--bench" | "--test" => {}
            part => parts.push(part.to_owned()),
        }
    }
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    println!("2^{log2}, {} threads", rayon::current_num_threads());
    if wanted("field") {
        field(rounds);
    }
    if wanted("msm") {
        msm_full(log2, rounds);
    }
    if wanted("compact") {
        msm_compact(log2, rounds);
    }
    if wanted("ntt") {
        ntt(log2, rounds)?;
    }
    if wanted("quotient") {
        quotient(log2, rounds)?;
    }
    if wanted("setup") {
        setup(log2.saturating_sub(4), rounds);
    }
    Ok(())
}

/// Runs the competitors in turn, `rounds` times, and prints each one's best wall and CPU time and
/// the ratios to the first one's. CPU time is what tells on a machine with other work to do.
fn race(what: &str, rounds: usize, competitors: &mut [(&str, &mut dyn FnMut())]) {
    let mut best = vec![(f64::MAX, f64::MAX); competitors.len()];
    for _ in 0..rounds {
        for ((_, run), best) in competitors.iter_mut().zip(&mut best) {
            let (start, cpu) = (Instant::now(), cpu_seconds());
            run();
            best.0 = best.0.min(start.elapsed().as_secs_f64());
            best.1 = best.1.min(cpu_seconds() - cpu);
        }
    }
    for ((name, _), (wall, cpu)) in competitors.iter().zip(&best) {
        println!(
            "{what:<24} {name:<14} wall {:>10.3} ms {:>6.2} x   CPU {:>10.3} ms {:>6.2} x",
            wall * 1e3,
            wall / best[0].0,
            cpu * 1e3,
            cpu / best[0].1
        );
    }
}

/// CPU time of all live threads of this process, from `/proc`; 0 where there is none.
fn cpu_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return 0.0;
    };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|line| line.split(' ').next()?.parse::<f64>().ok())
        .sum::<f64>()
        * 1e-9
}

fn field(rounds: usize) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let scalars: Vec<Scalar> = (0..1024).map(|_| Scalar::random(&mut rng)).collect();
    let mut accumulators = scalars.clone();
    let mut multiply = || {
        for _ in 0..1000 {
            for (x, y) in accumulators.iter_mut().zip(&scalars) {
                *x *= y;
            }
        }
        black_box(&accumulators);
    };
    race(
        "2^20 Fr multiplications",
        rounds,
        &mut [("blst", &mut multiply)],
    );
}

/// i·P for i = 1, 2, 3, …
fn g1_points(n: usize) -> Vec<G1Affine> {
    let first = G1Projective::generator();
    let points: Vec<G1Projective> = std::iter::successors(Some(first), |p| Some(p + first))
        .take(n)
        .collect();
    let mut affine = vec![G1Affine::default(); n];
    G1Projective::batch_normalize(&points, &mut affine);
    affine
}

fn g2_points(n: usize) -> Vec<G2Affine> {
    let first = G2Projective::generator();
    let points: Vec<G2Projective> = std::iter::successors(Some(first), |p| Some(p + first))
        .take(n)
        .collect();
    let mut affine = vec![G2Affine::default(); n];
    G2Projective::batch_normalize(&points, &mut affine);
    affine
}

fn random_scalars(n: usize) -> Vec<Scalar> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut scalar = Scalar::random(&mut rng);
    let step = Scalar::random(&mut rng);
    (0..n)
        .map(|_| {
            scalar *= step;
            scalar
        })
        .collect()
}

fn bytes(scalars: &[Scalar]) -> Vec<u8> {
    scalars.iter().flat_map(|s| s.to_repr()).collect()
}

fn msm_full(log2: u32, rounds: usize) {
    let n = 1usize << log2;
    let scalars = random_scalars(n);
    let bases = g1_points(n);
    let raw: Vec<_> = bases.iter().map(|p| *p.as_ref()).collect();
    let encoded = bytes(&scalars);
    race(
        "G1 full width",
        rounds,
        &mut [
            ("own", &mut || {
                black_box(msm::g1(&bases, &scalars));
            }),
            ("blst", &mut || {
                black_box(raw.as_slice().mult(&encoded, 255));
            }),
        ],
    );
    let n = n >> 2;
    let bases = g2_points(n);
    let raw: Vec<_> = bases.iter().map(|p| *p.as_ref()).collect();
    race(
        "G2 full width, n/4",
        rounds,
        &mut [
            ("own", &mut || {
                black_box(msm::g2(&bases, &scalars[..n]));
            }),
            ("blst", &mut || {
                black_box(raw.as_slice().mult(&encoded[..32 * n], 255));
            }),
        ],
    );
    let n = 1024.min(n);
    let bases = g1_points(n);
    let raw: Vec<_> = bases.iter().map(|p| *p.as_ref()).collect();
    race(
        "G1 full width, 2^10",
        rounds,
        &mut [
            ("own", &mut || {
                black_box(msm::g1(&bases, &scalars[..n]));
            }),
            ("blst", &mut || {
                black_box(raw.as_slice().mult(&encoded[..32 * n], 255));
            }),
            ("naive", &mut || {
                let sum: G1Projective = bases.iter().zip(&scalars).map(|(p, k)| p * k).sum();
                black_box(sum.to_affine());
            }),
        ],
    );
}

/// A witness like Filecoin's: 52 % zeros, 45 % ones, 3 % others.
fn msm_compact(log2: u32, rounds: usize) {
    let n = 1usize << log2;
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let full: Vec<Scalar> = random_scalars(n)
        .into_iter()
        .map(|scalar| match rng.next_u32() % 100 {
            0..52 => Scalar::ZERO,
            52..97 => Scalar::ONE,
            _ => scalar,
        })
        .collect();
    let compact = CompactScalars::from(full.as_slice());
    let bases = g1_points(n);
    let raw: Vec<_> = bases.iter().map(|p| *p.as_ref()).collect();
    let encoded = bytes(&full);
    race(
        "G1 compact witness",
        rounds,
        &mut [
            ("own compact", &mut || {
                black_box(msm::g1_compact(&bases, &compact, None));
            }),
            ("own full", &mut || {
                black_box(msm::g1(&bases, &full));
            }),
            ("blst", &mut || {
                black_box(raw.as_slice().mult(&encoded, 255));
            }),
        ],
    );
}

fn ntt(log2: u32, rounds: usize) -> Result<(), Box<dyn Error>> {
    let domain = Domain::new(log2)?;
    let mut values = random_scalars(domain.len());
    let (mut coset, mut natural) = (values.clone(), values.clone());
    let mut peer = EvaluationDomain::from_coeffs(values.clone())?;
    let worker = Worker::new();
    race(
        "forward transform",
        rounds,
        &mut [
            ("own, reversed", &mut || {
                black_box(domain.evaluate_reversed(&mut values, Points::Subgroup)).ok();
            }),
            ("own, coset", &mut || {
                black_box(domain.evaluate_reversed(&mut coset, Points::Coset)).ok();
            }),
            ("own, natural", &mut || {
                black_box(domain.evaluate(&mut natural, Points::Subgroup)).ok();
            }),
            ("bellperson", &mut || {
                black_box(peer.fft(&worker, &mut None)).ok();
            }),
        ],
    );
    Ok(())
}

fn quotient(log2: u32, rounds: usize) -> Result<(), Box<dyn Error>> {
    let domain = Domain::new(log2)?;
    let n = domain.len();
    let (mut a, mut b, mut h) = (random_scalars(n), random_scalars(n), vec![Scalar::ZERO; n]);
    let peer = || EvaluationDomain::from_coeffs(random_scalars(n));
    let (mut pa, mut pb, mut pc) = (peer()?, peer()?, peer()?);
    let worker = Worker::new();
    race(
        "quotient",
        rounds,
        &mut [
            ("own", &mut || {
                black_box(quotient_into(&domain, &mut a, &mut b, &mut h)).ok();
            }),
            ("bellperson", &mut || {
                for values in [&mut pa, &mut pb, &mut pc] {
                    values.ifft(&worker, &mut None).ok();
                    values.coset_fft(&worker, &mut None).ok();
                }
                pa.mul_assign(&worker, &pb);
                pa.sub_assign(&worker, &pc);
                pa.divide_by_z_on_coset(&worker);
                black_box(pa.icoset_fft(&worker, &mut None)).ok();
            }),
        ],
    );
    Ok(())
}

fn setup(log2: u32, rounds: usize) {
    let circuit = RandomCircuit::new((1 << log2) - 8, 4, 1);
    let waste = ToxicWaste::random(ChaCha20Rng::seed_from_u64(4));
    race(
        "parameters",
        rounds,
        &mut [
            ("own", &mut || {
                black_box(generate(circuit.clone(), &waste)).ok();
            }),
            ("bellperson", &mut || {
                black_box(generate_parameters::<Bls12, _>(
                    circuit.clone(),
                    waste.g1,
                    waste.g2,
                    waste.alpha,
                    waste.beta,
                    waste.gamma,
                    waste.delta,
                    waste.tau,
                ))
                .ok();
            }),
        ],
    );
}
