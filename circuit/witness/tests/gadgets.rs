//! Every generator against the gadget that it mirrors: the same values, bit for bit.

use bellpepper_core::boolean::{AllocatedBit, Boolean};
use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{Circuit, ConstraintSystem, Namespace, SynthesisError};
use bellperson::gadgets::multieq::MultiEq;
use bellperson::gadgets::multipack::pack_bits;
use bellperson::gadgets::sha256::sha256 as sha256_gadget;
use bellperson::gadgets::uint32::UInt32;
use cuzk_circuit::{Bitmap, Compact};
use cuzk_witness::sha256::sha256;
use cuzk_witness::tree::{
    Hasher, Path, allocated_path, insert, pack_digest, path, push_decomposition, select,
};
use cuzk_witness::word::Word;
use cuzk_witness::{Poseidon, Poseidons, Scalar, Witness};
use ff::Field;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::sha256::Sha256Hasher;
use filecoin_hashers::{
    HashFunction, Hasher as FilecoinHasher, POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_4,
    POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11,
};
use generic_array::typenum::{U0, U2, U4, U8};
use neptune::Strength;
use neptune::circuit::poseidon_hash;
use neptune::hash_type::{CType, HashType};
use neptune::poseidon::{Arity, PoseidonConstants};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use storage_proofs_core::gadgets::insertion;
use storage_proofs_core::gadgets::por::{PoRCircuit, por_no_challenge_input};
use storage_proofs_core::gadgets::variables::Root;
use storage_proofs_core::merkle::{DiskStore, MerkleTreeTrait, MerkleTreeWrapper};

type Result = std::result::Result<(), SynthesisError>;

/// What a gadget does to a constraint system. A trait, because a closure cannot be generic.
trait Gadget {
    fn build<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS) -> Result;
}

struct Only<'a, G>(&'a G);

impl<G: Gadget> Circuit<Scalar> for Only<'_, G> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result {
        self.0.build(cs)
    }
}

/// The gadget's witness; its constraints hold.
fn synthesized(gadget: &impl Gadget) -> Witness {
    cuzk_circuit::check(Only(gadget)).unwrap();
    let direct = cuzk_circuit::synthesize(Only(gadget)).unwrap();
    direct.witness
}

/// An empty witness: the constant one.
fn empty() -> Witness {
    let mut out = Witness::default();
    out.inputs.push(Scalar::ONE);
    out
}

