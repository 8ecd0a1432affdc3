//! The tree shapes behind the sector sizes, and storage-proofs' settings for each proof kind.

use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::sha256::Sha256Hasher;
use filecoin_proofs::constants::{
    SectorShapeBase, SectorShapeSub8, SectorShapeTop2, WINDOW_POST_CHALLENGE_COUNT,
    WINDOW_POST_SECTOR_COUNT, WINNING_POST_CHALLENGE_COUNT, WINNING_POST_SECTOR_COUNT,
};
use filecoin_proofs::parameters::{
    setup_params, window_post_setup_params, winning_post_setup_params,
};
use filecoin_proofs::{PoRepConfig, PoStConfig, PoStType};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{self, StackedCircuit, StackedDrg};
use storage_proofs_post::fallback::{self, FallbackPoSt, FallbackPoStCircuit};
use storage_proofs_update::EmptySectorUpdateCircuit;

use crate::circuit::{Circuits, FilecoinCircuit};
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::SectorSize;

/// A replica tree's shape; decides the types of the proofs and of the circuits.
///
/// 2 KiB, 8 MiB and 512 MiB sectors have one tree of arity 8; 32 GiB sectors have eight of them
/// under one node; 64 GiB sectors have two such groups under the root.
pub(crate) trait Shape: 'static + MerkleTreeTrait<Hasher = PoseidonHasher> {
    /// Wraps a replication circuit of this shape.
    fn porep(circuit: StackedCircuit<Self, Sha256Hasher>) -> FilecoinCircuit
    where
        Self: Sized;
    /// Wraps a space-time circuit of this shape.
    fn post(circuit: FallbackPoStCircuit<Self>) -> FilecoinCircuit
    where
        Self: Sized;
    /// Wraps an update circuit of this shape.
    fn update(circuit: EmptySectorUpdateCircuit<Self>) -> FilecoinCircuit
    where
        Self: Sized;
}

macro_rules! shape {
    ($tree:ty, $variant:ident) => {
        impl Shape for $tree {
            fn porep(circuit: StackedCircuit<Self, Sha256Hasher>) -> FilecoinCircuit {
                FilecoinCircuit::$variant(Circuits::Porep(circuit))
            }
            fn post(circuit: FallbackPoStCircuit<Self>) -> FilecoinCircuit {
                FilecoinCircuit::$variant(Circuits::Post(circuit))
            }
            fn update(circuit: EmptySectorUpdateCircuit<Self>) -> FilecoinCircuit {
                FilecoinCircuit::$variant(Circuits::Update(circuit))
            }
        }
    };
}
shape!(SectorShapeBase, Base);
shape!(SectorShapeSub8, Sub8);
shape!(SectorShapeTop2, Top2);

/// Evaluates an expression with a type name bound to the tree shape of a sector size.
macro_rules! by_shape {
    ($size:expr, $tree:ident => $body:expr) => {
        match $size {
            $crate::kind::SectorSize::Kib2
            | $crate::kind::SectorSize::Mib8
            | $crate::kind::SectorSize::Mib512 => {
                type $tree = ::filecoin_proofs::constants::SectorShapeBase;
                $body
            }
            $crate::kind::SectorSize::Gib32 => {
                type $tree = ::filecoin_proofs::constants::SectorShapeSub8;
                $body
            }
            $crate::kind::SectorSize::Gib64 => {
                type $tree = ::filecoin_proofs::constants::SectorShapeTop2;
                $body
            }
        }
    };
}
pub(crate) use by_shape;

/// The public parameters (graph, challenge counts, layers) of a seal configuration.
pub(crate) fn porep_params<T: Shape>(
    config: &PoRepConfig,
) -> Result<stacked::PublicParams<T>, RequestError> {
    guarded("preparing the replication parameters", || {
        StackedDrg::<T, Sha256Hasher>::setup(&setup_params(config)?)
    })
}

/// The configuration of winning proofs at a sector size.
pub(crate) fn winning_config(size: SectorSize) -> PoStConfig {
    PoStConfig {
        sector_size: size.bytes().into(),
        challenge_count: WINNING_POST_CHALLENGE_COUNT,
        sector_count: WINNING_POST_SECTOR_COUNT,
        typ: PoStType::Winning,
        priority: false,
        api_version: ApiVersion::V1_0_0,
    }
}

/// The configuration of window proofs at a sector size, under one of the two challenge rules.
pub(crate) fn window_config(
    size: SectorSize,
    api_version: ApiVersion,
) -> Result<PoStConfig, RequestError> {
    let sector_count = guarded("reading the sectors of a window partition", || {
        let counts = WINDOW_POST_SECTOR_COUNT.read().map_err(|e| e.to_string())?;
        counts
            .get(&size.bytes())
            .copied()
            .ok_or_else(|| format!("no count for {size}"))
    })?;
    Ok(PoStConfig {
        sector_size: size.bytes().into(),
        challenge_count: WINDOW_POST_CHALLENGE_COUNT,
        sector_count,
        typ: PoStType::Window,
        priority: false,
        api_version,
    })
}

/// The circuit's view of a space-time configuration: sectors and challenges of each.
///
/// A winning proof's 66 challenges of one sector become 66 "sectors" with one challenge.
pub(crate) fn post_params<T: Shape>(
    config: &PoStConfig,
) -> Result<fallback::PublicParams, RequestError> {
    guarded("preparing the space-time parameters", || {
        let setup = match config.typ {
            PoStType::Winning => winning_post_setup_params(config)?,
            PoStType::Window => window_post_setup_params(config),
        };
        FallbackPoSt::<T>::setup(&setup)
    })
}
