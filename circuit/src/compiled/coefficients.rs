//! Numbers the distinct coefficients of a circuit.

use super::wide::limbs;
use crate::Scalar;
use ff::Field;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The distinct coefficients so far; the id of 1 is 0.
pub(super) struct Coefficients {
    list: Vec<Scalar>,
    ids: HashMap<[u64; 4], u32, BuildHasherDefault<LimbHasher>>,
    minus_one: Scalar,
}

impl Coefficients {
    pub fn new() -> Self {
        let mut coefficients = Self {
            list: Vec::new(),
            ids: HashMap::default(),
            minus_one: -Scalar::ONE,
        };
        coefficients.intern(&Scalar::ONE);
        coefficients.intern(&-Scalar::ONE);
        coefficients
    }

    /// The id of a coefficient, new or known.
    #[inline]
    pub fn id(&mut self, coefficient: &Scalar) -> u32 {
        if *coefficient == Scalar::ONE {
            0
        } else if *coefficient == self.minus_one {
            1
        } else {
            self.intern(coefficient)
        }
    }

    fn intern(&mut self, coefficient: &Scalar) -> u32 {
        let next = self.list.len() as u32;
        let id = *self.ids.entry(limbs(coefficient)).or_insert(next);
        if id == next {
            self.list.push(*coefficient);
        }
        id
    }

    /// The coefficients in order of their ids.
    pub fn list(&self) -> &[Scalar] {
        &self.list
    }
}

/// Mixes the four limbs of a field element; the map compares whole keys anyway.
#[derive(Default)]
struct LimbHasher(u64);

impl Hasher for LimbHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
