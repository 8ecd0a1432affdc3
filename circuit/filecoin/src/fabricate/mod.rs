//! Fabricated test sectors: satisfying requests of any sector size without sealing.
//!
//! A vanilla proof shows Merkle paths, columns and labels, and a circuit checks what it is shown. Neither can tell
//! whether the rest of the sector exists. So a sector of 32 GiB is made in seconds, from a seed, in memory that
//! grows with the proof and not with the sector: nodes that no path touches are drawn at random (`sparse.rs`), and
//! trees that must be able to open any leaf are built over patterned data (`pattern.rs`).
//!
//! What comes out are the bytes that clients send for a real sector. They are for tests and measurements: nothing is
//! stored anywhere, and no network would have accepted the sector in the first place.
//!
//! | kind | function | what a client would send |
//! | --- | --- | --- |
//! | PoRep (V1_1, interactive) | [`porep`](fn@porep) | the C1 JSON, bare or wrapped |
//! | WinningPoSt | [`winning`] | the vanilla proof of one sector, the randomness |
//! | WindowPoSt (V1_2) | [`window`] | the vanilla proof of each sector, the randomness |
//! | EmptySectorUpdate | [`update`](fn@update) | the vanilla proof of each partition, three commitments |
//!
//! Each result converts to the [`ProofRequest`] that a client would make of it.
//!
//! ```
//! use cuzk_filecoin::fabricate::{self, Options};
//! use cuzk_filecoin::{Request, SectorSize};
//!
//! let sector = fabricate::winning(SectorSize::Gib32, &Options::default())?;
//! let request = Request::parse(&sector.into())?;
//! assert!(request.verify_vanilla()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod data;
mod error;
mod pattern;
mod porep;
mod post;
mod shape;
mod source;
mod sparse;
mod update;

#[cfg(test)]
mod official;
#[cfg(test)]
mod tests;

pub use error::FabricateError;
pub use porep::{PorepSector, porep};
pub use post::{PostSector, PostSectors, window, window_sectors, winning};
pub use update::{UpdateSector, update};

use crate::{ProofKind, ProofRequest, SectorSize};
use filecoin_hashers::poseidon::PoseidonDomain;

/// What a fabricated sector depends on, apart from its kind and size. Equal options give equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// From this number all data, labels, siblings and randomness are drawn.
    pub seed: u64,
    /// The number of the miner.
    pub miner: u64,
    /// The number of the sector; of the first one in a window partition, whose sectors have consecutive numbers.
    pub sector: u64,
    /// How many sectors a window partition has; a full partition if not given.
    pub window_sectors: Option<usize>,
    /// The index of the window partition in its deadline.
    pub window_partition: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 0,
            miner: 1000,
            sector: 1,
            window_sectors: None,
            window_partition: 0,
        }
    }
}

/// A fabricated sector (or partition of sectors) of any kind.
#[derive(Clone, Debug)]
pub enum Fabricated {
    /// A proof of replication.
    Porep(PorepSector),
    /// A winning or window proof of space-time.
    Post(PostSectors),
    /// An empty-sector update.
    Update(UpdateSector),
}

/// Fabricates the input of a proof of `kind` at `size`.
pub fn fabricate(
    kind: ProofKind,
    size: SectorSize,
    options: &Options,
) -> Result<Fabricated, FabricateError> {
    Ok(match kind {
        ProofKind::Porep => Fabricated::Porep(porep(size, options)?),
        ProofKind::Winning => Fabricated::Post(winning(size, options)?),
        ProofKind::Window => Fabricated::Post(window(size, options)?),
        ProofKind::Update => Fabricated::Update(update(size, options)?),
    })
}

impl From<Fabricated> for ProofRequest {
    fn from(fabricated: Fabricated) -> Self {
        match fabricated {
            Fabricated::Porep(sector) => sector.into(),
            Fabricated::Post(sectors) => sectors.into(),
            Fabricated::Update(sector) => sector.into(),
        }
    }
}

/// The little-endian bytes of a commitment.
fn domain_bytes(domain: PoseidonDomain) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(domain.as_ref());
    bytes
}
