//! Field elements in compact form: bits as bits, everything else densely in order.

use crate::{Bitmap, Scalar};
use ff::Field;

/// One element of a [`CompactScalars`] sequence.
#[derive(Clone, Copy, Debug)]
pub enum Compact<'a> {
    /// The value 0 or 1.
    Bit(bool),
    /// A value that is neither 0 nor 1.
    Other(&'a Scalar),
}

/// A sequence of field elements in which 0 and 1 take two bits each.
///
/// Element `i` is `bits[i]` where `is_other[i]` is 0 (and `bits[i]` is 0 where `is_other[i]` is
/// 1); the elements that are neither 0 nor 1 stand in `others` in their order. The form is
/// canonical: equal sequences have equal representations. At most 2³² − 1 elements may be other
/// than 0 and 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactScalars {
    is_other: Bitmap,
    bits: Bitmap,
    others: Vec<Scalar>,
    /// Number of others before each 64-bit word, so that element `i` is found in constant time.
    ranks: Vec<u32>,
}

impl CompactScalars {
    /// An empty sequence.
    pub const fn new() -> Self {
        Self {
            is_other: Bitmap::new(),
            bits: Bitmap::new(),
            others: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// An empty sequence with room for `len` elements, `others` of them neither 0 nor 1.
    pub fn with_capacity(len: usize, others: usize) -> Self {
        Self {
            is_other: Bitmap::with_capacity(len),
            bits: Bitmap::with_capacity(len),
            others: Vec::with_capacity(others),
            ranks: Vec::with_capacity(len.div_ceil(64)),
        }
    }

    /// Appends any element; 0 and 1 are recognised.
    #[inline]
    pub fn push(&mut self, value: Scalar) {
        if value == Scalar::ZERO {
            self.push_bit(false);
        } else if value == Scalar::ONE {
            self.push_bit(true);
        } else {
            self.start_word();
            self.is_other.push(true);
            self.bits.push(false);
            self.others.push(value);
        }
    }

    /// Appends 0 or 1.
    #[inline]
    pub fn push_bit(&mut self, bit: bool) {
        self.start_word();
        self.is_other.push(false);
        self.bits.push(bit);
    }

    /// Appends the low `count` bits of `word` as zeros and ones, lowest first; `count` above 64
    /// counts as 64.
    #[inline]
    pub fn push_bits(&mut self, word: u64, count: usize) {
        let rank = self.others.len() as u32;
        self.is_other.push_bits(0, count);
        self.bits.push_bits(word, count);
        self.ranks.resize(self.is_other.words().len(), rank);
    }

    /// Appends any elements; 0 and 1 are recognised.
    pub fn extend_from_slice(&mut self, values: &[Scalar]) {
        for chunk in values.chunks(64) {
            let (mut other, mut one) = (0u64, 0u64);
            for (i, value) in chunk.iter().enumerate() {
                let is_one = *value == Scalar::ONE;
                one |= u64::from(is_one) << i;
                other |= u64::from(!is_one && *value != Scalar::ZERO) << i;
            }
            self.push_chunk(chunk, other, one);
        }
    }

    /// Appends at most 64 elements; `other` and `one` say what they are.
    fn push_chunk(&mut self, chunk: &[Scalar], other: u64, one: u64) {
        let rank = self.others.len() as u32;
        let in_last_word = self.len().wrapping_neg() % 64;
        self.is_other.push_bits(other, chunk.len());
        self.bits.push_bits(one, chunk.len());
        if self.ranks.len() < self.is_other.words().len() {
            let before = other & ((1 << in_last_word) - 1);
            self.ranks.push(rank + before.count_ones());
        }
        if other.count_ones() as usize == chunk.len() {
            self.others.extend_from_slice(chunk);
        } else {
            let values = chunk.iter().enumerate();
            let others = values.filter(|(i, _)| other >> i & 1 == 1);
            self.others.extend(others.map(|(_, value)| *value));
        }
    }

    /// Appends all of `bits` as zeros and ones.
    pub fn append_bits(&mut self, bits: &Bitmap) {
        let rank = self.others.len() as u32;
        self.is_other.resize(self.is_other.len() + bits.len());
        self.bits.append(bits);
        self.ranks.resize(self.is_other.words().len(), rank);
    }

    #[inline]
    fn start_word(&mut self) {
        if self.is_other.len().is_multiple_of(64) {
            self.ranks.push(self.others.len() as u32);
        }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.is_other.len()
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.is_other.is_empty()
    }

    /// Element `i` as it is stored, or `None` at and beyond the length.
    #[inline]
    pub fn compact(&self, i: usize) -> Option<Compact<'_>> {
        if i >= self.len() {
            return None;
        }
        let (word, bit) = (i / 64, i % 64);
        let flags = self.is_other.words()[word];
        if flags >> bit & 1 == 0 {
            return Some(Compact::Bit(self.bits.words()[word] >> bit & 1 == 1));
        }
        let before = (flags & ((1 << bit) - 1)).count_ones();
        self.others
            .get((self.ranks[word] + before) as usize)
            .map(Compact::Other)
    }

    /// Element `i`, or `None` at and beyond the length.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Scalar> {
        Some(match self.compact(i)? {
            Compact::Bit(false) => Scalar::ZERO,
            Compact::Bit(true) => Scalar::ONE,
            Compact::Other(value) => *value,
        })
    }

