//! A sealed 2 KiB sector, made once per test binary.

use std::sync::OnceLock;

use cuzk_filecoin::seal::{SealOptions, SealedSector, seal};
use cuzk_filecoin::{ProofKind, ProofRequest, SectorSize};
use tempfile::TempDir;

/// The sector and the folder that it lives in.
pub struct Fixture {
    pub sector: SealedSector,
    pub requests: Vec<(ProofKind, ProofRequest)>,
    _dir: TempDir,
}

/// The sector of this test binary.
pub fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let sector = seal(
            &dir.path().join("sector"),
            SealOptions::new(SectorSize::Kib2),
        )
        .unwrap();
        let requests = ProofKind::ALL
            .into_iter()
            .map(|kind| (kind, sector.request(kind).unwrap()))
            .collect();
        Fixture {
            sector,
            requests,
            _dir: dir,
        }
    })
}

impl Fixture {
    /// The request of one kind.
    pub fn request(&self, kind: ProofKind) -> ProofRequest {
        let found = self.requests.iter().find(|(k, _)| *k == kind);
        found.unwrap().1.clone()
    }
}
