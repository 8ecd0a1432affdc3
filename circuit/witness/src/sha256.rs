//! SHA-256 over words of boolean views.

use crate::word::Word;
use cuzk_circuit::Bitmap;

/// More bits than a compression allocates.
const BITS_PER_BLOCK: usize = 26_624;

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUND: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// Hashes whole words; appends what the circuit allocates to `bits`.
///
/// `message` is padded in place. The first word holds the first 32 bits of the message, the first
/// of them as its highest bit.
pub fn sha256(message: &mut Vec<Word>, bits: &mut Bitmap) -> [Word; 8] {
    pad(message);
    bits.reserve(message.len() / 16 * BITS_PER_BLOCK);
    let (blocks, _) = message.as_chunks::<16>();
    blocks
        .iter()
        .fold(INITIAL.map(Word::constant), |state, block| {
            compress(block, state, bits)
        })
}

/// Appends a one bit, zeros and the length in bits up to a multiple of 512 bits.
fn pad(message: &mut Vec<Word>) {
    let length = message.len() as u64 * 32;
    message.push(Word::constant(1 << 31));
    while message.len() % 16 != 14 {
        message.push(Word::constant(0));
    }
    message.push(Word::constant((length >> 32) as u32));
    message.push(Word::constant(length as u32));
}

/// One compression of `block` into `state`.
pub fn compress(block: &[Word; 16], state: [Word; 8], bits: &mut Bitmap) -> [Word; 8] {
    let schedule = extend(block, bits);
    let [_, mut b, mut c, mut d, _, mut f, mut g, mut h] = state;
    // The sums for a and e are allocated only where they are used, in the round that follows.
    let mut next: Option<([Word; 7], [Word; 6])> = None;
    for (&word, &constant) in schedule.iter().zip(&ROUND) {
        let e = next.map_or(state[4], |(_, parts)| Word::sum(&parts, bits));
        let s1 = xor3(e.rotr(6), e.rotr(11), e.rotr(25), bits);
        let ch = Word::ch(e, f, g, bits);
        let a = next.map_or(state[0], |(parts, _)| Word::sum(&parts, bits));
        let s0 = xor3(a.rotr(2), a.rotr(13), a.rotr(22), bits);
        let maj = Word::maj(a, b, c, bits);
        let k = Word::constant(constant);
        next = Some(([h, s1, ch, k, word, s0, maj], [h, s1, ch, k, word, d]));
        (h, g, f, d, c, b) = (g, f, e, c, b, a);
    }
    let Some(([p, q, r, s, t, u, v], [w, x, y, z, i, j])) = next else {
        return state;
    };
    let [h0, h1, h2, h3, h4, h5, h6, h7] = state;
    [
        Word::sum(&[p, q, r, s, t, u, v, h0], bits),
        Word::sum(&[h1, b], bits),
        Word::sum(&[h2, c], bits),
        Word::sum(&[h3, d], bits),
        Word::sum(&[w, x, y, z, i, j, h4], bits),
        Word::sum(&[h5, f], bits),
        Word::sum(&[h6, g], bits),
        Word::sum(&[h7, h], bits),
    ]
}

/// The message schedule.
fn extend(block: &[Word; 16], bits: &mut Bitmap) -> [Word; 64] {
    let mut w = [Word::constant(0); 64];
    w[..16].copy_from_slice(block);
    for i in 16..64 {
        let (x, y) = (w[i - 15], w[i - 2]);
        let s0 = xor3(x.rotr(7), x.rotr(18), x.shr(3), bits);
        let s1 = xor3(y.rotr(17), y.rotr(19), y.shr(10), bits);
        w[i] = Word::sum(&[w[i - 16], s0, w[i - 7], s1], bits);
    }
    w
}

#[inline]
fn xor3(x: Word, y: Word, z: Word, bits: &mut Bitmap) -> Word {
    x.xor(y, bits).xor(z, bits)
}
