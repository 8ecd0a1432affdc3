//! Proving requests: from the bytes that clients send to circuits, public inputs and verification.

mod c1;
mod file;
mod post;
mod update;
mod wire;

use std::sync::Arc;

use cuzk_circuit::{Scalar, Witness};

use crate::circuit::FilecoinCircuit;
use crate::error::RequestError;
use crate::kind::{CircuitId, ProofKind};
use crate::native::WitnessPath;

pub use c1::C1Origin;
pub use wire::ProofRequest;

/// The length in bytes of the proof of one partition.
pub const PARTITION_PROOF_LEN: usize = 192;

/// What each kind of request can do once it is parsed and checked.
trait Job: Send + Sync {
    /// The number of partitions, each of which is one proof.
    fn partitions(&self) -> usize;
    /// The circuit of partition `k`, which exists.
    fn circuit(&self, k: usize) -> Result<FilecoinCircuit, RequestError>;
    /// Appends the witness of partition `k`, which exists, without a constraint system. Where there
    /// is no generator for the circuit it appends nothing and says [`WitnessPath::Generic`].
    fn native_witness(&self, k: usize, out: &mut Witness) -> Result<WitnessPath, RequestError>;
    /// The public inputs of partition `k`, which exists, without the leading one.
    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, RequestError>;
    /// storage-proofs' verdict on a proof of the right length.
    fn verify(&self, proof: &[u8]) -> Result<bool, RequestError>;
    /// storage-proofs' verdict on the vanilla proofs.
    fn verify_vanilla(&self) -> Result<bool, RequestError>;
}

/// A parsed and checked proving job. Cheap to clone: the vanilla proofs are shared.
///
/// Parsing checks everything about the input's form: encodings, counts, lengths, that every hash
/// value is canonical and every inclusion proof is about the node that the challenges name. What
/// only hashing can find is left to the proof's verification or to [`Request::verify_vanilla`].
#[derive(Clone)]
pub struct Request {
    circuit: CircuitId,
    job: Arc<dyn Job>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("circuit", &self.circuit)
            .field("partitions", &self.partitions())
            .finish_non_exhaustive()
    }
}

impl Request {
    /// A request for a proof of replication from the JSON of the commit's first phase, bare or in
    /// the wrapper `{"SectorNum":…,"Phase1Out":"<base64>","SectorSize":…}`.
    ///
    /// Without the miner's id the official check is of the replica id in the file, not of the miner
    /// and sector that it was derived from; see [`Request::from_c1_of`].
    ///
    /// # Errors
    /// The input is not such JSON, or contradicts itself.
    pub fn from_c1(bytes: &[u8]) -> Result<Self, RequestError> {
        c1::parse(bytes, c1::Expected::default())
    }

    /// As [`Request::from_c1`], for the sector of a known miner: the replica id must be theirs.
    ///
    /// # Errors
    /// As [`Request::from_c1`], and when the replica id belongs to another miner or sector.
    pub fn from_c1_of(bytes: &[u8], origin: C1Origin) -> Result<Self, RequestError> {
        let origin = Some(origin);
        c1::parse(
            bytes,
            c1::Expected {
                origin,
                ..Default::default()
            },
        )
    }

    /// A request of any kind from the fields of the wire contract's `SubmitProofRequest`.
    ///
    /// # Errors
    /// A field is missing, of the wrong length, not decodable, or contradicts another one.
    pub fn parse(request: &ProofRequest) -> Result<Self, RequestError> {
        wire::parse(request)
    }

    /// A request from the contents of a file: the JSON of [`ProofRequest::to_json`], or a commit's
    /// first phase, bare or wrapped.
    ///
    /// # Errors
    /// The bytes are none of these, or the request in them is refused.
    pub fn from_file_bytes(bytes: &[u8]) -> Result<Self, RequestError> {
        file::parse(bytes)
    }

    /// As [`Request::from_file_bytes`], for the sector of a known miner: a C1 file's replica id must be
    /// theirs, and the official check is then `verify_seal` itself.
    ///
    /// # Errors
    /// As [`Request::from_file_bytes`]; when the sector is another miner's; and when a C1 file does
    /// not state its sector number.
    pub fn from_file_bytes_of(bytes: &[u8], miner_id: u64) -> Result<Self, RequestError> {
        file::parse_of(bytes, miner_id)
    }

    /// Reads a file and parses it with [`Request::from_file_bytes`].
    ///
    /// # Errors
    /// The file cannot be read, or its contents are refused.
    pub fn open(path: &std::path::Path) -> Result<Self, RequestError> {
        let bytes = std::fs::read(path).map_err(RequestError::io(path))?;
        Self::from_file_bytes(&bytes)
    }

