//! Proofs of replication: the JSON that a commit's first phase leaves for the second ("C1").

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellperson::groth16::prepare_verifying_key;
use cuzk_circuit::{Scalar, Witness};
use cuzk_witness::porep;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::PoRepConfig;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use filecoin_proofs_api::RegisteredSealProof;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use storage_proofs_core::compound_proof::{self, CompoundProof};
use storage_proofs_core::multi_proof::MultiProof;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{
    self, ChallengeRequirements, StackedCircuit, StackedCompound, StackedDrg, generate_replica_id,
};

use super::{Job, Request};
use crate::c1_json::{Challenge, Vanilla};
use crate::circuit::FilecoinCircuit;
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::{CircuitId, ProofKind, SectorSize};
use crate::merkle::{Arities, check_same, commitment};
use crate::miner::prover_id;
use crate::native::{WitnessPath, native, poseidons};
use crate::registered::{SealVariant, seal_parts, seal_proof};
use crate::shape::{Shape, porep_params};

/// Whose sector a proof of replication is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct C1Origin {
    /// The miner's actor id, e.g. 1000 for `f01000`.
    pub miner_id: u64,
    /// The sector's number.
    pub sector_number: u64,
}

/// The wrapper that clients put around the first phase's output; other keys are ignored.
#[derive(Deserialize)]
pub(super) struct Wrapper<'a> {
    /// Present in the files of [`super::ProofRequest::to_json`] only.
    pub(super) kind: Option<IgnoredAny>,
    #[serde(rename = "SectorNum")]
    pub(super) sector_number: Option<u64>,
    #[serde(borrow, rename = "Phase1Out")]
    phase1_out: Option<Cow<'a, str>>,
    #[serde(rename = "SectorSize")]
    sector_size: Option<u64>,
}

/// The output of the commit's first phase.
#[derive(Deserialize)]
struct Phase1Output {
    registered_proof: RegisteredSealProof,
    vanilla_proofs: Vanilla,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    replica_id: [u8; 32],
    seed: [u8; 32],
    ticket: [u8; 32],
}

/// What the rest of a request says about the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    pub(super) size: Option<SectorSize>,
    pub(super) variant: Option<SealVariant>,
    pub(super) origin: Option<C1Origin>,
}

/// The top-level keys of a JSON document that tell the formats apart.
pub(super) fn wrapper(bytes: &[u8]) -> Result<Wrapper<'_>, RequestError> {
    serde_json::from_slice(bytes).map_err(|e| RequestError::json("request", &e))
}

/// Parses the JSON, wrapped or bare.
pub(super) fn parse(bytes: &[u8], expected: Expected) -> Result<Request, RequestError> {
    parse_document(bytes, wrapper(bytes)?, expected)
}

/// Parses a document whose top-level keys are known.
pub(super) fn parse_document(
    bytes: &[u8],
    wrapper: Wrapper<'_>,
    mut expected: Expected,
) -> Result<Request, RequestError> {
    let Some(encoded) = wrapper.phase1_out else {
        return parse_bare(bytes, "C1", expected);
    };
    let inner = STANDARD
        .decode(encoded.as_bytes())
        .map_err(|e| RequestError::Base64 {
            field: "Phase1Out".to_owned(),
            message: e.to_string(),
        })?;
    if let Some(bytes) = wrapper.sector_size {
        let found = sector_size("SectorSize", bytes)?;
        check_size("SectorSize", *expected.size.get_or_insert(found), found)?;
    }
    if let (Some(number), Some(origin)) = (wrapper.sector_number, expected.origin)
        && number != origin.sector_number
    {
        return Err(RequestError::mismatch(
            "SectorNum",
            origin.sector_number,
            number,
        ));
    }
    parse_bare(&inner, "Phase1Out", expected)
}

/// A sector size in bytes from the input.
pub(super) fn sector_size(field: &'static str, bytes: u64) -> Result<SectorSize, RequestError> {
    SectorSize::from_bytes(bytes).map_err(|source| RequestError::Name { field, source })
}

/// Refuses a sector size other than the one stated elsewhere.
pub(super) fn check_size(
    field: &str,
    expected: SectorSize,
    found: SectorSize,
) -> Result<(), RequestError> {
    if expected == found {
        return Ok(());
    }
    Err(RequestError::SectorSize {
        field: field.to_owned(),
        expected,
        found,
    })
}

