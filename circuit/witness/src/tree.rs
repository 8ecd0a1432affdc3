//! Bit decompositions, insertion, selection and Merkle paths.

use crate::error::WitnessError;
use crate::poseidon::Poseidons;
use crate::sha256::sha256;
use crate::word::Word;
use crate::{Scalar, Witness};
use cuzk_circuit::{Bitmap, CompactScalars};
use ff::{Field, PrimeField};

/// A field element's number of bits.
const SCALAR_BITS: usize = 255;

/// One inclusion proof of a leaf, from the leaf's level to the root's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// For each level the siblings, without the path's own node.
    pub siblings: Vec<Vec<Scalar>>,
    /// The leaf's index: each level takes as many of its lowest bits as its arity has.
    pub index: u64,
}

/// How a tree's nodes are hashed.
#[derive(Clone, Copy, Debug)]
pub enum Hasher<'a> {
    /// SHA-256 of two nodes, the two highest bits of the digest cleared.
    Sha256,
    /// Poseidon of as many nodes as the arity says.
    Poseidon(&'a Poseidons),
}

impl Hasher<'_> {
    /// Hashes a node's children and appends what the circuit allocates.
    ///
    /// # Errors
    /// There is no hash for that many children.
    pub fn hash(
        self,
        children: &[Scalar],
        aux: &mut CompactScalars,
    ) -> Result<Scalar, WitnessError> {
        match self {
            Self::Sha256 => Ok(sha256_of_scalars(children, aux)),
            Self::Poseidon(poseidons) => poseidons.of_arity(children.len())?.hash(children, aux),
        }
    }
}

/// SHA-256 of field elements, each decomposed into bits first, packed into a field element.
fn sha256_of_scalars(children: &[Scalar], aux: &mut CompactScalars) -> Scalar {
    let mut bits = Bitmap::new();
    let mut message = Vec::with_capacity(16 * (children.len() / 2 + 1));
    for child in children {
        message.extend(message_words(&push_decomposition(child, &mut bits)));
    }
    let digest = sha256(&mut message, &mut bits);
    aux.append_bits(&bits);
    let packed = pack_digest(&digest);
    aux.push(packed);
    packed
}

/// Appends the 255 bits of a field element, lowest first; returns it as 32 little-endian bytes.
pub fn push_decomposition(value: &Scalar, bits: &mut Bitmap) -> [u8; 32] {
    let bytes = value.to_repr();
    let (words, _) = bytes.as_chunks::<8>();
    let mut left = SCALAR_BITS;
    for word in words {
        bits.push_bits(u64::from_le_bytes(*word), left.min(64));
        left = left.saturating_sub(64);
    }
    bytes
}

/// A decomposed field element in a SHA-256 message: its little-endian bytes. The highest bit of the
/// last byte is padding, a constant zero.
pub fn message_words(bytes: &[u8; 32]) -> [Word; 8] {
    let (words, _) = bytes.as_chunks::<4>();
    let mut message = [Word::constant(0); 8];
    for (i, (word, bytes)) in message.iter_mut().zip(words).enumerate() {
        let padding = if i == 7 { 0x80 } else { 0 };
        *word = Word::with_constant_bits(u32::from_be_bytes(*bytes), padding);
    }
    message
}

/// The first 254 bits of a digest, read as little-endian bytes, as a field element.
pub fn pack_digest(digest: &[Word; 8]) -> Scalar {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(digest) {
        chunk.copy_from_slice(&word.value().to_be_bytes());
    }
    bytes[31] &= 0x3f;
    // Below 2^254, hence below the modulus.
    Scalar::from_repr_vartime(bytes).unwrap_or_default()
}

/// Follows a path from `leaf` to the root and appends what the circuit allocates: at each level the
/// position's bits and the siblings first. The index becomes a public input. Returns the root.
///
/// # Errors
/// A level's number of siblings fits no tree.
pub fn path(
    hasher: Hasher<'_>,
    leaf: Scalar,
    path: &Path,
    out: &mut Witness,
) -> Result<Scalar, WitnessError> {
    let (mut node, mut index) = (leaf, path.index);
    for siblings in &path.siblings {
        let bits = position_bits(siblings);
        out.aux.push_bits(index, bits);
        out.aux.extend_from_slice(siblings);
        node = climb(hasher, node, siblings, &mut index, &mut out.aux)?;
    }
    // Filecoin's indices have at most 31 bits, so one input takes them all.
    if path
        .siblings
        .iter()
        .any(|siblings| position_bits(siblings) > 0)
    {
        out.inputs.push(Scalar::from(path.index));
    }
    Ok(node)
}

