//! The quotient in parts on the emulator against the CPU's.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{Fr, casts};
use cuzk_kernels::runtime::{Arena, EmulatedRuntime, Runtime, RuntimeError};
use ff::Field;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::ntt::{At, Transform};
use super::parts::{HostArrays, PartedQuotient, strip_bytes, table_bytes};
use crate::ntt::Domain;
use crate::quotient::quotient_into;

/// All coefficients of the quotient, made in 2^`rows` parts with strips of `columns`.
fn in_parts(values: [&[Scalar]; 2], log2: u32, rows: u32, columns: usize) -> Vec<Scalar> {
    let device = EmulatedRuntime::new(1 << 30);
    let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
    let quotient = PartedQuotient::new(&runtime, log2, rows).unwrap();
    assert!(device.reserved() <= table_bytes(log2, rows) + 256);
    let part = quotient.part_len();
    let bytes = strip_bytes(rows, columns).max(3 * Arena::bytes::<Fr>(part));
    let mut arena = Arena::new(&runtime, bytes).unwrap();
    let mut host = HostArrays::default();
    quotient
        .walk(&mut arena, values, &mut host, columns, || {
            Ok::<_, RuntimeError>(())
        })
        .unwrap();
    let mut h = vec![Scalar::ZERO; 1 << log2];
    for number in 0..1 << rows {
        let mark = arena.mark();
        let array = quotient.part(&mut arena, &host, number).unwrap();
        let mut found = vec![Scalar::ZERO; part];
        let raw = bytemuck::cast_slice_mut(casts::from_blst_mut::<Fr>(&mut found));
        runtime.download(array.address(), raw).unwrap();
        arena.rewind(mark);
        let first = quotient.first_coefficient(number);
        for (i, value) in found.into_iter().enumerate() {
            h[first + (i << rows)] = value;
        }
    }
    h
}

#[test]
fn the_quotient_in_parts_is_the_cpus() {
    let seed = 21;
    println!("seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    for (log2, rows, columns) in [(4, 1, 8), (5, 2, 2), (6, 3, 4)] {
        let n = 1usize << log2;
        // The last values are missing: they count as zeros.
        let mut random = || {
            (0..n - 3)
                .map(|_| Scalar::random(&mut rng))
                .collect::<Vec<_>>()
        };
        let (a, b) = (random(), random());
        let found = in_parts([&a, &b], log2, rows, columns);
        let domain = Domain::new(log2).unwrap();
        let mut expected = Vec::new();
        quotient_into(&domain, &mut a.clone(), &mut b.clone(), &mut expected).unwrap();
        assert_eq!(
            found[..n - 1],
            expected[..n - 1],
            "2^{log2} in 2^{rows} parts"
        );
        assert_eq!(found[n - 1], Scalar::ZERO);
    }
}

#[test]
fn tables_take_the_memory_that_is_planned_for_them() {
    for log2 in [3, 10, 11, 14, 20] {
        for at in [At::Roots, At::OddRoots] {
            let device = EmulatedRuntime::new(1 << 30);
            let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
            let direction = super::ntt::Direction::Forward;
            let transform = Transform::new(&runtime, log2, direction, at).unwrap();
            assert_eq!(
                device.reserved(),
                Transform::table_bytes(log2, at),
                "2^{log2}"
            );
            drop(transform);
        }
    }
}
