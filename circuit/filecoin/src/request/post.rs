//! Winning and window proofs of space-time from bincode sector proofs.

use std::collections::BTreeMap;

use bellperson::groth16::{Proof, prepare_verifying_key, verify_proof};
use blstrs::Bls12;
use cuzk_circuit::{Scalar, Witness};
use cuzk_witness::post as native_post;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::{Domain, HashFunction, Hasher};
use filecoin_proofs::{
    FallbackPoStSectorProof, PoStConfig, PoStType, PublicReplicaInfo, verify_window_post,
    verify_winning_post,
};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::gadgets::por::PoRCompound;
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_core::por;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_core::sector::SectorId;
use storage_proofs_post::fallback::{
    self, FallbackPoSt, FallbackPoStCircuit, FallbackPoStCompound, PublicSector, SectorProof,
    generate_leaf_challenge, get_challenge_index,
};

use super::Job;
use super::wire::decode;
use crate::circuit::FilecoinCircuit;
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::SectorSize;
use crate::merkle::{
    check_element, check_proof, check_same, element, hex, is_canonical, tree_arities,
};
use crate::miner::prover_id;
use crate::native::{WitnessPath, native, path, poseidons};
use crate::shape::{Shape, post_params};

/// The fields of a space-time request after their lengths are checked.
pub(super) struct Fields<'a> {
    pub(super) size: SectorSize,
    pub(super) randomness: [u8; 32],
    pub(super) miner_id: u64,
    pub(super) partition_index: usize,
    pub(super) vanilla_proofs: &'a [Vec<u8>],
}

/// The result of helpers that run inside [`guarded`].
type GuardedResult<T> = Result<T, String>;

/// A sector's openings, checked: one challenged node for each inclusion proof.
struct Sector<T: Shape> {
    id: SectorId,
    comm_r: PoseidonDomain,
    proof: SectorProof<T::Proof>,
    nodes: Vec<usize>,
}

/// A checked winning or window request.
pub(super) struct PostJob<T: Shape> {
    config: PoStConfig,
    params: fallback::PublicParams,
    /// As many sectors as the circuit has, except that a window's last may be missing.
    public: fallback::PublicInputs<PoseidonDomain>,
    /// The challenged nodes of each sector in `public`.
    nodes: Vec<Vec<usize>>,
    /// As many sectors as the circuit has.
    proof: fallback::Proof<T::Proof>,
    randomness: [u8; 32],
    prover_id: [u8; 32],
    partition_index: usize,
}

impl<T: Shape> PostJob<T> {
    /// Decodes and checks the sector proofs under the first configuration whose challenges they
    /// answer; `configs` are tried in order and must not be empty.
    pub(super) fn check(fields: &Fields<'_>, configs: &[PoStConfig]) -> Result<Self, RequestError> {
        let Some(first) = configs.first() else {
            return Err(RequestError::mismatch(
                "registered_proof",
                "a proof type",
                "none",
            ));
        };
        check_sector_count(first, fields.vanilla_proofs.len())?;
        let mut sectors = fields
            .vanilla_proofs
            .par_iter()
            .enumerate()
            .map(|(i, bytes)| Sector::<T>::decode(i, bytes, fields.size, first.challenge_count))
            .collect::<Result<Vec<_>, _>>()?;
        // The verifier orders a partition's sectors by their numbers.
        sectors.sort_by_key(|sector| u64::from(sector.id));
        if let Some(pair) = sectors.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(RequestError::mismatch(
                "vanilla_proofs: sector_id",
                "each sector once",
                format!("sector {} twice", u64::from(pair[0].id)),
            ));
        }
        let (config, randomness) = choose_rule(fields, configs, &sectors)?;
        Self::assemble(fields, config, randomness, sectors)
    }

    fn assemble(
        fields: &Fields<'_>,
        config: PoStConfig,
        randomness: [u8; 32],
        sectors: Vec<Sector<T>>,
    ) -> Result<Self, RequestError> {
        let params = post_params::<T>(&config)?;
        let prover_id = prover_id(fields.miner_id);
        let winning = config.typ == PoStType::Winning;
        let mut slots = Vec::with_capacity(params.sector_count);
        let mut job = Self {
            public: fallback::PublicInputs {
                randomness: element("randomness", &randomness)?,
                prover_id: element("miner_id", &prover_id)?,
                sectors: Vec::new(),
                k: None,
            },
            nodes: Vec::new(),
            proof: fallback::Proof {
                sectors: Vec::new(),
            },
            partition_index: if winning { 0 } else { fields.partition_index },
            config,
            params,
            randomness,
            prover_id,
        };
        for sector in sectors {
            let public = PublicSector {
                id: sector.id,
                comm_r: sector.comm_r,
            };
            let parts = if winning {
                sector.split()
            } else {
                vec![(sector.nodes, sector.proof)]
            };
            for (nodes, proof) in parts {
                job.public.sectors.push(public.clone());
                job.nodes.push(nodes);
                slots.push(proof);
            }
        }
        // A window partition that is not full repeats its last sector.
        if let Some(last) = slots.last().cloned() {
            slots.resize(job.params.sector_count, last);
        }
        job.proof.sectors = slots;
        Ok(job)
    }
}

