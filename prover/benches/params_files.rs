//! Times writing and opening a parameter file of the size of PoRep 2 KiB (1.1 GB), or of a share of
//! it: `cargo bench -p cuzk-prover --bench params_files -- [share]`.

use std::{env, path::Path, time::Instant};

use blstrs::{G1Affine, G1Projective, G2Projective};
use cuzk_prover::{Params, Points, SubgroupCheck, VerifyingKey};
use group::{Curve, Group};

/// `count` points, a few thousand of them different.
fn repeated<P: Group + Curve<AffineRepr: Copy>>(count: usize) -> Vec<P::AffineRepr> {
    let mut point = P::generator();
    let distinct: Vec<_> = (0..4096)
        .map(|_| {
            point = point.double();
            point.to_affine()
        })
        .collect();
    distinct.iter().copied().cycle().take(count).collect()
}

/// Parameters whose points are good and mean nothing.
fn params(share: f64) -> Params {
    let scaled = |count: usize| (count as f64 * share) as usize;
    let domain = scaled(1 << 22).next_power_of_two();
    let (l, a, b) = (scaled(2_685_673), 40 + scaled(2_674_948), scaled(685_522));
    let g1 = repeated::<G1Projective>;
    let (p, q) = (
        G1Affine::from(G1Projective::generator()),
        G2Projective::generator().to_affine(),
    );
    let vk = VerifyingKey {
        alpha_g1: p,
        beta_g1: p,
        beta_g2: q,
        gamma_g2: q,
        delta_g1: p,
        delta_g2: q,
        ic: g1(40),
    };
    let points = Points {
        h: g1(domain - 1),
        l: g1(l),
        a: g1(a),
        b_g1: g1(b),
        b_g2: repeated::<G2Projective>(b),
    };
    Params::from_parts(vk, points).unwrap()
}

/// The processor time of this process so far in seconds, where Linux tells it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|text| text.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = work();
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!("{what:<36} {wall:8.2} s wall {cpu:8.2} s cpu");
    result
}

fn main() {
    let share = env::args()
        .find_map(|text| text.parse().ok())
        .unwrap_or(1.0);
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("bench.params");
    let params = params(share);
    println!(
        "{} bytes, {} threads",
        params.counts().file_bytes(),
        rayon::current_num_threads()
    );
    timed("write, sync, rename", || params.write(path).unwrap());
    let (g1, g2) = (&params.h()[..4096], &params.b_g2()[..4096]);
    timed("check 4096 points of G1 one by one", || {
        assert!(g1.iter().all(|point| bool::from(point.is_torsion_free())));
    });
    timed("check 4096 points of G2 one by one", || {
        assert!(g2.iter().all(|point| bool::from(point.is_torsion_free())));
    });
    drop(params);
    timed("map: layout and key", || Params::map(path).unwrap());
    timed("open, curve check only", || {
        Params::open_with(path, SubgroupCheck::KeyOnly).unwrap()
    });
    timed("open, curve and subgroup check", || {
        Params::open(path).unwrap()
    });
}