    /// The elements that are neither 0 nor 1, in order.
    #[inline]
    pub fn others(&self) -> &[Scalar] {
        &self.others
    }

    /// One bit an element: 1 where the element is neither 0 nor 1.
    #[inline]
    pub fn is_other(&self) -> &Bitmap {
        &self.is_other
    }

    /// One bit an element: 1 where the element is 1.
    #[inline]
    pub fn bits(&self) -> &Bitmap {
        &self.bits
    }

    /// Number of others before each 64-bit word of [`CompactScalars::is_other`].
    #[inline]
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// All elements in order, full width.
    pub fn iter(&self) -> impl Iterator<Item = Scalar> + '_ {
        let mut others = self.others.iter();
        self.is_other
            .iter()
            .zip(self.bits.iter())
            .map(move |(other, bit)| match (other, bit) {
                (true, _) => others.next().copied().unwrap_or(Scalar::ZERO),
                (false, true) => Scalar::ONE,
                (false, false) => Scalar::ZERO,
            })
    }

    /// All elements in order, full width (32 bytes each).
    pub fn to_vec(&self) -> Vec<Scalar> {
        self.iter().collect()
    }

    /// Appends all elements of `other`.
    pub fn append(&mut self, other: &CompactScalars) {
        let mut rank = self.others.len();
        let first = self.is_other.words().len().saturating_sub(1);
        self.is_other.append(&other.is_other);
        self.bits.append(&other.bits);
        self.others.extend_from_slice(&other.others);
        // The last word may have gained others, so ranks are recomputed from the next one on.
        if let Some(&start) = self.ranks.get(first) {
            rank = start as usize;
        }
        self.ranks.truncate(first);
        for word in &self.is_other.words()[first..] {
            self.ranks.push(rank as u32);
            rank += word.count_ones() as usize;
        }
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.is_other.clear();
        self.bits.clear();
        self.others.clear();
        self.ranks.clear();
    }
}

impl From<&[Scalar]> for CompactScalars {
    fn from(values: &[Scalar]) -> Self {
        values.iter().copied().collect()
    }
}

impl FromIterator<Scalar> for CompactScalars {
    fn from_iter<I: IntoIterator<Item = Scalar>>(values: I) -> Self {
        let mut compact = Self::new();
        for value in values {
            compact.push(value);
        }
        compact
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{RngCore, SeedableRng};

    fn random_values(rng: &mut ChaCha20Rng, len: usize) -> Vec<Scalar> {
        (0..len)
            .map(|_| match rng.next_u32() % 3 {
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                _ => Scalar::random(&mut *rng),
            })
            .collect()
    }

    #[test]
    fn values_come_back_in_order_and_by_index() {
        for seed in 0..40u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let len = (rng.next_u32() % 400) as usize;
            let values = random_values(&mut rng, len);
            let compact = CompactScalars::from(values.as_slice());
            assert_eq!(compact.to_vec(), values, "seed {seed}");
            for (i, value) in values.iter().enumerate() {
                assert_eq!(compact.get(i), Some(*value), "seed {seed}, element {i}");
            }
            assert_eq!(compact.get(len), None, "seed {seed}");
        }
    }

    #[test]
    fn extending_equals_pushing_each() {
        for seed in 0..60u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let (mut compact, mut expected) = (CompactScalars::new(), CompactScalars::new());
            for _ in 0..6 {
                let len = (rng.next_u32() % 150) as usize;
                let mut values = random_values(&mut rng, len);
                if rng.next_u32() & 1 == 1 {
                    values
                        .iter_mut()
                        .for_each(|value| *value += Scalar::from(2));
                }
                compact.extend_from_slice(&values);
                values.iter().for_each(|value| expected.push(*value));
                assert_eq!(compact, expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn appending_bits_equals_pushing_them() {
        for seed in 0..60u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let len = (rng.next_u32() % 150) as usize;
            let mut compact = CompactScalars::from(random_values(&mut rng, len).as_slice());
            let bits: Bitmap = (0..rng.next_u32() % 200)
                .map(|_| rng.next_u32() & 1 == 1)
                .collect();
            let mut expected = compact.clone();
            bits.iter().for_each(|bit| expected.push_bit(bit));
            compact.append_bits(&bits);
            assert_eq!(compact, expected, "seed {seed}");
        }
    }

    #[test]
    fn appending_equals_building_from_the_concatenation() {
        for seed in 0..60u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let (m, n) = (rng.next_u32() % 200, rng.next_u32() % 200);
            let x = random_values(&mut rng, m as usize);
            let y = random_values(&mut rng, n as usize);
            let mut joined = CompactScalars::from(x.as_slice());
            joined.append(&CompactScalars::from(y.as_slice()));
            let expected: CompactScalars = x.into_iter().chain(y).collect();
            assert_eq!(joined, expected, "seed {seed}");
        }
    }

    #[test]
    fn whole_words_of_bits_equal_single_bits() {
        for seed in 0..40u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let (mut words, mut bits) = (CompactScalars::new(), CompactScalars::new());
            for _ in 0..30 {
                let (word, count) = (rng.next_u64(), (rng.next_u32() % 65) as usize);
                words.push_bits(word, count);
                (0..count).for_each(|i| bits.push_bit(word >> i & 1 == 1));
                if rng.next_u32() % 3 == 0 {
                    let value = Scalar::random(&mut rng);
                    words.push(value);
                    bits.push(value);
                }
            }
            assert_eq!(words, bits, "seed {seed}");
        }
    }
}