/// As [`path`](fn@path), where the index's bits and the siblings are variables already.
///
/// # Errors
/// As [`path`](fn@path).
pub fn allocated_path(
    hasher: Hasher<'_>,
    leaf: Scalar,
    siblings: &[Vec<Scalar>],
    index: u64,
    aux: &mut CompactScalars,
) -> Result<Scalar, WitnessError> {
    let (mut node, mut index) = (leaf, index);
    for siblings in siblings {
        node = climb(hasher, node, siblings, &mut index, aux)?;
    }
    Ok(node)
}

/// From a node to its parent; takes the position from the lowest bits of `index`.
fn climb(
    hasher: Hasher<'_>,
    node: Scalar,
    siblings: &[Scalar],
    index: &mut u64,
    aux: &mut CompactScalars,
) -> Result<Scalar, WitnessError> {
    let bits = position_bits(siblings);
    let position = *index & ((1 << bits) - 1);
    *index >>= bits;
    let mut children = [Scalar::ZERO; 8];
    let children = insert(node, siblings, position, &mut children, aux)?;
    hasher.hash(children, aux)
}

fn position_bits(siblings: &[Scalar]) -> usize {
    (siblings.len() + 1).trailing_zeros() as usize
}

/// Inserts `node` at `position` among its siblings and appends what the circuit allocates.
///
/// # Errors
/// There are neither one nor three nor seven siblings.
pub fn insert<'b>(
    node: Scalar,
    siblings: &[Scalar],
    position: u64,
    buffer: &'b mut [Scalar; 8],
    aux: &mut CompactScalars,
) -> Result<&'b [Scalar], WitnessError> {
    let bit = |i: u32| position >> i & 1 == 1;
    let mut pick = |condition: bool, yes: Scalar, no: Scalar| {
        let picked = if condition { yes } else { no };
        aux.push(picked);
        picked
    };
    let children: &'b mut [Scalar] = match *siblings {
        [b] => {
            buffer[0] = pick(bit(0), b, node);
            buffer[1] = pick(bit(0), node, b);
            &mut buffer[..2]
        }
        [b, c, d] => {
            let first = pick(bit(0), b, node);
            buffer[0] = pick(bit(1), b, first);
            let first = pick(bit(0), node, b);
            buffer[1] = pick(bit(1), c, first);
            let first = pick(bit(0), d, node);
            buffer[2] = pick(bit(1), first, c);
            let first = pick(bit(0), node, d);
            buffer[3] = pick(bit(1), first, d);
            &mut buffer[..4]
        }
        [b, c, d, e, f, g, h] => {
            insert_8(node, [b, c, d, e, f, g, h], position, buffer, aux);
            &mut buffer[..8]
        }
        _ => {
            let found = siblings.len() + 1;
            return Err(WitnessError::Arity { found });
        }
    };
    Ok(children)
}

/// Insertion among seven siblings shares the conditions "both low bits are zero" and "… are one".
fn insert_8(
    a: Scalar,
    [b, c, d, e, f, g, h]: [Scalar; 7],
    position: u64,
    to: &mut [Scalar; 8],
    aux: &mut CompactScalars,
) {
    let [b0, b1, b2] = [0, 1, 2].map(|i| position >> i & 1 == 1);
    let (nor, and) = (!b0 && !b1, b0 && b1);
    aux.push_bit(nor);
    aux.push_bit(and);
    let mut pick = |condition: bool, yes: Scalar, no: Scalar| {
        let picked = if condition { yes } else { no };
        aux.push(picked);
        picked
    };
    let low = pick(nor, a, b);
    to[0] = pick(b2, b, low);
    let low = pick(b0, a, b);
    let low = pick(b1, c, low);
    to[1] = pick(b2, c, low);
    let low = pick(b0, d, a);
    let low = pick(b1, low, c);
    to[2] = pick(b2, d, low);
    let low = pick(and, a, d);
    to[3] = pick(b2, e, low);
    let high = pick(nor, a, f);
    to[4] = pick(b2, high, e);
    let high = pick(b0, a, f);
    let high = pick(b1, g, high);
    to[5] = pick(b2, high, f);
    let high = pick(b0, h, a);
    let high = pick(b1, high, g);
    to[6] = pick(b2, high, g);
    let high = pick(and, a, h);
    to[7] = pick(b2, high, h);
}

/// Selects one of a power of two of elements by an index, highest bit first, and appends what the
/// circuit allocates.
///
/// # Errors
/// The number of elements is not a power of two.
pub fn select(
    elements: &[Scalar],
    index: usize,
    aux: &mut CompactScalars,
) -> Result<Scalar, WitnessError> {
    if !elements.len().is_power_of_two() {
        return Err(WitnessError::Count {
            list: "elements to select from (a power of two)",
            expected: elements.len().next_power_of_two(),
            found: elements.len(),
        });
    }
    let mut from = elements;
    while from.len() > 1 {
        let half = from.len() / 2;
        let (low, high) = from.split_at(half);
        from = if index & half == half { high } else { low };
        from.iter().for_each(|element| aux.push(*element));
    }
    Ok(from.first().copied().unwrap_or_default())
}