fn parse_bare(bytes: &[u8], field: &str, expected: Expected) -> Result<Request, RequestError> {
    let output: Phase1Output =
        serde_json::from_slice(bytes).map_err(|e| RequestError::json(field, &e))?;
    let (size, variant) = seal_parts(output.registered_proof);
    if let Some(expected) = expected.size {
        check_size("registered_proof", expected, size)?;
    }
    if let Some(expected) = expected.variant.filter(|&expected| expected != variant) {
        return Err(RequestError::mismatch(
            "registered_proof",
            format!("{:?}", seal_proof(size, expected)),
            format!("{:?}", output.registered_proof),
        ));
    }
    check_size("vanilla_proofs", size, output.vanilla_proofs.size())?;
    let header = Header::check(&output, variant, expected.origin)?;
    let circuit = CircuitId::new(ProofKind::Porep, size);
    Ok(match output.vanilla_proofs {
        Vanilla::StackedDrg2KiBV1(p)
        | Vanilla::StackedDrg8MiBV1(p)
        | Vanilla::StackedDrg512MiBV1(p) => {
            Request::new(circuit, PorepJob::<SectorShapeBase>::check(header, p)?)
        }
        Vanilla::StackedDrg32GiBV1(p) => {
            Request::new(circuit, PorepJob::<SectorShapeSub8>::check(header, p)?)
        }
        Vanilla::StackedDrg64GiBV1(p) => {
            Request::new(circuit, PorepJob::<SectorShapeTop2>::check(header, p)?)
        }
    })
}

/// Everything but the vanilla proofs, checked.
struct Header {
    variant: SealVariant,
    config: PoRepConfig,
    public: stacked::PublicInputs<PoseidonDomain, Sha256Domain>,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    seed: [u8; 32],
    ticket: [u8; 32],
    origin: Option<C1Origin>,
}

impl Header {
    fn check(
        output: &Phase1Output,
        variant: SealVariant,
        origin: Option<C1Origin>,
    ) -> Result<Self, RequestError> {
        let config = output.registered_proof.as_v1_config();
        let comm_r = commitment("comm_r", &output.comm_r)?;
        let comm_d = commitment("comm_d", &output.comm_d)?;
        let replica_id = commitment("replica_id", &output.replica_id)?;
        if output.seed == [0; 32] {
            return Err(RequestError::mismatch(
                "seed",
                "a random value",
                "32 zero bytes",
            ));
        }
        if let Some(origin) = origin {
            let derived = generate_replica_id::<PoseidonHasher, _>(
                &prover_id(origin.miner_id),
                origin.sector_number,
                &output.ticket,
                comm_d,
                &config.porep_id,
            );
            check_same(
                &|| {
                    format!(
                        "replica_id of miner {}, sector {}",
                        origin.miner_id, origin.sector_number
                    )
                },
                "value",
                &derived,
                &replica_id,
            )?;
        }
        Ok(Self {
            variant,
            config,
            public: stacked::PublicInputs {
                replica_id,
                tau: Some(stacked::Tau { comm_d, comm_r }),
                k: None,
                seed: Some(output.seed),
            },
            comm_r: output.comm_r,
            comm_d: output.comm_d,
            seed: output.seed,
            ticket: output.ticket,
            origin,
        })
    }
}

/// A checked proof-of-replication request.
struct PorepJob<T: Shape> {
    header: Header,
    params: stacked::PublicParams<T>,
    /// By partition and challenge.
    vanilla: Vec<Vec<Challenge<T>>>,
}

impl<T: Shape> PorepJob<T> {
    fn check(header: Header, partitions: Vec<Vec<Challenge<T>>>) -> Result<Self, RequestError> {
        let params = porep_params::<T>(&header.config)?;
        let expected = usize::from(header.config.partitions);
        if partitions.len() != expected {
            return Err(RequestError::Count {
                field: "vanilla_proofs (partitions)".to_owned(),
                expected: expected.to_string(),
                found: partitions.len(),
            });
        }
        let nodes = u64::from(header.config.sector_size) as usize / 32;
        let arities = Arities::of::<T>(nodes);
        let vanilla = partitions
            .into_par_iter()
            .enumerate()
            .map(|(k, proofs)| Self::check_partition(&header, &params, &arities, nodes, k, proofs))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            header,
            params,
            vanilla,
        })
    }

    fn check_partition(
        header: &Header,
        params: &stacked::PublicParams<T>,
        arities: &Arities,
        nodes: usize,
        k: usize,
        proofs: Vec<Challenge<T>>,
    ) -> Result<Vec<Challenge<T>>, RequestError> {
        let challenges = guarded("deriving the challenges", || {
            Ok::<_, String>(header.public.challenges(&params.challenges, nodes, Some(k)))
        })?;
        if proofs.len() != challenges.len() {
            return Err(RequestError::Count {
                field: format!("vanilla_proofs[{k}] (challenges)"),
                expected: challenges.len().to_string(),
                found: proofs.len(),
            });
        }
        for (i, (proof, &challenge)) in proofs.iter().zip(&challenges).enumerate() {
            let place = || format!("vanilla_proofs[{k}][{i}]");
            proof.check(&place, challenge, params.num_layers, arities)?;
        }
        check_commitments(k, &proofs, &header.public)?;
        Ok(proofs)
    }

    /// Partition `k` in storage-proofs' type.
    fn official(&self, k: usize) -> Vec<stacked::Proof<T, Sha256Hasher>> {
        self.vanilla[k].iter().map(Challenge::to_proof).collect()
    }
}

