//! The parameter folder: where it is, how its files are named, and the small files in it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use filecoin_hashers::sha256::Sha256Hasher;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::parameter_cache::{CacheableParameters, VERSION, parameter_cache_dir};
use storage_proofs_porep::stacked::{StackedCircuit, StackedCompound};
use storage_proofs_post::fallback::{FallbackPoStCircuit, FallbackPoStCompound};
use storage_proofs_update::{EmptySectorUpdateCompound, PublicParams};

use crate::circuit::blank_seal_proof;
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::{CircuitId, ProofKind, SectorSize};
use crate::shape::{Shape, by_shape, porep_params, post_params, window_config, winning_config};

/// The folder that the official verifiers read parameters from: `FIL_PROOFS_PARAMETER_CACHE`, or
/// `/var/tmp/filecoin-proof-parameters`.
///
/// storage-proofs reads its settings (environment, and `rust-fil-proofs.config.toml` in the working
/// folder) **once**, on first use by any of its functions, and keeps them for the life of the
/// process. Set the variable before the process starts or before anything else of this crate is
/// called. [`crate::Request::verify`] needs a circuit's `.vk` there; where only the `.params` file
/// exists, storage-proofs writes the `.vk` from it. It also expects the `.meta` file beside them,
/// see [`CircuitId::write_meta`].
///
/// # Errors
/// storage-proofs' settings cannot be read.
pub fn params_dir() -> Result<PathBuf, RequestError> {
    guarded("reading storage-proofs' settings", || {
        Ok::<_, String>(parameter_cache_dir())
    })
}

impl CircuitId {
    /// The name of this circuit's parameter files without the extension, from storage-proofs' own
    /// identifier: `v28-<prefix>-<sha256 of the identifier>`.
    ///
    /// # Errors
    /// Only where storage-proofs fails to set up its own constants.
    pub fn params_file_stem(self) -> Result<String, RequestError> {
        by_shape!(self.size, Tree => identifier::<Tree>(self.kind, self.size))
            .map(|identifier| format!("v{VERSION}-{identifier}"))
    }

    /// The path of one of this circuit's files in `dir`; `extension` is `params`, `vk` or `meta`.
    ///
    /// # Errors
    /// As [`CircuitId::params_file_stem`].
    pub fn params_path(self, dir: &Path, extension: &str) -> Result<PathBuf, RequestError> {
        Ok(dir.join(format!("{}.{extension}", self.params_file_stem()?)))
    }

    /// Writes this circuit's `.meta` file, `{"sector_size":N}`, into `dir`; returns its path.
    ///
    /// The file appears under its name only when it is complete.
    ///
    /// # Errors
    /// The folder does not exist or cannot be written.
    pub fn write_meta(self, dir: &Path) -> Result<PathBuf, RequestError> {
        self.write_meta_text(dir, &format!("{{\"sector_size\":{}}}", self.size.bytes()))
    }

    /// As [`CircuitId::write_meta`], for parameters whose secrets somebody knows: the file says
    /// `"test":true`, which storage-proofs ignores and [`CircuitId::has_test_params`] reads.
    ///
    /// # Errors
    /// As [`CircuitId::write_meta`].
    pub fn write_test_meta(self, dir: &Path) -> Result<PathBuf, RequestError> {
        let size = self.size.bytes();
        self.write_meta_text(dir, &format!("{{\"sector_size\":{size},\"test\":true}}"))
    }

    /// Whether this circuit's `.meta` file in `dir` says that the parameters are for tests. A missing
    /// or unreadable file does not say so.
    ///
    /// # Errors
    /// As [`CircuitId::params_file_stem`].
    pub fn has_test_params(self, dir: &Path) -> Result<bool, RequestError> {
        let path = self.params_path(dir, "meta")?;
        let meta = std::fs::read(path).ok();
        let meta = meta.and_then(|bytes| serde_json::from_slice::<Meta>(&bytes).ok());
        Ok(meta.is_some_and(|meta| meta.test))
    }

