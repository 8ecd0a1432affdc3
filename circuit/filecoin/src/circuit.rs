//! The circuits of every proof kind and tree shape as one type.

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use cuzk_circuit::Scalar;
use filecoin_hashers::sha256::Sha256Hasher;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_porep::stacked::{StackedCircuit, StackedCompound, StackedDrg};
use storage_proofs_post::fallback::{FallbackPoSt, FallbackPoStCircuit, FallbackPoStCompound};
use storage_proofs_update::circuit::PrivateInputs;
use storage_proofs_update::{
    EmptySectorUpdate, EmptySectorUpdateCircuit, EmptySectorUpdateCompound, PublicParams,
};

use crate::error::RequestError;
use crate::guard::{caught, guarded};
use crate::kind::{CircuitId, ProofKind, SectorSize};
use crate::registered::{SealVariant, seal_proof};
use crate::shape::{Shape, by_shape, porep_params, post_params, window_config, winning_config};

/// One partition's circuit, of any proof kind and sector size.
///
/// Blank (for parameters, shapes and densities) from [`CircuitId::blank_circuit`], with its witness
/// from [`crate::Request::circuit`]. Cloning copies the vanilla proof inside.
#[derive(Clone)]
pub enum FilecoinCircuit {
    /// 2 KiB, 8 MiB and 512 MiB sectors.
    Base(Circuits<SectorShapeBase>),
    /// 32 GiB sectors.
    Sub8(Circuits<SectorShapeSub8>),
    /// 64 GiB sectors.
    Top2(Circuits<SectorShapeTop2>),
}

/// The circuits over one tree shape.
#[expect(
    private_bounds,
    reason = "the shapes are storage-proofs' own, sealed here"
)]
pub enum Circuits<T: Shape> {
    /// Proof of replication.
    Porep(StackedCircuit<T, Sha256Hasher>),
    /// Winning and window proof of space-time.
    Post(FallbackPoStCircuit<T>),
    /// Empty sector update.
    Update(EmptySectorUpdateCircuit<T>),
}

impl<T: Shape> Clone for Circuits<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Porep(circuit) => Self::Porep(circuit.clone()),
            Self::Post(circuit) => Self::Post(circuit.clone()),
            Self::Update(circuit) => Self::Update(clone_update(circuit)),
        }
    }
}

/// storage-proofs derives no `Clone` that works for trees, which cannot be cloned themselves.
fn clone_update<T: Shape>(circuit: &EmptySectorUpdateCircuit<T>) -> EmptySectorUpdateCircuit<T> {
    let private = &circuit.priv_inputs;
    EmptySectorUpdateCircuit {
        pub_params: circuit.pub_params.clone(),
        pub_inputs: circuit.pub_inputs.clone(),
        priv_inputs: PrivateInputs {
            comm_c: private.comm_c,
            root_r_old: private.root_r_old,
            root_r_new: private.root_r_new,
            apex_leafs: private.apex_leafs.clone(),
            challenge_proofs: private.challenge_proofs.clone(),
        },
    }
}

impl<T: Shape> Circuit<Scalar> for Circuits<T> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        match self {
            Self::Porep(circuit) => Circuit::synthesize(circuit, cs),
            Self::Post(circuit) => circuit.synthesize(cs),
            Self::Update(circuit) => circuit.synthesize(cs),
        }
    }
}

impl Circuit<Scalar> for FilecoinCircuit {
    /// A panic of storage-proofs' gadgets becomes a [`SynthesisError::IoError`] with its message;
    /// the constraint system is then as incomplete as after any other error.
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        caught(|| match self {
            Self::Base(circuit) => circuit.synthesize(cs),
            Self::Sub8(circuit) => circuit.synthesize(cs),
            Self::Top2(circuit) => circuit.synthesize(cs),
        })
        .unwrap_or_else(|panic| {
            let message = format!("storage-proofs panicked in synthesis: {panic}");
            Err(std::io::Error::other(message).into())
        })
    }
}

impl std::fmt::Debug for FilecoinCircuit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilecoinCircuit").finish_non_exhaustive()
    }
}

impl CircuitId {
    /// The circuit without a witness: for parameters, shapes and densities.
    ///
    /// # Errors
    /// Only where storage-proofs fails to set up its own constants.
    pub fn blank_circuit(self) -> Result<FilecoinCircuit, RequestError> {
        by_shape!(self.size, Tree => blank::<Tree>(self.kind, self.size))
    }
}

/// The blank circuit of one kind over one tree shape.
fn blank<T: Shape>(kind: ProofKind, size: SectorSize) -> Result<FilecoinCircuit, RequestError> {
    match kind {
        ProofKind::Porep => {
            let config = blank_seal_proof(size).as_v1_config();
            let params = porep_params::<T>(&config)?;
            guarded("building the blank replication circuit", || {
                Ok::<_, String>(T::porep(
                    <StackedCompound<T, Sha256Hasher> as CompoundProof<
                        StackedDrg<'_, T, Sha256Hasher>,
                        _,
                    >>::blank_circuit(&params),
                ))
            })
        }
        ProofKind::Winning | ProofKind::Window => {
            let config = match kind {
                ProofKind::Winning => winning_config(size),
                _ => window_config(size, ApiVersion::V1_2_0)?,
            };
            let params = post_params::<T>(&config)?;
            guarded("building the blank space-time circuit", || {
                Ok::<_, String>(T::post(<FallbackPoStCompound<T> as CompoundProof<
                    FallbackPoSt<'_, T>,
                    _,
                >>::blank_circuit(&params)))
            })
        }
        ProofKind::Update => guarded("building the blank update circuit", || {
            let params = PublicParams::from_sector_size(size.bytes());
            Ok::<_, String>(T::update(<EmptySectorUpdateCompound<T> as CompoundProof<
                EmptySectorUpdate<T>,
                _,
            >>::blank_circuit(&params)))
        }),
    }
}

/// The seal proof whose configuration stands for the circuit; all variants share one circuit.
pub(crate) fn blank_seal_proof(size: SectorSize) -> RegisteredSealProof {
    seal_proof(size, SealVariant::V1_1)
}