fn assert_same(found: &Witness, expected: &Witness, context: &str) {
    assert_eq!(found.inputs, expected.inputs, "{context}");
    assert_eq!(found.aux.len(), expected.aux.len(), "{context}");
    let differ = (0..found.aux.len()).find(|&i| found.aux.get(i) != expected.aux.get(i));
    assert_eq!(differ, None, "{context}: first difference");
    assert_eq!(found.aux, expected.aux, "{context}: representation");
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn scalars(rng: &mut ChaCha20Rng, count: usize) -> Vec<Scalar> {
    (0..count)
        .map(|_| match rng.next_u32() % 8 {
            0 => Scalar::ZERO,
            1 => Scalar::ONE,
            _ => Scalar::random(&mut *rng),
        })
        .collect()
}

fn alloc<CS: ConstraintSystem<Scalar>>(
    cs: &mut CS,
    values: &[Scalar],
) -> std::result::Result<Vec<AllocatedNum<Scalar>>, SynthesisError> {
    values
        .iter()
        .map(|value| AllocatedNum::alloc(cs.namespace(|| "value"), || Ok(*value)))
        .collect()
}

/// A word of which some bits are constants.
#[derive(Clone, Copy)]
struct MixedWord {
    value: u32,
    constant: u32,
}

impl MixedWord {
    fn random(rng: &mut ChaCha20Rng) -> Self {
        let constant = match rng.next_u32() % 6 {
            0 => u32::MAX,
            1 => rng.next_u32(),
            2 => rng.next_u32() & rng.next_u32() & rng.next_u32(),
            _ => 0,
        };
        Self {
            value: rng.next_u32(),
            constant,
        }
    }

    /// Allocates the variables, lowest bit first.
    fn build<CS: ConstraintSystem<Scalar>>(
        self,
        cs: &mut CS,
    ) -> std::result::Result<UInt32, SynthesisError> {
        let bits = (0..32)
            .map(|i| {
                let bit = self.value >> i & 1 == 1;
                if self.constant >> i & 1 == 1 {
                    return Ok(Boolean::constant(bit));
                }
                Ok(AllocatedBit::alloc(cs.namespace(|| "bit"), Some(bit))?.into())
            })
            .collect::<std::result::Result<Vec<_>, SynthesisError>>()?;
        Ok(UInt32::from_bits(&bits))
    }

    fn push(self, bits: &mut Bitmap) -> Word {
        for i in (0..32).filter(|i| self.constant >> i & 1 == 0) {
            bits.push(self.value >> i & 1 == 1);
        }
        Word::with_constant_bits(self.value, self.constant)
    }
}

/// An operation on earlier words.
#[derive(Clone, Copy)]
enum Operation {
    Rotate(usize, u32),
    Shift(usize, u32),
    Xor(usize, usize),
    Choice(usize, usize, usize),
    Majority(usize, usize, usize),
    Sum([usize; 8], usize),
}

/// Random operations on random words and on each other's results.
struct Program {
    words: Vec<MixedWord>,
    operations: Vec<Operation>,
}

impl Program {
    fn random(rng: &mut ChaCha20Rng) -> Self {
        let words: Vec<_> = (0..8).map(|_| MixedWord::random(rng)).collect();
        let operations = (0..60)
            .map(|i| {
                let mut any = || rng.next_u32() as usize % (8 + i);
                let (x, y, z) = (any(), any(), any());
                let by = any() as u32;
                match any() % 6 {
                    0 => Operation::Rotate(x, by % 32),
                    1 => Operation::Shift(x, by % 31 + 1),
                    2 => Operation::Xor(x, y),
                    3 => Operation::Choice(x, y, z),
                    4 => Operation::Majority(x, y, z),
                    _ => Operation::Sum([0; 8].map(|_| any()), by as usize % 7 + 2),
                }
            })
            .collect();
        Self { words, operations }
    }

    fn native(&self) -> (Witness, Vec<u32>) {
        let mut bits = Bitmap::new();
        let mut words: Vec<Word> = self.words.iter().map(|w| w.push(&mut bits)).collect();
        for operation in &self.operations {
            let result = match *operation {
                Operation::Rotate(x, by) => words[x].rotr(by),
                Operation::Shift(x, by) => words[x].shr(by),
                Operation::Xor(x, y) => words[x].xor(words[y], &mut bits),
                Operation::Choice(x, y, z) => Word::ch(words[x], words[y], words[z], &mut bits),
                Operation::Majority(x, y, z) => Word::maj(words[x], words[y], words[z], &mut bits),
                Operation::Sum(indices, count) => {
                    let parts = indices.map(|i| words[i]);
                    Word::sum(&parts[..count], &mut bits)
                }
            };
            words.push(result);
        }
        let mut out = empty();
        out.aux.append_bits(&bits);
        (out, words.iter().map(|word| word.value()).collect())
    }
}

impl Gadget for Program {
    fn build<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS) -> Result {
        let mut words = Vec::new();
        for word in &self.words {
            words.push(word.build(cs)?);
        }
        for operation in &self.operations {
            let result = match *operation {
                Operation::Rotate(x, by) => words[x].rotr(by as usize),
                Operation::Shift(x, by) => words[x].shr(by as usize),
                Operation::Xor(x, y) => words[x].xor(cs.namespace(|| "xor"), &words[y])?,
                Operation::Choice(x, y, z) => {
                    let cs = cs.namespace(|| "ch");
                    UInt32::sha256_ch(cs, &words[x], &words[y], &words[z])?
                }
                Operation::Majority(x, y, z) => {
                    let cs = cs.namespace(|| "maj");
                    UInt32::sha256_maj(cs, &words[x], &words[y], &words[z])?
                }
                Operation::Sum(indices, count) => {
                    let parts: Vec<_> = indices.iter().map(|&i| words[i].clone()).collect();
                    let mut cs = MultiEq::new(cs.namespace(|| "sum"));
                    UInt32::addmany(cs.namespace(|| "sum"), &parts[..count])?
                }
            };
            words.push(result);
        }
        Ok(())
    }
}