    fn write_meta_text(self, dir: &Path, text: &str) -> Result<PathBuf, RequestError> {
        let path = self.params_path(dir, "meta")?;
        let mut file = tempfile::NamedTempFile::new_in(dir).map_err(RequestError::io(dir))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(RequestError::io(&path))?;
        file.persist(&path)
            .map_err(|error| RequestError::io(&path)(error.error))?;
        Ok(path)
    }
}

/// What is read of a `.meta` file.
#[derive(serde::Deserialize)]
struct Meta {
    #[serde(default)]
    test: bool,
}

/// storage-proofs' cache identifier of a circuit.
fn identifier<T: Shape>(kind: ProofKind, size: SectorSize) -> Result<String, RequestError> {
    const ACTION: &str = "naming the parameter files";
    match kind {
        ProofKind::Porep => {
            let params = porep_params::<T>(&blank_seal_proof(size).as_v1_config())?;
            guarded(ACTION, || {
                Ok::<_, String>(<StackedCompound<T, Sha256Hasher> as CacheableParameters<
                    StackedCircuit<T, Sha256Hasher>,
                    _,
                >>::cache_identifier(&params))
            })
        }
        ProofKind::Winning | ProofKind::Window => {
            let config = match kind {
                ProofKind::Winning => winning_config(size),
                _ => window_config(size, ApiVersion::V1_2_0)?,
            };
            let params = post_params::<T>(&config)?;
            guarded(ACTION, || {
                Ok::<_, String>(<FallbackPoStCompound<T> as CacheableParameters<
                    FallbackPoStCircuit<T>,
                    _,
                >>::cache_identifier(&params))
            })
        }
        ProofKind::Update => guarded(ACTION, || {
            let params = PublicParams::from_sector_size(size.bytes());
            Ok::<_, String>(EmptySectorUpdateCompound::<T>::cache_identifier(&params))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_of_32_gib_circuits_are_those_that_the_network_publishes() {
        let expected = [
            (
                ProofKind::Porep,
                "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820",
            ),
            (
                ProofKind::Window,
                "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-8-0-0377ded656c6f524f1618760bffe4e0a1c51d5a70c4509eedae8a27555733edc",
            ),
            (
                ProofKind::Winning,
                "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-8-0-559e581f022bb4e4ec6e719e563bf0e026ad6de42e56c18714a2c692b1b88d7e",
            ),
            (
                ProofKind::Update,
                "v28-empty-sector-update-merkletree-poseidon_hasher-8-8-0-3b7f44a9362e3985369454947bc94022e118211e49fd672d52bec1cbfd599d18",
            ),
        ];
        for (kind, stem) in expected {
            let id = CircuitId::new(kind, SectorSize::Gib32);
            assert_eq!(id.params_file_stem().unwrap(), stem);
        }
    }

    #[test]
    fn every_circuit_has_published_parameters_under_its_stem() {
        use storage_proofs_core::parameter_cache::get_parameter_data_from_id;
        let mut stems = std::collections::BTreeSet::new();
        for id in CircuitId::all() {
            let stem = id.params_file_stem().unwrap();
            let file = format!("{stem}.params");
            let published = get_parameter_data_from_id(&file);
            assert_eq!(
                published.map(|data| data.sector_size),
                Some(id.size.bytes()),
                "{id}"
            );
            assert!(stems.insert(stem), "{id}");
        }
    }

    #[test]
    fn a_meta_file_holds_the_sector_size_and_a_missing_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let id = CircuitId::new(ProofKind::Update, SectorSize::Mib8);
        let path = id.write_meta(dir.path()).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            r#"{"sector_size":8388608}"#
        );
        assert!(path.extension().is_some_and(|e| e == "meta"));
        assert!(!id.has_test_params(dir.path()).unwrap());
        id.write_test_meta(dir.path()).unwrap();
        assert!(id.has_test_params(dir.path()).unwrap());
        let missing = dir.path().join("missing");
        assert!(!id.has_test_params(&missing).unwrap());
        let error = id.write_meta(&missing).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    }
}
