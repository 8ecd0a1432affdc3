//! Multi-scalar multiplication over a compact witness with a density mask.

use super::{curve::Curve, digits::Recoded, lanes::Sum, pippenger};
use cuzk_circuit::{Bitmap, CompactScalars};
use group::Group;
use rayon::prelude::*;

/// Words of 64 scalars that a task takes at least.
const TASK_WORDS: usize = 64;

/// Bases and scalars for one word of 64 scalars.
struct Word {
    /// Scalars that have a base.
    dense: u64,
    /// Index of the first base.
    base: usize,
}

impl Word {
    /// The base of scalar `bit`, which must be dense.
    #[inline(always)]
    fn base_of(&self, bit: u32) -> usize {
        self.base + (self.dense & ((1 << bit) - 1)).count_ones() as usize
    }
}

/// What a run of words contributes.
struct Share<C: Curve> {
    /// The sum of the bases of its ones.
    ones: C::Projective,
    /// The bases of its other scalars.
    points: Vec<C::Affine>,
    /// Its other scalars.
    scalars: Vec<Recoded>,
}

/// `Σ scalars[i] · base` over the dense scalars.
pub(crate) fn multiply<C: Curve>(
    bases: &[C::Affine],
    scalars: &CompactScalars,
    density: Option<&Bitmap>,
) -> C::Projective {
    let words = words(scalars.len(), density);
    let task = words
        .len()
        .div_ceil(4 * rayon::current_num_threads())
        .max(TASK_WORDS);
    let shares: Vec<Share<C>> = words
        .par_chunks(task)
        .enumerate()
        .map(|(i, words)| share(bases, scalars, words, i * task))
        .collect();
    let mut sum = C::Projective::identity();
    let mut points = Vec::new();
    let mut recoded = Vec::new();
    for share in shares {
        sum += share.ones;
        points.extend(share.points);
        recoded.extend(share.scalars);
    }
    sum + pippenger::multiply::<C>(&points, &recoded)
}

/// Which scalars are dense, and where the bases of each word start.
fn words(len: usize, density: Option<&Bitmap>) -> Vec<Word> {
    let mut base = 0;
    (0..len.div_ceil(64))
        .map(|i| {
            let within = match len - i * 64 {
                left @ 0..64 => (1 << left) - 1,
                _ => u64::MAX,
            };
            let mask = density.map_or(u64::MAX, |bits| bits.words().get(i).copied().unwrap_or(0));
            let word = Word {
                dense: mask & within,
                base,
            };
            base += word.dense.count_ones() as usize;
            word
        })
        .collect()
}

/// The share of a run of words from word `first` on.
fn share<C: Curve>(
    bases: &[C::Affine],
    scalars: &CompactScalars,
    words: &[Word],
    first: usize,
) -> Share<C> {
    let mut ones = Sum::<C>::new();
    let mut points = Vec::new();
    let mut recoded = Vec::new();
    for (i, word) in (first..).zip(words) {
        for_each_bit(scalars.bits().words()[i] & word.dense, |bit| {
            if let Some(base) = bases.get(word.base_of(bit)) {
                ones.add(C::load(base));
            }
        });
        let is_other = scalars.is_other().words()[i];
        let rank = scalars.ranks()[i] as usize;
        for_each_bit(is_other & word.dense, |bit| {
            let index = rank + (is_other & ((1 << bit) - 1)).count_ones() as usize;
            if let Some(base) = bases.get(word.base_of(bit)) {
                points.push(*base);
                recoded.push(Recoded::new(&scalars.others()[index]));
            }
        });
    }
    Share {
        ones: ones.finish(),
        points,
        scalars: recoded,
    }
}

#[inline(always)]
fn for_each_bit(mut word: u64, mut visit: impl FnMut(u32)) {
    while word != 0 {
        visit(word.trailing_zeros());
        word &= word - 1;
    }
}
