//! The empty-sector-update circuit.

use crate::error::WitnessError;
use crate::poseidon::Poseidons;
use crate::tree::{Hasher, Path, allocated_path, push_decomposition, select};
use crate::{Scalar, Witness};
use cuzk_circuit::{Bitmap, CompactScalars};
use ff::Field;
use rayon::prelude::*;

/// Bits of a digest that challenges are taken from.
const DIGEST_BITS: usize = 254;

/// The private inputs of one partition.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The partition's index.
    pub index: u64,
    /// The number of bits of a partition's index.
    pub index_bits: usize,
    /// The numbers of high bits of a challenge that may choose its randomness.
    pub high_bits: Vec<usize>,
    /// Which of them does: one bit of this is set.
    pub high_bits_select: u64,
    /// The commitment of the old replica.
    pub comm_r_old: Scalar,
    /// The root of the new data's tree.
    pub comm_d_new: Scalar,
    /// The commitment of the new replica.
    pub comm_r_new: Scalar,
    /// The column tree's root.
    pub comm_c: Scalar,
    /// The root of the old replica's tree.
    pub root_r_old: Scalar,
    /// The root of the new replica's tree.
    pub root_r_new: Scalar,
    /// The partition's nodes of the data tree that challenges lead to: a power of two.
    pub apex_leafs: Vec<Scalar>,
    /// All openings.
    pub challenges: Vec<Challenge>,
}

/// The openings of one challenged node in three trees; their indices are not used, because the
/// circuit derives the challenge.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// The old replica's leaf.
    pub leaf_r_old: Scalar,
    /// Its place in the old replica's tree.
    pub path_r_old: Path,
    /// The new data's leaf.
    pub leaf_d_new: Scalar,
    /// Its place in the new data's tree.
    pub path_d_new: Path,
    /// The new replica's leaf.
    pub leaf_r_new: Scalar,
    /// Its place in the new replica's tree.
    pub path_r_new: Path,
}

/// Appends a partition's variables to `out`, whose first input is the constant one.
///
/// # Errors
/// The inputs are not of the circuit's shape, or contradict what the circuit derives; `out` is
/// then incomplete.
pub fn append(
    partition: &Partition,
    poseidons: &Poseidons,
    out: &mut Witness,
) -> Result<(), WitnessError> {
    let bits = partition.challenge_bits()?;
    let path = partition.partition_path(bits)?;
    partition.push_public(out);
    let aux = &mut out.aux;
    let randomness = [partition.comm_d_new, partition.comm_r_old];
    let phi = poseidons.randomness.hash(&randomness, aux)?;
    let (root_old, root_new) = (partition.root_r_old, partition.root_r_new);
    aux.extend_from_slice(&[partition.comm_c, root_old, root_new]);
    aux.extend_from_slice(&partition.apex_leafs);
    path.iter()
        .for_each(|siblings| aux.extend_from_slice(siblings));
    for root in [root_old, root_new] {
        poseidons.two.hash(&[partition.comm_c, root], aux)?;
    }
    let root = partition.push_apex_tree(aux)?;
    allocated_path(Hasher::Sha256, root, path, partition.index, aux)?;
    let challenges = partition.push_challenges(bits, poseidons, aux)?;
    let parts = partition
        .challenges
        .par_iter()
        .zip(challenges)
        .enumerate()
        .map(|(i, (opened, challenge))| opened.part(i, challenge, bits, phi, partition, poseidons))
        .collect::<Result<Vec<_>, _>>()?;
    parts.iter().for_each(|part| aux.append(part));
    Ok(())
}

impl Partition {
    /// The number of bits of a challenge: the data tree's height.
    fn challenge_bits(&self) -> Result<usize, WitnessError> {
        let bits = self
            .challenges
            .first()
            .map_or(0, |challenge| challenge.path_d_new.siblings.len());
        for challenge in &self.challenges {
            let found = challenge.path_d_new.siblings.len();
            WitnessError::check_count("levels of the data tree", bits, found)?;
        }
        let least = self.index_bits + self.apex_bits() + 1;
        if bits < least {
            return WitnessError::check_count("levels of the data tree", least, bits)
                .map(|()| bits);
        }
        Ok(bits)
    }

    fn apex_bits(&self) -> usize {
        self.apex_leafs.len().trailing_zeros() as usize
    }

    /// The data tree's levels above the partition, which all challenges share.
    fn partition_path(&self, bits: usize) -> Result<&[Vec<Scalar>], WitnessError> {
        let above =
            |challenge: &'_ Challenge| bits - self.index_bits..challenge.path_d_new.siblings.len();
        let Some(first) = self.challenges.first() else {
            return Ok(&[]);
        };
        let path = &first.path_d_new.siblings[above(first)];
        for (i, challenge) in self.challenges.iter().enumerate() {
            if challenge.path_d_new.siblings[above(challenge)] != *path {
                return Err(WitnessError::Contradiction {
                    challenge: i,
                    value: "the path above the partition",
                });
            }
        }
        Ok(path)
    }

