//! What the fuzz targets and the corpus replay do with an input; neither may panic.

#![allow(
    dead_code,
    reason = "each user of this file calls one of its functions"
)]

use cuzk_filecoin::{ProofKind, ProofRequest, Request, SectorSize};

/// Parses a request file of any format; what is accepted must have circuits.
pub fn file(data: &[u8]) {
    use_request(Request::from_file_bytes(data));
}

/// Parses a bincode vanilla proof: the first byte picks the kind, the second the sector size.
pub fn vanilla(data: &[u8]) {
    let [kind, size, proof @ ..] = data else {
        return;
    };
    let kinds = [ProofKind::Winning, ProofKind::Window, ProofKind::Update];
    let request = ProofRequest {
        sector_size: SectorSize::ALL[usize::from(*size) % SectorSize::ALL.len()].bytes(),
        miner_id: 1000,
        sector_number: 1,
        vanilla_proofs: vec![proof.to_vec()],
        randomness: vec![1; 32],
        comm_r_old: vec![1; 32],
        comm_r_new: vec![2; 32],
        comm_d_new: vec![3; 32],
        ..ProofRequest::new(kinds[usize::from(*kind) % kinds.len()])
    };
    use_request(Request::parse(&request));
}

fn use_request(request: Result<Request, cuzk_filecoin::RequestError>) {
    let Ok(request) = request else { return };
    for k in 0..request.partitions() {
        let _ = request.circuit(k);
        let _ = request.public_inputs(k);
    }
}
