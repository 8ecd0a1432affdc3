//! A growable bitmap on 64-bit little-endian words.

/// A sequence of bits: bit `i` is bit `i % 64` of word `i / 64`.
///
/// Bits at and beyond [`Bitmap::len`] in the last word are always zero, so that words can be
/// counted and compared directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// An empty bitmap.
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            len: 0,
        }
    }

    /// An empty bitmap with room for `bits` bits.
    pub fn with_capacity(bits: usize) -> Self {
        Self {
            words: Vec::with_capacity(bits.div_ceil(64)),
            len: 0,
        }
    }

    /// A bitmap of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    /// The first `len` bits of `words`. Missing words count as zeros, surplus bits are dropped.
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Self {
        words.resize(len.div_ceil(64), 0);
        if !len.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last &= (1 << (len % 64)) - 1;
        }
        Self { words, len }
    }

    /// Appends one bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(last) = self.words.last_mut() {
            *last |= u64::from(bit) << (self.len % 64);
        }
        self.len += 1;
    }

    /// Appends the low `count` bits of `word`, lowest first; `count` above 64 counts as 64.
    #[inline]
    pub fn push_bits(&mut self, word: u64, count: usize) {
        let count = count.min(64);
        if count == 0 {
            return;
        }
        let word = if count < 64 {
            word & ((1 << count) - 1)
        } else {
            word
        };
        let used = self.len % 64;
        if used == 0 {
            self.words.push(word);
        } else {
            if let Some(last) = self.words.last_mut() {
                *last |= word << used;
            }
            if used + count > 64 {
                self.words.push(word >> (64 - used));
            }
        }
        self.len += count;
    }

    /// Makes room for `bits` more bits.
    pub fn reserve(&mut self, bits: usize) {
        self.words.reserve(bits.div_ceil(64));
    }

    /// The `count` bits from bit `start` on, lowest first; `count` above 64 counts as 64. Bits at and
    /// beyond the length read as zeros.
    #[inline]
    pub fn window(&self, start: usize, count: usize) -> u64 {
        let word = |i: usize| self.words.get(i).copied().unwrap_or(0);
        let (first, shift) = (start / 64, start % 64);
        let mut bits = word(first) >> shift;
        if shift > 0 {
            bits |= word(first + 1) << (64 - shift);
        }
        if count < 64 {
            bits & ((1 << count) - 1)
        } else {
            bits
        }
    }

    /// Sets bit `i`; an index at or beyond the length is ignored and answered with `false`.
    #[inline]
    pub fn set(&mut self, i: usize) -> bool {
        if i >= self.len {
            return false;
        }
        self.words[i / 64] |= 1 << (i % 64);
        true
    }

    /// Bit `i`, or `false` at and beyond the length.
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        match self.words.get(i / 64) {
            Some(word) => word >> (i % 64) & 1 == 1,
            None => false,
        }
    }

    /// Number of bits.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the bitmap holds no bit at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of ones (a scan over all words).
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The words; the last one is padded with zeros.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Indices of the ones, ascending.
    pub fn iter_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(k, &word)| {
            std::iter::successors((word != 0).then_some(word), |w| {
                let rest = w & (w - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |w| k * 64 + w.trailing_zeros() as usize)
        })
    }

    /// All bits in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// Removes all bits and keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Cuts or extends with zeros to `len` bits.
    pub fn resize(&mut self, len: usize) {
        let words = std::mem::take(&mut self.words);
        *self = Self::from_words(words, len);
    }

    /// Appends all bits of `other`.
    pub fn append(&mut self, other: &Bitmap) {
        self.append_from(other, 0);
    }

    /// Appends the bits of `other` from bit `start` on.
    pub fn append_from(&mut self, other: &Bitmap, start: usize) {
        let count = other.len.saturating_sub(start);
        let filling = (64 - self.len % 64) % 64;
        if count <= filling {
            self.push_bits(other.window(start, count), count);
            return;
        }
        // Once the last word is full, whole words follow, each from two of the other's.
        self.push_bits(other.window(start, filling), filling);
        let start = start + filling;
        let (first, shift) = (start / 64, start % 64);
        let source = &other.words[first..];
        if shift == 0 {
            self.words.extend_from_slice(source);
        } else {
            let pairs = source.windows(2);
            self.words.reserve(source.len());
            self.words
                .extend(pairs.map(|pair| pair[0] >> shift | pair[1] << (64 - shift)));
            let left = (other.len - start).div_ceil(64) - (source.len() - 1);
            if left > 0 {
                self.words.extend(source.last().map(|word| word >> shift));
            }
        }
        self.len += count - filling;
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut map = Self::new();
        for bit in bits {
            map.push(bit);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{RngCore, SeedableRng};

    fn random_bits(rng: &mut ChaCha20Rng, len: usize) -> Vec<bool> {
        (0..len).map(|_| rng.next_u32() & 1 == 1).collect()
    }

    #[test]
    fn every_operation_agrees_with_a_vector_of_bools() {
        for seed in 0..40u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let len = (rng.next_u32() % 300) as usize;
            let bits = random_bits(&mut rng, len);
            let map: Bitmap = bits.iter().copied().collect();
            assert_eq!(map.len(), len, "seed {seed}");
            assert_eq!(map.iter().collect::<Vec<_>>(), bits, "seed {seed}");
            let ones: Vec<usize> = (0..len).filter(|&i| bits[i]).collect();
            assert_eq!(map.iter_ones().collect::<Vec<_>>(), ones, "seed {seed}");
            assert_eq!(map.count_ones(), ones.len(), "seed {seed}");
            assert_eq!(
                Bitmap::from_words(map.words().to_vec(), len),
                map,
                "seed {seed}"
            );
            assert!(!map.get(len) && !map.get(len + 1000));
        }
    }

    #[test]
    fn appending_at_any_offset_concatenates() {
        for seed in 0..600u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let first_len = (rng.next_u32() % 150) as usize;
            let second_len = (rng.next_u32() % 300) as usize;
            let start = (rng.next_u32() % 80) as usize;
            let (x, y) = (
                random_bits(&mut rng, first_len),
                random_bits(&mut rng, second_len),
            );
            let mut map: Bitmap = x.iter().copied().collect();
            map.append_from(&y.iter().copied().collect(), start);
            let expected: Bitmap = x.iter().chain(y.iter().skip(start)).copied().collect();
            assert_eq!(map, expected, "seed {seed}");
        }
    }

    #[test]
    fn windows_read_across_words_and_past_the_end() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let bits = random_bits(&mut rng, 150);
        let map: Bitmap = bits.iter().copied().collect();
        for start in 0..200 {
            for count in 0..=64 {
                let expected = (0..count)
                    .filter(|i| bits.get(start + i) == Some(&true))
                    .fold(0u64, |word, i| word | 1 << i);
                assert_eq!(map.window(start, count), expected, "{count} from {start}");
            }
        }
    }

    #[test]
    fn setting_and_resizing_keep_the_padding_zero() {
        let mut map = Bitmap::zeros(70);
        assert!(map.set(69) && map.set(3) && !map.set(70));
        map.resize(69);
        assert_eq!(map.iter_ones().collect::<Vec<_>>(), [3]);
        map.resize(130);
        assert_eq!(map.count_ones(), 1);
        map.clear();
        assert!(map.is_empty());
    }
}
