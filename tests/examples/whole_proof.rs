//! Proofs of a Filecoin circuit by bellperson and by this prover in one run: the same bytes, and the ratio of
//! the times.
//!
//! `cargo run --release -p cuzk-tests --example whole_proof -- [porep|winning|window|update] [PARAMS_DIR]`
//!
//! The parameters must be in the folder (`cuzk params generate`); without one, Filecoin's folder is used.

use std::error::Error;
use std::path::PathBuf;

use cuzk_filecoin::seal::{SealOptions, seal};
use cuzk_filecoin::{CircuitId, ProofKind, Request, SectorSize, params_dir};
use cuzk_tests::prove_both;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind: ProofKind = arguments.next().as_deref().unwrap_or("porep").parse()?;
    let dir = arguments
        .next()
        .map_or_else(params_dir, |dir| Ok(PathBuf::from(dir)))?;
    let path = CircuitId::new(kind, SectorSize::Kib2).params_path(&dir, "params")?;
    let sector = tempfile::tempdir()?;
    let sealed = seal(
        &sector.path().join("sector"),
        SealOptions::new(SectorSize::Kib2),
    )?;
    let both = prove_both(&Request::parse(&sealed.request(kind)?)?, &path)?;
    let (ours, peer) = (both.our_time.as_secs_f64(), both.peer_time.as_secs_f64());
    let same = both.ours == both.peers;
    println!(
        "{kind} 2KiB: bellperson {peer:.2} s, this prover {ours:.2} s, {:.3} of its time; same bytes: {same}",
        ours / peer
    );
    if same {
        Ok(())
    } else {
        Err("the proofs differ".into())
    }
}