    fn new(circuit: CircuitId, job: impl Job + 'static) -> Self {
        Self {
            circuit,
            job: Arc::new(job),
        }
    }

    /// The circuit, hence the parameters, that all partitions of this request use.
    pub fn circuit_id(&self) -> CircuitId {
        self.circuit
    }

    /// What is proved.
    pub fn kind(&self) -> ProofKind {
        self.circuit.kind
    }

    /// Refuses the request unless it is for `expected`.
    ///
    /// # Errors
    /// [`RequestError::Circuit`] when it is for another circuit.
    pub fn expect_circuit(&self, expected: CircuitId) -> Result<(), RequestError> {
        if self.circuit == expected {
            return Ok(());
        }
        Err(RequestError::Circuit {
            expected,
            found: self.circuit,
        })
    }

    /// How many partitions are to be proved, one Groth16 proof each.
    pub fn partitions(&self) -> usize {
        self.job.partitions()
    }

    /// The circuit of partition `k` with its witness inside.
    ///
    /// # Errors
    /// There is no such partition, or storage-proofs refuses to build the circuit.
    pub fn circuit(&self, k: usize) -> Result<FilecoinCircuit, RequestError> {
        self.check_partition(k)?;
        self.job.circuit(k)
    }

    /// The witness of partition `k` in the memory of `arena`, whose contents are dropped: the same
    /// values, in the same form, as [`FilecoinCircuit::witness_into`] gives for
    /// [`Request::circuit`]. Uses all threads of the current rayon pool.
    ///
    /// Says whether a native generator made it, or the constraint system of the generic path where
    /// there is no generator for the circuit.
    ///
    /// # Errors
    /// There is no such partition, or the vanilla proof contradicts what the circuit derives from
    /// it; `arena` is empty then.
    pub fn witness_into(&self, k: usize, arena: &mut Witness) -> Result<WitnessPath, RequestError> {
        self.check_partition(k)?;
        arena.clear();
        arena.inputs.push(Scalar::from(1));
        let result = self.job.native_witness(k, arena).and_then(|path| {
            if path == WitnessPath::Generic {
                let circuit = self.job.circuit(k)?;
                circuit
                    .witness_into(arena)
                    .map_err(RequestError::Synthesis)?;
            }
            Ok(path)
        });
        if result.is_err() {
            arena.clear();
        }
        result
    }

    /// The public inputs of partition `k` in the circuit's order, without the leading one.
    ///
    /// # Errors
    /// There is no such partition, or storage-proofs refuses to derive the inputs.
    pub fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, RequestError> {
        self.check_partition(k)?;
        self.job.public_inputs(k)
    }

    fn check_partition(&self, partition: usize) -> Result<(), RequestError> {
        let partitions = self.partitions();
        if partition < partitions {
            return Ok(());
        }
        Err(RequestError::Partition {
            partition,
            partitions,
        })
    }

    /// The length in bytes of the whole proof: [`PARTITION_PROOF_LEN`] a partition.
    pub fn proof_len(&self) -> usize {
        self.partitions() * PARTITION_PROOF_LEN
    }

    /// Joins the partitions' proofs, given in partition order, into what the client gets.
    ///
    /// # Errors
    /// The number of proofs is not [`Request::partitions`].
    pub fn assemble(&self, proofs: &[[u8; PARTITION_PROOF_LEN]]) -> Result<Vec<u8>, RequestError> {
        if proofs.len() != self.partitions() {
            return Err(RequestError::Count {
                field: "proofs".to_owned(),
                expected: self.partitions().to_string(),
                found: proofs.len(),
            });
        }
        Ok(proofs.concat())
    }

    /// The official verifier's verdict on a whole proof (`verify_seal`, `verify_winning_post`,
    /// `verify_window_post`, `verify_empty_sector_update_proof`).
    ///
    /// They read the verifying key (`.vk`) from the parameter folder, see [`crate::params_dir`], and
    /// keep it for the life of the process.
    ///
    /// # Errors
    /// The proof has the wrong length, is not made of curve points, or there is no verifying key.
    pub fn verify(&self, proof: &[u8]) -> Result<bool, RequestError> {
        if proof.len() != self.proof_len() {
            return Err(RequestError::Length {
                field: "proof".to_owned(),
                expected: self.proof_len(),
                found: proof.len(),
            });
        }
        self.job.verify(proof)
    }

    /// The official verifier's verdict on the vanilla proofs: all inclusion paths are hashed.
    ///
    /// Takes about a core-second for a 32 GiB proof of replication. A false verdict means that no
    /// proof of this request can verify.
    ///
    /// # Errors
    /// storage-proofs refuses the input for a reason other than its falsehood.
    pub fn verify_vanilla(&self) -> Result<bool, RequestError> {
        self.job.verify_vanilla()
    }
}
