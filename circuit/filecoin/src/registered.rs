//! The network's numbers for proof types, and what they say about size, variant and challenges.

use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_core::api_version::ApiVersion;

use crate::error::RequestError;
use crate::kind::{ProofKind, SectorSize};

/// The seal proof variants that share one circuit per sector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealVariant {
    /// The first version.
    V1,
    /// With the corrected graph seed.
    V1_1,
    /// Challenges from a precomputed synthetic set.
    Synthetic,
    /// Non-interactive: no seed, more challenges, 13 or 126 partitions.
    NonInteractive,
}

impl SealVariant {
    /// Every variant, in the order of the network's numbers.
    pub const ALL: [Self; 4] = [Self::V1, Self::V1_1, Self::Synthetic, Self::NonInteractive];
}

/// storage-proofs' name for a seal proof.
pub(crate) fn seal_proof(size: SectorSize, variant: SealVariant) -> RegisteredSealProof {
    use RegisteredSealProof as P;
    use SealVariant as V;
    use SectorSize as S;
    match (variant, size) {
        (V::V1, S::Kib2) => P::StackedDrg2KiBV1,
        (V::V1, S::Mib8) => P::StackedDrg8MiBV1,
        (V::V1, S::Mib512) => P::StackedDrg512MiBV1,
        (V::V1, S::Gib32) => P::StackedDrg32GiBV1,
        (V::V1, S::Gib64) => P::StackedDrg64GiBV1,
        (V::V1_1, S::Kib2) => P::StackedDrg2KiBV1_1,
        (V::V1_1, S::Mib8) => P::StackedDrg8MiBV1_1,
        (V::V1_1, S::Mib512) => P::StackedDrg512MiBV1_1,
        (V::V1_1, S::Gib32) => P::StackedDrg32GiBV1_1,
        (V::V1_1, S::Gib64) => P::StackedDrg64GiBV1_1,
        (V::Synthetic, S::Kib2) => P::StackedDrg2KiBV1_1_Feat_SyntheticPoRep,
        (V::Synthetic, S::Mib8) => P::StackedDrg8MiBV1_1_Feat_SyntheticPoRep,
        (V::Synthetic, S::Mib512) => P::StackedDrg512MiBV1_1_Feat_SyntheticPoRep,
        (V::Synthetic, S::Gib32) => P::StackedDrg32GiBV1_1_Feat_SyntheticPoRep,
        (V::Synthetic, S::Gib64) => P::StackedDrg64GiBV1_1_Feat_SyntheticPoRep,
        (V::NonInteractive, S::Kib2) => P::StackedDrg2KiBV1_2_Feat_NonInteractivePoRep,
        (V::NonInteractive, S::Mib8) => P::StackedDrg8MiBV1_2_Feat_NonInteractivePoRep,
        (V::NonInteractive, S::Mib512) => P::StackedDrg512MiBV1_2_Feat_NonInteractivePoRep,
        (V::NonInteractive, S::Gib32) => P::StackedDrg32GiBV1_2_Feat_NonInteractivePoRep,
        (V::NonInteractive, S::Gib64) => P::StackedDrg64GiBV1_2_Feat_NonInteractivePoRep,
    }
}

/// The sector size and variant of a seal proof.
pub(crate) fn seal_parts(proof: RegisteredSealProof) -> (SectorSize, SealVariant) {
    let number = proof as usize;
    // storage-proofs numbers the five sizes of a variant consecutively and never renumbers.
    (
        SectorSize::ALL[number % SectorSize::ALL.len()],
        SealVariant::ALL[number / SectorSize::ALL.len() % SealVariant::ALL.len()],
    )
}

/// What a request's `registered_proof` number says for its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// A seal proof.
    Seal(SectorSize, SealVariant),
    /// A winning proof.
    Winning(SectorSize),
    /// A window proof, with the rule that derives its challenges.
    Window(SectorSize, ApiVersion),
    /// A sector update.
    Update(SectorSize),
}

impl Registered {
    /// Decodes the network's number for a proof of `kind`.
    pub(crate) fn from_number(kind: ProofKind, number: u64) -> Result<Self, RequestError> {
        let unknown = |range: &str| {
            RequestError::mismatch(
                "registered_proof",
                format!("a {kind} proof type ({range})"),
                number,
            )
        };
        let index = usize::try_from(number).map_err(|_| unknown("a small number"))?;
        let size = SectorSize::ALL[index % SectorSize::ALL.len()];
        match (kind, index / SectorSize::ALL.len()) {
            (ProofKind::Porep, group @ 0..=3) => Ok(Self::Seal(size, SealVariant::ALL[group])),
            (ProofKind::Porep, _) => Err(unknown("0 to 19")),
            (ProofKind::Winning, 0) => Ok(Self::Winning(size)),
            (ProofKind::Winning, _) => Err(unknown("0 to 4")),
            (ProofKind::Window, 1) => Ok(Self::Window(size, ApiVersion::V1_0_0)),
            (ProofKind::Window, 2) => Ok(Self::Window(size, ApiVersion::V1_2_0)),
            (ProofKind::Window, _) => Err(unknown("5 to 14")),
            (ProofKind::Update, 0) => Ok(Self::Update(size)),
            (ProofKind::Update, _) => Err(unknown("0 to 4")),
        }
    }

    /// The sector size that the number names.
    pub(crate) fn size(self) -> SectorSize {
        match self {
            Self::Seal(size, _)
            | Self::Winning(size)
            | Self::Window(size, _)
            | Self::Update(size) => size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seal_proofs_and_their_parts_agree_with_storage_proofs() {
        for size in SectorSize::ALL {
            for variant in SealVariant::ALL {
                let proof = seal_proof(size, variant);
                assert_eq!(u64::from(proof.sector_size()), size.bytes());
                assert_eq!(seal_parts(proof), (size, variant));
                let number = proof.as_v1_config().porep_id[0].into();
                assert_eq!(
                    Registered::from_number(ProofKind::Porep, number).unwrap(),
                    Registered::Seal(size, variant)
                );
            }
        }
    }

    #[test]
    fn numbers_of_another_kind_are_refused() {
        assert!(Registered::from_number(ProofKind::Porep, 20).is_err());
        assert!(Registered::from_number(ProofKind::Winning, 5).is_err());
        assert!(Registered::from_number(ProofKind::Window, 4).is_err());
        assert!(Registered::from_number(ProofKind::Window, 15).is_err());
        assert!(Registered::from_number(ProofKind::Update, u64::MAX).is_err());
        assert_eq!(
            Registered::from_number(ProofKind::Window, 13)
                .unwrap()
                .size(),
            SectorSize::Gib32
        );
    }
}
