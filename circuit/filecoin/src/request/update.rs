//! Empty sector updates ("snap deals") from bincode partition proofs.

use cuzk_circuit::{Scalar, Witness};
use cuzk_witness::update as native_update;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::{
    SectorUpdateConfig, verify_empty_sector_update_proof, verify_partition_proofs,
};
use rayon::prelude::*;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_update::constants::{h_select, hs};
use storage_proofs_update::vanilla::ChallengeProof;
use storage_proofs_update::{
    Challenges, EmptySectorUpdate, EmptySectorUpdateCircuit, EmptySectorUpdateCompound,
    PartitionProof, PublicInputs, PublicParams,
};

use super::Job;
use super::wire::decode;
use crate::circuit::{FilecoinCircuit, blank_seal_proof};
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::SectorSize;
use crate::merkle::{Arities, Place, check_element, check_proof_of, check_same, commitment};
use crate::native::{WitnessPath, native, path, poseidons};
use crate::shape::Shape;

/// The fields of an update request after their lengths are checked.
pub(super) struct Fields<'a> {
    pub(super) size: SectorSize,
    pub(super) comm_r_old: [u8; 32],
    pub(super) comm_r_new: [u8; 32],
    pub(super) comm_d_new: [u8; 32],
    pub(super) vanilla_proofs: &'a [Vec<u8>],
}

/// A checked update request.
pub(super) struct UpdateJob<T: Shape> {
    size: SectorSize,
    params: PublicParams,
    public: PublicInputs,
    comm_r_old: [u8; 32],
    comm_r_new: [u8; 32],
    comm_d_new: [u8; 32],
    /// One per partition.
    vanilla: Vec<PartitionProof<T>>,
}

/// The compound proof over one tree shape.
type Compound<T> = EmptySectorUpdateCompound<T>;

impl<T: Shape> UpdateJob<T> {
    /// Decodes and checks the partition proofs.
    pub(super) fn check(fields: &Fields<'_>) -> Result<Self, RequestError> {
        let config =
            SectorUpdateConfig::from_porep_config(&blank_seal_proof(fields.size).as_v1_config());
        let params = guarded("preparing the update parameters", || {
            Ok::<_, String>(PublicParams::from_sector_size(fields.size.bytes()))
        })?;
        let public = PublicInputs {
            k: params.partition_count,
            comm_r_old: commitment("comm_r_old", &fields.comm_r_old)?,
            comm_d_new: commitment("comm_d_new", &fields.comm_d_new)?,
            comm_r_new: commitment("comm_r_new", &fields.comm_r_new)?,
            h: config.h,
        };
        if fields.vanilla_proofs.len() != params.partition_count {
            return Err(RequestError::Count {
                field: "vanilla_proofs (partitions)".to_owned(),
                expected: params.partition_count.to_string(),
                found: fields.vanilla_proofs.len(),
            });
        }
        let arities = Arities::of::<T>(params.sector_nodes);
        let vanilla = fields
            .vanilla_proofs
            .par_iter()
            .enumerate()
            .map(|(k, bytes)| decode_partition(k, bytes, &params, &public, &arities))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            size: fields.size,
            params,
            public,
            comm_r_old: fields.comm_r_old,
            comm_r_new: fields.comm_r_new,
            comm_d_new: fields.comm_d_new,
            vanilla,
        })
    }
}

impl<T: Shape> UpdateJob<T> {
    /// The values that a partition's variables follow from; its challenges share the first's roots.
    fn native_partition(&self, k: usize, first: &ChallengeProof<T>) -> native_update::Partition {
        let (params, public, proof) = (&self.params, &self.public, &self.vanilla[k]);
        native_update::Partition {
            index: k as u64,
            index_bits: params.partition_bit_len,
            high_bits: hs(params.sector_nodes).to_vec(),
            high_bits_select: h_select(params.sector_nodes, public.h),
            comm_r_old: public.comm_r_old.into(),
            comm_d_new: public.comm_d_new.into(),
            comm_r_new: public.comm_r_new.into(),
            comm_c: proof.comm_c.into(),
            root_r_old: first.proof_r_old.root().into(),
            root_r_new: first.proof_r_new.root().into(),
            apex_leafs: proof.apex_leafs.iter().map(|&leaf| leaf.into()).collect(),
            challenges: proof
                .challenge_proofs
                .par_iter()
                .map(|opened| native_update::Challenge {
                    leaf_r_old: opened.proof_r_old.leaf().into(),
                    path_r_old: path(&opened.proof_r_old),
                    leaf_d_new: opened.proof_d_new.leaf().into(),
                    path_d_new: path(&opened.proof_d_new),
                    leaf_r_new: opened.proof_r_new.leaf().into(),
                    path_r_new: path(&opened.proof_r_new),
                })
                .collect(),
        }
    }
}

