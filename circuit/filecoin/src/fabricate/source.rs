//! Addressed randomness: every value of a fabricated sector follows from the seed and from where the value stands.
//!
//! Nothing depends on the order of the draws, so sectors, trees and paths are made in parallel and still come out
//! the same.

use blstrs::Scalar;
use ff::PrimeField;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// 32-bit words of key stream that one field element takes.
const WORDS_PER_ELEMENT: u128 = 8;

/// A key from which values are drawn by address.
#[derive(Clone, Copy)]
pub(super) struct Source {
    key: [u8; 32],
}

impl Source {
    /// The root of everything that one seed determines.
    pub(super) fn new(seed: u64) -> Self {
        Source {
            key: Sha256::new()
                .chain_update(b"cuzk fabricated sector")
                .chain_update(seed.to_le_bytes())
                .finalize()
                .into(),
        }
    }

    /// An independent source for the part `label` with number `index`.
    pub(super) fn child(&self, label: &str, index: u64) -> Self {
        Source {
            key: Sha256::new()
                .chain_update(self.key)
                .chain_update(index.to_le_bytes())
                .chain_update(label.as_bytes())
                .finalize()
                .into(),
        }
    }

    /// 32 bytes, little-endian, below 2^254 and so a canonical field element.
    pub(super) fn element_bytes(&self, label: &str) -> [u8; 32] {
        let mut bytes = self.child(label, 0).key;
        clear_top_bits(&mut bytes);
        bytes
    }

    /// The field element with number `position` in `row`.
    pub(super) fn element(&self, row: u64, position: u64) -> Scalar {
        let mut element = [Scalar::default()];
        self.fill(row, position, &mut element);
        element[0]
    }

    /// The field elements with the numbers `first`, `first + 1`, … in `row`.
    pub(super) fn fill(&self, row: u64, first: u64, elements: &mut [Scalar]) {
        let mut stream = ChaCha20Rng::from_seed(self.key);
        stream.set_stream(row);
        stream.set_word_pos(u128::from(first) * WORDS_PER_ELEMENT);
        for element in elements {
            let mut bytes = [0; 32];
            stream.fill_bytes(&mut bytes);
            clear_top_bits(&mut bytes);
            *element = element_from_bytes(&bytes);
        }
    }
}

/// The largest field element below 2^254 has its two top bits clear; so has every one of these.
fn clear_top_bits(bytes: &mut [u8; 32]) {
    bytes[31] &= 0x3f;
}

/// The element of 32 little-endian bytes below 2^254.
pub(super) fn element_from_bytes(bytes: &[u8; 32]) -> Scalar {
    Scalar::from_repr_vartime(*bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_do_not_depend_on_how_they_are_drawn() {
        let source = Source::new(7).child("row", 3);
        let mut together = [Scalar::default(); 8];
        source.fill(5, 1000, &mut together);
        for (offset, element) in (1000..).zip(together) {
            assert_eq!(source.element(5, offset), element);
        }
        assert_ne!(source.element(5, 1000), source.element(6, 1000));
        assert_ne!(
            source.element(5, 1000),
            Source::new(8).child("row", 3).element(5, 1000)
        );
    }
}
