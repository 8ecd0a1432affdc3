//! Points that several test programs need.

/// The encoding of a point of the curve that is not in the subgroup.
pub fn outside_of_subgroup() -> [u8; 96] {
    (1u8..)
        .find_map(|x| {
            let mut bytes = [0u8; 48];
            (bytes[0], bytes[47]) = (0x80, x);
            let point = Option::<blstrs::G1Affine>::from(
                blstrs::G1Affine::from_compressed_unchecked(&bytes),
            )?;
            (!bool::from(point.is_torsion_free())).then(|| point.to_uncompressed())
        })
        .unwrap()
}