/// All challenges of a partition open the same trees, and these make up the replica's commitment.
fn check_commitments<T: Shape>(
    k: usize,
    proofs: &[Challenge<T>],
    public: &stacked::PublicInputs<PoseidonDomain, Sha256Domain>,
) -> Result<(), RequestError> {
    let (Some(first), Some(tau)) = (proofs.first(), &public.tau) else {
        return Ok(());
    };
    let (comm_c, comm_r_last) = (first.comm_c(), first.comm_r_last());
    for (i, proof) in proofs.iter().enumerate() {
        let place = || format!("vanilla_proofs[{k}][{i}]");
        proof.check_roots(&place, &comm_c, &comm_r_last, &tau.comm_d)?;
    }
    let comm_r = <PoseidonHasher as Hasher>::Function::hash2(&comm_c, &comm_r_last);
    check_same(
        &|| format!("vanilla_proofs[{k}]"),
        "hash of the column and replica tree roots (comm_r)",
        &tau.comm_r,
        &comm_r,
    )
}

/// The compound proof over one tree shape.
type Compound<T> = StackedCompound<T, Sha256Hasher>;

impl<T: Shape> PorepJob<T> {
    /// The check that `verify_seal` makes, with the replica id from the file.
    fn verify_with_replica_id(&self, proof: &[u8]) -> Result<bool, RequestError> {
        guarded("verifying the proof of replication", || {
            let config = &self.header.config;
            let key = <Compound<T> as CompoundProof<
                StackedDrg<'_, T, Sha256Hasher>,
                StackedCircuit<T, Sha256Hasher>,
            >>::verifying_key::<ChaCha20Rng>(None, &self.params)?;
            let key = prepare_verifying_key(&key);
            let params = compound_proof::PublicParams {
                vanilla_params: self.params.clone(),
                partitions: Some(self.partitions()),
                priority: false,
            };
            let proof = MultiProof::new_from_bytes(Some(self.partitions()), proof, &key)?;
            let requirements = ChallengeRequirements {
                minimum_challenges: config.minimum_challenges(),
            };
            Compound::<T>::verify(&params, &self.header.public, &proof, &requirements)
        })
    }
}

impl<T: Shape> Job for PorepJob<T> {
    fn partitions(&self) -> usize {
        self.vanilla.len()
    }

    fn circuit(&self, k: usize) -> Result<FilecoinCircuit, RequestError> {
        guarded("building the replication circuit", || {
            <Compound<T> as CompoundProof<StackedDrg<'_, T, Sha256Hasher>, _>>::circuit(
                &self.header.public,
                (),
                &self.official(k),
                &self.params,
                Some(k),
            )
        })
        .map(T::porep)
    }

    fn native_witness(&self, k: usize, out: &mut Witness) -> Result<WitnessPath, RequestError> {
        // storage-proofs hashes columns of two and of eleven layers.
        if ![2, 11].contains(&self.params.num_layers) {
            return Ok(WitnessPath::Generic);
        }
        let (Some(first), Some(tau)) = (self.vanilla[k].first(), &self.header.public.tau) else {
            return Ok(WitnessPath::Generic);
        };
        native(k, || {
            let partition = porep::Partition {
                replica_id: self.header.public.replica_id.into(),
                comm_d: tau.comm_d.into(),
                comm_r: tau.comm_r.into(),
                comm_r_last: first.comm_r_last().into(),
                comm_c: first.comm_c().into(),
                challenges: self.vanilla[k]
                    .par_iter()
                    .map(Challenge::to_native)
                    .collect(),
            };
            porep::append(&partition, poseidons(), out)
        })
    }

    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, RequestError> {
        guarded("deriving the public inputs", || {
            <Compound<T> as CompoundProof<
                StackedDrg<'_, T, Sha256Hasher>,
                StackedCircuit<T, Sha256Hasher>,
            >>::generate_public_inputs(&self.header.public, &self.params, Some(k))
        })
    }

    fn verify(&self, proof: &[u8]) -> Result<bool, RequestError> {
        let header = &self.header;
        // `verify_seal` expects an aggregate for non-interactive seals, which is made elsewhere.
        let Some(origin) = header
            .origin
            .filter(|_| header.variant != SealVariant::NonInteractive)
        else {
            return self.verify_with_replica_id(proof);
        };
        guarded("verifying the proof of replication", || {
            filecoin_proofs::verify_seal::<T>(
                &header.config,
                header.comm_r,
                header.comm_d,
                prover_id(origin.miner_id),
                origin.sector_number.into(),
                header.ticket,
                header.seed,
                proof,
            )
        })
    }

    fn verify_vanilla(&self) -> Result<bool, RequestError> {
        guarded("verifying the vanilla proofs", || {
            StackedDrg::<T, Sha256Hasher>::verify_all_partitions(
                &self.params,
                &self.header.public,
                &(0..self.vanilla.len())
                    .map(|k| self.official(k))
                    .collect::<Vec<_>>(),
            )
        })
    }
}