#[test]
fn words_allocate_and_fold_as_uint32_does() {
    for seed in 0..40 {
        let program = Program::random(&mut rng(seed));
        let (witness, _) = program.native();
        let context = format!("seed {seed}");
        assert_same(&witness, &synthesized(&program), &context);
    }
}

struct Hash(Vec<MixedWord>);

impl Gadget for Hash {
    fn build<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS) -> Result {
        let mut message = Vec::new();
        for word in &self.0 {
            message.extend(word.build(cs)?.into_bits_be());
        }
        let digest = sha256_gadget(cs.namespace(|| "hash"), &message)?;
        let bits: Vec<_> = digest
            .chunks(8)
            .flat_map(|byte| byte.iter().rev())
            .cloned()
            .collect();
        pack_bits(cs.namespace(|| "pack"), &bits[..254])?;
        Ok(())
    }
}

#[test]
fn sha256_traces_equal_the_gadget_with_constants_anywhere_in_the_message() {
    for (seed, len) in [
        (0, 0),
        (1, 1),
        (2, 13),
        (3, 14),
        (4, 16),
        (5, 16),
        (6, 30),
        (7, 40),
    ] {
        let mut rng = rng(seed);
        let words: Vec<_> = (0..len).map(|_| MixedWord::random(&mut rng)).collect();
        let mut bits = Bitmap::new();
        let mut message = words.iter().map(|word| word.push(&mut bits)).collect();
        let packed = pack_digest(&sha256(&mut message, &mut bits));
        let mut out = empty();
        out.aux.append_bits(&bits);
        out.aux.push(packed);
        let expected = synthesized(&Hash(words));
        assert_same(&out, &expected, &format!("seed {seed}, {len} words"));
    }
}

struct PoseidonGadget<'a, A: Arity<Scalar>>(&'a PoseidonConstants<Scalar, A>, Vec<Scalar>);

impl<A: Arity<Scalar>> Gadget for PoseidonGadget<'_, A> {
    fn build<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS) -> Result {
        let preimage = alloc(cs, &self.1)?;
        poseidon_hash(cs.namespace(|| "hash"), preimage, self.0)?;
        Ok(())
    }
}

fn compare_poseidon<A: Arity<Scalar>>(constants: &PoseidonConstants<Scalar, A>) {
    let native = Poseidon::from(constants);
    assert_eq!(native.arity(), A::to_usize());
    for seed in 0..6 {
        let preimage = match seed {
            0 => vec![Scalar::ZERO; native.arity()],
            1 => vec![-Scalar::ONE; native.arity()],
            _ => scalars(&mut rng(seed), native.arity()),
        };
        let mut out = empty();
        out.aux.extend_from_slice(&preimage);
        let hash = native.hash(&preimage, &mut out.aux).unwrap();
        let last = out.aux.compact(out.aux.len() - 1);
        assert!(matches!(last, Some(Compact::Other(value)) if *value == hash));
        let expected = synthesized(&PoseidonGadget(constants, preimage));
        assert_same(&out, &expected, &format!("{}, seed {seed}", native.arity()));
    }
    assert!(native.hash(&[], &mut empty().aux).is_err());
}

fn randomness_constants() -> PoseidonConstants<Scalar, U2> {
    let kind = HashType::Custom(CType::Arbitrary(1));
    PoseidonConstants::new_with_strength_and_type(Strength::Standard, kind)
}

#[test]
fn poseidon_traces_equal_the_gadget_for_every_instance() {
    compare_poseidon(&POSEIDON_CONSTANTS_2);
    compare_poseidon(&POSEIDON_CONSTANTS_4);
    compare_poseidon(&POSEIDON_CONSTANTS_8);
    compare_poseidon(&POSEIDON_CONSTANTS_11);
    compare_poseidon(&randomness_constants());
}

fn poseidons() -> Poseidons {
    Poseidons {
        two: Poseidon::from(&*POSEIDON_CONSTANTS_2),
        four: Poseidon::from(&*POSEIDON_CONSTANTS_4),
        eight: Poseidon::from(&*POSEIDON_CONSTANTS_8),
        eleven: Poseidon::from(&*POSEIDON_CONSTANTS_11),
        randomness: Poseidon::from(&randomness_constants()),
    }
}

