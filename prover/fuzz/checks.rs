//! What must hold for any bytes: no panic, and what is accepted is written back the same.
//! Both the fuzz targets and the test that replays the corpus include this file.

use cuzk_prover::{Params, Proof, SubgroupCheck, VerifyingKey};

/// Parses a parameter file; says whether it is accepted.
#[allow(dead_code)]
pub fn params(bytes: &[u8]) -> bool {
    let Ok(params) = Params::from_bytes("fuzz", bytes, SubgroupCheck::Full) else {
        return false;
    };
    let mut written = Vec::new();
    params
        .write_to(&mut written)
        .expect("accepted parameters can be written");
    assert_eq!(written, bytes);
    assert_eq!(params.counts().file_bytes(), bytes.len() as u64);
    true
}

/// Parses a verifying key; says whether it is accepted.
#[allow(dead_code)]
pub fn verifying_key(bytes: &[u8]) -> bool {
    let Ok(key) = VerifyingKey::from_bytes("fuzz", bytes) else {
        return false;
    };
    assert_eq!(
        key.to_bytes().expect("an accepted key can be written"),
        bytes
    );
    true
}

/// Parses a proof; says whether it is accepted.
#[allow(dead_code)]
pub fn proof(bytes: &[u8]) -> bool {
    let Ok(proof) = Proof::from_bytes(bytes) else {
        return false;
    };
    assert_eq!(proof.to_bytes(), bytes);
    true
}