/// Decodes one partition's proof and checks its form, challenges and commitments.
fn decode_partition<T: Shape>(
    k: usize,
    bytes: &[u8],
    params: &PublicParams,
    public: &PublicInputs,
    arities: &Arities,
) -> Result<PartitionProof<T>, RequestError> {
    let place = || format!("vanilla_proofs[{k}]");
    let proof: PartitionProof<T> = decode(&place(), "PartitionProof", bytes)?;
    for (list, expected, found) in [
        ("apex_leafs", params.apex_leaf_count, proof.apex_leafs.len()),
        (
            "challenge_proofs",
            params.challenge_count,
            proof.challenge_proofs.len(),
        ),
    ] {
        if expected != found {
            return Err(RequestError::Count {
                field: format!("{}: {list}", place()),
                expected: expected.to_string(),
                found,
            });
        }
    }
    check_element(&place, "comm_c", &proof.comm_c)?;
    for leaf in &proof.apex_leafs {
        check_element(&place, "apex_leafs", leaf)?;
    }
    let challenges = guarded("deriving the challenges", || {
        let challenges = Challenges::new(params.sector_nodes, public.comm_r_new, k);
        Ok::<_, String>(challenges.collect::<Vec<_>>())
    })?;
    check_challenges(&place, &proof, &challenges, public, arities)?;
    Ok(proof)
}

/// Checks that every challenge opens the challenged node in the three trees of this update.
fn check_challenges<T: Shape>(
    place: Place<'_>,
    proof: &PartitionProof<T>,
    challenges: &[u32],
    public: &PublicInputs,
    arities: &Arities,
) -> Result<(), RequestError> {
    for (i, (opened, &node)) in proof.challenge_proofs.iter().zip(challenges).enumerate() {
        let at = |tree: &str| format!("{}: challenge {i}: {tree}", place());
        let node = node as usize;
        check_proof_of(
            &|| at("proof_r_old"),
            &opened.proof_r_old,
            &arities.replica,
            node,
        )?;
        check_proof_of(
            &|| at("proof_d_new"),
            &opened.proof_d_new,
            &arities.data,
            node,
        )?;
        check_proof_of(
            &|| at("proof_r_new"),
            &opened.proof_r_new,
            &arities.replica,
            node,
        )?;
        let data_root = opened.proof_d_new.root();
        check_same(
            &|| at("proof_d_new"),
            "root (comm_d_new)",
            &public.comm_d_new,
            &data_root,
        )?;
        // All challenges share the roots of the first, which make up the commitments.
        if i == 0 {
            let hash = <PoseidonHasher as Hasher>::Function::hash2;
            let old = hash(&proof.comm_c, &opened.proof_r_old.root());
            let new = hash(&proof.comm_c, &opened.proof_r_new.root());
            check_same(
                &|| at("proof_r_old"),
                "comm_r_old",
                &public.comm_r_old,
                &old,
            )?;
            check_same(
                &|| at("proof_r_new"),
                "comm_r_new",
                &public.comm_r_new,
                &new,
            )?;
        }
        let first = &proof.challenge_proofs[0];
        let (old, new) = (first.proof_r_old.root(), first.proof_r_new.root());
        check_same(
            &|| at("proof_r_old"),
            "root",
            &old,
            &opened.proof_r_old.root(),
        )?;
        check_same(
            &|| at("proof_r_new"),
            "root",
            &new,
            &opened.proof_r_new.root(),
        )?;
    }
    Ok(())
}

impl<T: Shape> Job for UpdateJob<T> {
    fn partitions(&self) -> usize {
        self.vanilla.len()
    }

    fn circuit(&self, k: usize) -> Result<FilecoinCircuit, RequestError> {
        guarded("building the update circuit", || {
            <Compound<T> as CompoundProof<EmptySectorUpdate<T>, _>>::circuit(
                &self.public,
                (),
                &self.vanilla[k],
                &self.params,
                Some(k),
            )
        })
        .map(T::update)
    }

    fn native_witness(&self, k: usize, out: &mut Witness) -> Result<WitnessPath, RequestError> {
        let Some(first) = self.vanilla[k].challenge_proofs.first() else {
            return Ok(WitnessPath::Generic);
        };
        native(k, || {
            let partition = self.native_partition(k, first);
            native_update::append(&partition, poseidons(), out)
        })
    }

    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, RequestError> {
        guarded("deriving the public inputs", || {
            <Compound<T> as CompoundProof<EmptySectorUpdate<T>, EmptySectorUpdateCircuit<T>>>::generate_public_inputs(
                &self.public,
                &self.params,
                Some(k),
            )
        })
    }

    fn verify(&self, proof: &[u8]) -> Result<bool, RequestError> {
        guarded("verifying the update proof", || {
            verify_empty_sector_update_proof::<T>(
                &blank_seal_proof(self.size).as_v1_config(),
                proof,
                self.comm_r_old,
                self.comm_r_new,
                self.comm_d_new,
            )
        })
    }

    fn verify_vanilla(&self) -> Result<bool, RequestError> {
        guarded("verifying the vanilla proofs", || {
            let config = blank_seal_proof(self.size).as_v1_config();
            verify_partition_proofs::<T>(
                SectorUpdateConfig::from_porep_config(&config),
                &self.vanilla,
                self.comm_r_old,
                self.comm_r_new,
                self.comm_d_new,
            )
        })
    }
}