/// Insertion among siblings and selection from elements, by the same index.
struct Place {
    node: Scalar,
    others: Vec<Scalar>,
    index: u64,
    insert: bool,
}

impl Gadget for Place {
    fn build<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS) -> Result {
        let node = alloc(cs, &[self.node])?;
        let others = alloc(cs, &self.others)?;
        let places = self.others.len() + usize::from(self.insert);
        let count = places.trailing_zeros();
        let bits = (0..count)
            .map(|i| {
                let bit = Some(self.index >> i & 1 == 1);
                Ok(AllocatedBit::alloc(cs.namespace(|| "index"), bit)?.into())
            })
            .collect::<std::result::Result<Vec<Boolean>, SynthesisError>>()?;
        if self.insert {
            insertion::insert(cs, &node[0], &bits, &others)?;
        } else {
            insertion::select(cs.namespace(|| "select"), &others, &bits)?;
        }
        Ok(())
    }
}

#[test]
fn insertion_and_selection_equal_the_gadgets_at_every_position() {
    let mut rng = rng(5);
    for (count, is_insert) in [
        (1_usize, true),
        (3, true),
        (7, true),
        (2, false),
        (8, false),
        (128, false),
    ] {
        let places = if is_insert { count + 1 } else { count };
        for index in (0..places as u64).step_by(places.div_ceil(8)) {
            let others = scalars(&mut rng, count);
            let node = Scalar::random(&mut rng);
            let mut out = empty();
            out.aux.push(node);
            out.aux.extend_from_slice(&others);
            out.aux.push_bits(index, places.trailing_zeros() as usize);
            if is_insert {
                let mut buffer = [Scalar::ZERO; 8];
                let found = insert(node, &others, index, &mut buffer, &mut out.aux).unwrap();
                let mut expected = others.clone();
                expected.insert(index as usize, node);
                assert_eq!(found, expected);
            } else {
                let found = select(&others, index as usize, &mut out.aux).unwrap();
                assert_eq!(found, others[index as usize]);
            }
            let context = format!("{count} others, index {index}, insert {is_insert}");
            let insert = is_insert;
            let gadget = Place {
                node,
                others,
                index,
                insert,
            };
            assert_same(&out, &synthesized(&gadget), &context);
        }
    }
    let mut buffer = [Scalar::ZERO; 8];
    assert!(
        insert(
            Scalar::ONE,
            &[Scalar::ONE; 4],
            0,
            &mut buffer,
            &mut empty().aux
        )
        .is_err()
    );
    assert!(select(&[Scalar::ONE; 3], 0, &mut empty().aux).is_err());
}

/// Both path gadgets over one tree shape.
struct Inclusion<T> {
    leaf: Scalar,
    root: Scalar,
    path: Path,
    known: bool,
    _tree: std::marker::PhantomData<T>,
}

impl<T: 'static + MerkleTreeTrait> Gadget for Inclusion<T> {
    fn build<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS) -> Result {
        let mut ends = alloc(cs, &[self.leaf, self.root])?;
        let (Some(root), Some(leaf)) = (ends.pop(), ends.pop()) else {
            return Err(SynthesisError::AssignmentMissing);
        };
        let siblings = &self.path.siblings;
        let mut index = self.path.index;
        if self.known {
            let count: u32 = siblings
                .iter()
                .map(|s| (s.len() + 1).trailing_zeros())
                .sum();
            let bits = (0..count)
                .map(|i| AllocatedBit::alloc(cs.namespace(|| "index"), Some(index >> i & 1 == 1)))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let siblings = siblings
                .iter()
                .map(|level| alloc(cs, level))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            return por_no_challenge_input::<T, _>(
                cs.namespace(|| "path"),
                bits,
                leaf,
                siblings,
                root,
            );
        }
        let levels: Vec<_> = siblings
            .iter()
            .map(|level| {
                let arity = level.len() as u64 + 1;
                let position = (index % arity) as usize;
                index /= arity;
                (level.iter().copied().map(Some).collect(), Some(position))
            })
            .collect();
        PoRCircuit::<T>::synthesize(
            cs.namespace(|| "path"),
            Root::from_allocated::<Namespace<'_, Scalar, CS>>(leaf),
            levels.into(),
            Root::from_allocated::<Namespace<'_, Scalar, CS>>(root),
            true,
        )
    }
}