    /// The public inputs, and the partition's index taken apart and packed again.
    fn push_public(&self, out: &mut Witness) {
        let packed = self.index | self.high_bits_select << self.index_bits;
        let bits = self.index_bits + self.high_bits.len();
        out.aux.push(Scalar::from(packed));
        out.aux.push_bits(packed, bits);
        out.aux.push(Scalar::from(self.index));
        let commitments = [self.comm_r_old, self.comm_d_new, self.comm_r_new];
        out.aux.extend_from_slice(&commitments);
        out.inputs.push(Scalar::from(packed));
        out.inputs.extend(commitments);
    }

    /// The hashes of the tree over the apex leaves, row by row; returns its root.
    fn push_apex_tree(&self, aux: &mut CompactScalars) -> Result<Scalar, WitnessError> {
        let mut row = self.apex_leafs.clone();
        while row.len() > 1 {
            let hashes = row
                .par_chunks(2)
                .map(|children| {
                    let mut part = CompactScalars::new();
                    let hash = Hasher::Sha256.hash(children, &mut part)?;
                    Ok((hash, part))
                })
                .collect::<Result<Vec<_>, WitnessError>>()?;
            hashes.iter().for_each(|(_, part)| aux.append(part));
            row = hashes.into_iter().map(|(hash, _)| hash).collect();
        }
        row.first().copied().ok_or(WitnessError::Count {
            list: "apex leaves",
            expected: 1,
            found: 0,
        })
    }

    /// The digests that challenges are taken from; returns the challenged nodes.
    fn push_challenges(
        &self,
        bits: usize,
        poseidons: &Poseidons,
        aux: &mut CompactScalars,
    ) -> Result<Vec<u64>, WitnessError> {
        let random_bits = bits - self.index_bits;
        let per_digest = DIGEST_BITS / random_bits;
        let count = self.challenges.len();
        let digests = count.div_ceil(per_digest) as u64;
        let mut challenges = Vec::with_capacity(count);
        for j in 0..digests {
            let digest_index = Scalar::from(self.index * digests + j);
            aux.push(digest_index);
            let preimage = [self.comm_r_new, digest_index];
            let digest = poseidons.randomness.hash(&preimage, aux)?;
            let mut decomposition = Bitmap::new();
            push_decomposition(&digest, &mut decomposition);
            aux.append_bits(&decomposition);
            let left = count - challenges.len();
            challenges.extend((0..per_digest.min(left)).map(|i| {
                let low = decomposition.window(i * random_bits, random_bits);
                low | self.index << random_bits
            }));
        }
        Ok(challenges)
    }

    /// The challenge's high bits that choose its randomness, by each of the possible numbers.
    fn push_high_bits(&self, challenge: u64, bits: usize, aux: &mut CompactScalars) -> Scalar {
        let mut selected = Scalar::ZERO;
        for (i, count) in self.high_bits.iter().enumerate() {
            let high = Scalar::from(challenge >> bits.saturating_sub(*count));
            let chosen = self.high_bits_select >> i & 1 == 1;
            let or_zero = if chosen { high } else { Scalar::ZERO };
            aux.extend_from_slice(&[high, or_zero]);
            selected += or_zero;
        }
        aux.push(selected);
        selected
    }
}

impl Challenge {
    fn part(
        &self,
        position: usize,
        challenge: u64,
        bits: usize,
        phi: Scalar,
        partition: &Partition,
        poseidons: &Poseidons,
    ) -> Result<CompactScalars, WitnessError> {
        let mut aux = CompactScalars::new();
        let high = partition.push_high_bits(challenge, bits, &mut aux);
        let rho = poseidons.randomness.hash(&[phi, high], &mut aux)?;
        let masked = self.leaf_d_new * rho;
        let leaf_r_new = self.leaf_r_old + masked;
        aux.extend_from_slice(&[self.leaf_r_old, self.leaf_d_new, masked, leaf_r_new]);
        if leaf_r_new != self.leaf_r_new {
            return Err(WitnessError::Contradiction {
                challenge: position,
                value: "the new replica's leaf",
            });
        }
        let tree = Hasher::Poseidon(poseidons);
        for (leaf, path) in [
            (self.leaf_r_old, &self.path_r_old),
            (leaf_r_new, &self.path_r_new),
        ] {
            let siblings = &path.siblings;
            siblings
                .iter()
                .for_each(|level| aux.extend_from_slice(level));
            allocated_path(tree, leaf, siblings, challenge, &mut aux)?;
        }
        let to_apex = bits - partition.index_bits - partition.apex_bits();
        let apex = challenge >> to_apex & (partition.apex_leafs.len() as u64 - 1);
        select(&partition.apex_leafs, apex as usize, &mut aux)?;
        let siblings = &self.path_d_new.siblings[..to_apex];
        siblings
            .iter()
            .for_each(|level| aux.extend_from_slice(level));
        allocated_path(
            Hasher::Sha256,
            self.leaf_d_new,
            siblings,
            challenge,
            &mut aux,
        )?;
        Ok(aux)
    }
}