/// Checks how many sectors there are.
fn check_sector_count(config: &PoStConfig, found: usize) -> Result<(), RequestError> {
    let most = config.sector_count;
    let (fits, expected) = match config.typ {
        PoStType::Winning => (found == most, most.to_string()),
        PoStType::Window => ((1..=most).contains(&found), format!("1 to {most}")),
    };
    if fits {
        return Ok(());
    }
    Err(RequestError::Count {
        field: "vanilla_proofs (sectors)".to_owned(),
        expected,
        found,
    })
}

impl<T: Shape> Sector<T> {
    fn decode(
        index: usize,
        bytes: &[u8],
        size: SectorSize,
        challenges: usize,
    ) -> Result<Self, RequestError> {
        let field = || format!("vanilla_proofs[{index}]");
        let sector: FallbackPoStSectorProof<T> =
            decode(&field(), "FallbackPoStSectorProof", bytes)?;
        let mut proofs = sector.vanilla_proof.sectors;
        let (Some(proof), true) = (proofs.pop(), proofs.is_empty()) else {
            return Err(RequestError::Count {
                field: format!("{}: sectors in the proof", field()),
                expected: "1".to_owned(),
                found: proofs.len(),
            });
        };
        let nodes = check_sector::<T>(&field, &sector.comm_r, &proof, size, challenges)?;
        Ok(Self {
            id: sector.sector_id,
            comm_r: sector.comm_r,
            proof,
            nodes,
        })
    }

    /// One part per challenge, as the winning circuit wants it.
    fn split(self) -> Vec<(Vec<usize>, SectorProof<T::Proof>)> {
        let (comm_c, comm_r_last) = (self.proof.comm_c, self.proof.comm_r_last);
        self.nodes
            .into_iter()
            .zip(self.proof.inclusion_proofs)
            .map(|(node, inclusion)| {
                let proof = SectorProof {
                    inclusion_proofs: vec![inclusion],
                    comm_c,
                    comm_r_last,
                };
                (vec![node], proof)
            })
            .collect()
    }
}

/// Checks a sector's openings against its own commitments; returns the opened nodes.
fn check_sector<T: Shape>(
    place: &(dyn Fn() -> String + Sync),
    comm_r: &PoseidonDomain,
    proof: &SectorProof<T::Proof>,
    size: SectorSize,
    challenges: usize,
) -> Result<Vec<usize>, RequestError> {
    for (name, value) in [
        ("comm_r", comm_r),
        ("comm_c", &proof.comm_c),
        ("comm_r_last", &proof.comm_r_last),
    ] {
        check_element(place, name, value)?;
    }
    let found = proof.inclusion_proofs.len();
    if found != challenges {
        return Err(RequestError::Count {
            field: format!("{}: inclusion proofs", place()),
            expected: challenges.to_string(),
            found,
        });
    }
    let arities = tree_arities::<T>(size.nodes());
    let mut nodes = Vec::with_capacity(challenges);
    for (n, inclusion) in proof.inclusion_proofs.iter().enumerate() {
        let at = || format!("{}: inclusion proof {n}", place());
        nodes.push(check_proof(&at, inclusion, &arities)?);
        check_same(
            &at,
            "replica tree root",
            &proof.comm_r_last,
            &inclusion.root(),
        )?;
    }
    let derived = <PoseidonHasher as Hasher>::Function::hash2(&proof.comm_c, &proof.comm_r_last);
    check_same(
        place,
        "hash of comm_c and comm_r_last (comm_r)",
        comm_r,
        &derived,
    )?;
    Ok(nodes)
}