fn compare_paths<T: 'static + MerkleTreeTrait>(hasher: Hasher<'_>, arities: &[usize]) {
    for seed in 0..4 {
        let mut rng = rng(seed);
        let siblings: Vec<_> = arities.iter().map(|a| scalars(&mut rng, a - 1)).collect();
        let nodes: usize = arities.iter().product();
        let index = rng.next_u64() % nodes as u64;
        let leaf = Scalar::random(&mut rng);
        let opened = Path { siblings, index };
        for known in [false, true] {
            let mut scratch = empty();
            let root = path(hasher, leaf, &opened, &mut scratch).unwrap();
            let mut out = empty();
            out.aux.extend_from_slice(&[leaf, root]);
            if known {
                out.aux.push_bits(index, nodes.trailing_zeros() as usize);
                opened
                    .siblings
                    .iter()
                    .for_each(|s| out.aux.extend_from_slice(s));
                let found =
                    allocated_path(hasher, leaf, &opened.siblings, index, &mut out.aux).unwrap();
                assert_eq!(found, root);
            } else {
                assert_eq!(path(hasher, leaf, &opened, &mut out).unwrap(), root);
            }
            let gadget = Inclusion::<T> {
                leaf,
                root,
                path: opened.clone(),
                known,
                _tree: std::marker::PhantomData,
            };
            let context = format!("{arities:?}, seed {seed}, known {known}");
            assert_same(&out, &synthesized(&gadget), &context);
        }
    }
}

type PoseidonTree<A, B, C> = MerkleTreeWrapper<
    PoseidonHasher,
    DiskStore<<PoseidonHasher as FilecoinHasher>::Domain>,
    A,
    B,
    C,
>;
type Sha256Tree = MerkleTreeWrapper<
    Sha256Hasher,
    DiskStore<<Sha256Hasher as FilecoinHasher>::Domain>,
    U2,
    U0,
    U0,
>;

#[test]
fn paths_equal_the_gadgets_in_every_tree_shape() {
    let poseidons = poseidons();
    let poseidon = Hasher::Poseidon(&poseidons);
    compare_paths::<PoseidonTree<U8, U0, U0>>(poseidon, &[8, 8]);
    compare_paths::<PoseidonTree<U8, U8, U0>>(poseidon, &[8, 8, 8]);
    compare_paths::<PoseidonTree<U8, U8, U2>>(poseidon, &[8, 8, 8, 2]);
    compare_paths::<PoseidonTree<U4, U0, U0>>(poseidon, &[4]);
    compare_paths::<Sha256Tree>(Hasher::Sha256, &[2, 2, 2]);
}

#[test]
fn hashes_are_those_of_filecoin() {
    let mut rng = rng(9);
    let values: Vec<Scalar> = (0..2).map(|_| Scalar::random(&mut rng)).collect();
    let poseidons = poseidons();
    type Domain<H> = <H as FilecoinHasher>::Domain;
    let [x, y] = [values[0], values[1]];
    let expected: Scalar = <Sha256Hasher as FilecoinHasher>::Function::hash2(
        &Domain::<Sha256Hasher>::from(x),
        &Domain::<Sha256Hasher>::from(y),
    )
    .into();
    let found = Hasher::Sha256.hash(&values, &mut empty().aux);
    assert_eq!(found, Ok(expected));
    let expected: Scalar = <PoseidonHasher as FilecoinHasher>::Function::hash2(
        &Domain::<PoseidonHasher>::from(x),
        &Domain::<PoseidonHasher>::from(y),
    )
    .into();
    let found = Hasher::Poseidon(&poseidons).hash(&values, &mut empty().aux);
    assert_eq!(found, Ok(expected));
}

#[test]
fn decompositions_are_255_bits_of_the_canonical_form() {
    for value in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(6)] {
        let mut bits = Bitmap::new();
        push_decomposition(&value, &mut bits);
        assert_eq!(bits.len(), 255);
        let sum = bits.iter().enumerate().fold(Scalar::ZERO, |sum, (i, bit)| {
            let power = Scalar::from(2).pow_vartime([i as u64]);
            if bit { sum + power } else { sum }
        });
        assert_eq!(sum, value);
    }
}
