//! Miner ids as the 32-byte prover ids that enter proofs.

/// The prover id of the miner with actor id `id`: its unsigned LEB128 bytes, padded with zeros.
///
/// That is the payload of the id address `f0<id>`, e.g. `e8 07 00 …` for `f01000`.
pub fn prover_id(id: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut rest = id;
    // Ten groups of seven bits hold any u64, so the array is never full.
    for byte in &mut bytes {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_addresses_have_their_known_payloads() {
        assert_eq!(prover_id(1000)[..3], [0xe8, 0x07, 0]);
        assert_eq!(prover_id(0), [0; 32]);
        assert_eq!(prover_id(127)[..2], [0x7f, 0]);
        assert_eq!(prover_id(128)[..3], [0x80, 0x01, 0]);
        assert_eq!(
            prover_id(u64::MAX)[..11],
            [255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]
        );
    }
}