/// Finds the challenge rule and the form of the randomness under which the sectors' openings are
/// the challenged ones.
///
/// Clients send the beacon's 32 bytes, whose two highest bits are cleared before they are used as a
/// field element; some clear them before they send.
fn choose_rule<T: Shape>(
    fields: &Fields<'_>,
    configs: &[PoStConfig],
    sectors: &[Sector<T>],
) -> Result<(PoStConfig, [u8; 32]), RequestError> {
    let mut masked = fields.randomness;
    masked[31] &= 0x3f;
    let mut forms = vec![fields.randomness, masked];
    forms.retain(|bytes| is_canonical(bytes));
    forms.dedup();
    let mut first_error = None;
    for config in configs {
        for form in &forms {
            match check_challenges(fields, config, form, sectors) {
                Ok(()) => return Ok((config.clone(), *form)),
                Err(error) => first_error.get_or_insert(error),
            };
        }
    }
    Err(first_error.unwrap_or_else(|| RequestError::NotCanonical {
        field: "randomness".to_owned(),
        found: hex(&fields.randomness),
    }))
}

/// Checks that every sector opens exactly the nodes that the randomness challenges.
fn check_challenges<T: Shape>(
    fields: &Fields<'_>,
    config: &PoStConfig,
    randomness: &[u8; 32],
    sectors: &[Sector<T>],
) -> Result<(), RequestError> {
    let params = fallback::PublicParams {
        sector_size: fields.size.bytes(),
        challenge_count: config.challenge_count,
        sector_count: config.sector_count,
        api_version: config.api_version,
    };
    let randomness: PoseidonDomain = element("randomness", randomness)?;
    let first_sector = match config.typ {
        PoStType::Winning => 0,
        PoStType::Window => fields.partition_index * config.sector_count,
    };
    sectors.par_iter().enumerate().try_for_each(|(i, sector)| {
        for (n, &node) in sector.nodes.iter().enumerate() {
            let index = get_challenge_index(
                config.api_version,
                first_sector + i,
                config.challenge_count,
                n,
            );
            let expected = generate_leaf_challenge(&params, randomness, sector.id.into(), index);
            if expected != node as u64 {
                return Err(RequestError::mismatch(
                    format!("sector {}: node of challenge {n}", u64::from(sector.id)),
                    format!("{expected} (by randomness, sector and partition)"),
                    node,
                ));
            }
        }
        Ok(())
    })
}

impl<T: Shape> PostJob<T> {
    /// One sector's public inputs: its commitment, then each challenge packed as a field element.
    fn sector_inputs(&self, slot: usize) -> GuardedResult<Vec<Scalar>> {
        let params = por::PublicParams {
            leaves: self.params.sector_size as usize / 32,
            private: true,
        };
        let mut inputs = vec![self.public.sectors[slot].comm_r.into()];
        for &challenge in &self.nodes[slot] {
            let public = por::PublicInputs {
                commitment: None,
                challenge,
            };
            inputs.extend(
                PoRCompound::<T>::generate_public_inputs(&public, &params, None)
                    .map_err(|error| format!("{error:#}"))?,
            );
        }
        Ok(inputs)
    }

    /// The values that the variables of a sector of `public` follow from.
    fn native_sector(&self, slot: usize) -> native_post::Sector {
        let proof = &self.proof.sectors[slot];
        native_post::Sector {
            comm_r: self.public.sectors[slot].comm_r.into(),
            comm_c: proof.comm_c.into(),
            comm_r_last: proof.comm_r_last.into(),
            openings: proof
                .inclusion_proofs
                .iter()
                .map(|inclusion| (inclusion.leaf().into(), path(inclusion)))
                .collect(),
        }
    }

    /// Checks a later partition under the first challenge rule, which `verify_window_post` cannot.
    fn verify_partition(&self, proof: &[u8]) -> Result<bool, RequestError> {
        let inputs = self.public_inputs(0)?;
        guarded("verifying the window proof", || {
            let key = <FallbackPoStCompound<T> as CompoundProof<
                FallbackPoSt<'_, T>,
                FallbackPoStCircuit<T>,
            >>::verifying_key::<ChaCha20Rng>(None, &self.params)
            .map_err(|error| format!("{error:#}"))?;
            let proof = Proof::<Bls12>::read(proof).map_err(|error| error.to_string())?;
            verify_proof(&prepare_verifying_key(&key), &proof, &inputs).map_err(|e| e.to_string())
        })
    }
}

/// A sector's commitment in the form that the verifiers take.
fn replica_info(sector: &PublicSector<PoseidonDomain>) -> GuardedResult<PublicReplicaInfo> {
    let mut comm_r = [0; 32];
    sector
        .comm_r
        .write_bytes(&mut comm_r)
        .and_then(|()| PublicReplicaInfo::new(comm_r))
        .map_err(|error| format!("{error:#}"))
}

impl<T: Shape> Job for PostJob<T> {
    fn partitions(&self) -> usize {
        1
    }

    fn circuit(&self, _: usize) -> Result<FilecoinCircuit, RequestError> {
        guarded("building the space-time circuit", || {
            <FallbackPoStCompound<T> as CompoundProof<FallbackPoSt<'_, T>, _>>::circuit(
                &self.public,
                Default::default(),
                &self.proof,
                &self.params,
                Some(0),
            )
        })
        .map(T::post)
    }

    fn native_witness(&self, k: usize, out: &mut Witness) -> Result<WitnessPath, RequestError> {
        let (slots, sectors) = (self.proof.sectors.len(), self.public.sectors.len());
        native(k, || {
            let sector = |slot| self.native_sector(slot);
            native_post::append(slots, sectors, sector, poseidons(), out)
        })
    }

    fn public_inputs(&self, _: usize) -> Result<Vec<Scalar>, RequestError> {
        guarded("deriving the public inputs", || {
            let last = self.public.sectors.len() - 1;
            let sectors = (0..=last)
                .into_par_iter()
                .map(|slot| self.sector_inputs(slot))
                .collect::<GuardedResult<Vec<_>>>()?;
            let slots = self.params.sector_count;
            Ok::<_, String>(
                (0..slots)
                    .flat_map(|slot| sectors[slot.min(last)].clone())
                    .collect(),
            )
        })
    }

    fn verify(&self, proof: &[u8]) -> Result<bool, RequestError> {
        let sectors = &self.public.sectors;
        if self.config.typ == PoStType::Winning {
            return guarded("verifying the winning proof", || {
                let replicas = [(sectors[0].id, replica_info(&sectors[0])?)];
                verify_winning_post::<T>(
                    &self.config,
                    &self.randomness,
                    &replicas,
                    self.prover_id,
                    proof,
                )
                .map_err(|error| format!("{error:#}"))
            });
        }
        if self.config.api_version != ApiVersion::V1_2_0 && self.partition_index > 0 {
            return self.verify_partition(proof);
        }
        guarded("verifying the window proof", || {
            let replicas = sectors
                .iter()
                .map(|sector| Ok((sector.id, replica_info(sector)?)))
                .collect::<GuardedResult<BTreeMap<_, _>>>()?;
            verify_window_post::<T>(
                &self.config,
                &self.randomness,
                &replicas,
                self.prover_id,
                proof,
            )
            .map_err(|error| format!("{error:#}"))
        })
    }

    fn verify_vanilla(&self) -> Result<bool, RequestError> {
        guarded("verifying the vanilla proofs", || {
            let mut public = self.public.clone();
            public.k = Some(self.partition_index);
            FallbackPoSt::<T>::verify(&self.params, &public, &self.proof)
        })
    }
}
