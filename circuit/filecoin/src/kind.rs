//! Proof kinds, sector sizes and circuit identities: what a proving job is about, by name.

use std::fmt;
use std::str::FromStr;

use crate::error::NameError;

/// The four statements of the Filecoin protocol that are proved with Groth16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofKind {
    /// Proof of replication (the second phase of a sector's commit).
    Porep,
    /// Winning proof of space-time: one sector, 66 challenges.
    Winning,
    /// Window proof of space-time: one partition of a deadline's sectors.
    Window,
    /// Empty sector update ("snap deals"): new data encoded into a sealed sector.
    Update,
}

impl ProofKind {
    /// Every kind, in the order of this enumeration.
    pub const ALL: [Self; 4] = [Self::Porep, Self::Winning, Self::Window, Self::Update];

    /// The first part of a circuit's name, e.g. `wpost` in `wpost-32g`.
    fn circuit_prefix(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::Winning => "winning",
            Self::Window => "wpost",
            Self::Update => "snap",
        }
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Porep => "porep",
            Self::Winning => "winning",
            Self::Window => "window",
            Self::Update => "update",
        })
    }
}

impl FromStr for ProofKind {
    type Err = NameError;

    /// Accepts `porep`, `winning`, `window`, `update` and the circuit names' `wpost` and `snap`.
    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.to_string() == name || kind.circuit_prefix() == name)
            .ok_or_else(|| NameError::ProofKind(name.to_owned()))
    }
}

/// A sector size for which the network publishes parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2¹¹ bytes: tests and local networks.
    Kib2,
    /// 2²³ bytes: tests and local networks.
    Mib8,
    /// 2²⁹ bytes: tests and local networks.
    Mib512,
    /// 2³⁵ bytes: the main network.
    Gib32,
    /// 2³⁶ bytes: the main network.
    Gib64,
}

impl SectorSize {
    /// Every size, smallest first.
    pub const ALL: [Self; 5] = [
        Self::Kib2,
        Self::Mib8,
        Self::Mib512,
        Self::Gib32,
        Self::Gib64,
    ];

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Kib2 => 1 << 11,
            Self::Mib8 => 1 << 23,
            Self::Mib512 => 1 << 29,
            Self::Gib32 => 1 << 35,
            Self::Gib64 => 1 << 36,
        }
    }

    /// The size in 32-byte nodes, i.e. the number of leaves of the sector's trees.
    pub const fn nodes(self) -> usize {
        (self.bytes() / 32) as usize
    }

    /// The size with that many bytes, if it is one of the published ones.
    pub fn from_bytes(bytes: u64) -> Result<Self, NameError> {
        Self::ALL
            .into_iter()
            .find(|size| size.bytes() == bytes)
            .ok_or_else(|| NameError::SectorSize(bytes.to_string()))
    }

    /// The last part of a circuit's name, e.g. `32g` in `porep-32g`.
    fn circuit_suffix(self) -> &'static str {
        match self {
            Self::Kib2 => "2k",
            Self::Mib8 => "8m",
            Self::Mib512 => "512m",
            Self::Gib32 => "32g",
            Self::Gib64 => "64g",
        }
    }

    /// The size inside the names of storage-proofs' registered proofs.
    pub(crate) fn registered_name(self) -> &'static str {
        match self {
            Self::Kib2 => "2KiB",
            Self::Mib8 => "8MiB",
            Self::Mib512 => "512MiB",
            Self::Gib32 => "32GiB",
            Self::Gib64 => "64GiB",
        }
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.registered_name())
    }
}

impl FromStr for SectorSize {
    type Err = NameError;

    /// Accepts `32GiB`, `32g` (either in any case) and a number of bytes.
    fn from_str(name: &str) -> Result<Self, NameError> {
        if let Ok(bytes) = name.parse::<u64>() {
            return Self::from_bytes(bytes);
        }
        Self::ALL
            .into_iter()
            .find(|size| {
                name.eq_ignore_ascii_case(size.registered_name())
                    || name.eq_ignore_ascii_case(size.circuit_suffix())
            })
            .ok_or_else(|| NameError::SectorSize(name.to_owned()))
    }
}

/// One circuit, hence one parameter file: a proof kind at a sector size.
///
/// Shown and parsed by the names that clients use: `porep-32g`, `wpost-32g`, `winning-32g`,
/// `snap-32g`, and so on with `2k`, `8m`, `512m`, `64g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// What is proved.
    pub kind: ProofKind,
    /// The size of the sectors it is proved about.
    pub size: SectorSize,
}

impl CircuitId {
    /// The circuit of `kind` at `size`.
    pub const fn new(kind: ProofKind, size: SectorSize) -> Self {
        Self { kind, size }
    }

    /// Whether sectors of this size hold real data: their proofs need the network's own parameters.
    pub const fn is_for_production(self) -> bool {
        self.size.bytes() >= 512 << 20
    }

    /// All twenty circuits.
    pub fn all() -> impl Iterator<Item = Self> {
        ProofKind::ALL.into_iter().flat_map(|kind| {
            SectorSize::ALL
                .into_iter()
                .map(move |size| Self { kind, size })
        })
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}",
            self.kind.circuit_prefix(),
            self.size.circuit_suffix()
        )
    }
}

impl FromStr for CircuitId {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let unknown = || NameError::CircuitId(name.to_owned());
        let (kind, size) = name.split_once('-').ok_or_else(unknown)?;
        Ok(Self {
            kind: kind.parse().map_err(|_| unknown())?,
            size: SectorSize::ALL
                .into_iter()
                .find(|candidate| candidate.circuit_suffix() == size)
                .ok_or_else(unknown)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_circuit_id_survives_display_and_parse() {
        for id in CircuitId::all() {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(CircuitId::all().count(), 20);
    }

    #[test]
    fn the_names_of_the_wire_contract_are_known() {
        let id = |kind, size| Ok(CircuitId::new(kind, size));
        assert_eq!("porep-32g".parse(), id(ProofKind::Porep, SectorSize::Gib32));
        assert_eq!(
            "wpost-64g".parse(),
            id(ProofKind::Window, SectorSize::Gib64)
        );
        assert_eq!(
            "winning-512m".parse(),
            id(ProofKind::Winning, SectorSize::Mib512)
        );
        assert_eq!("snap-8m".parse(), id(ProofKind::Update, SectorSize::Mib8));
    }

    #[test]
    fn sector_sizes_are_read_in_all_their_spellings() {
        for text in ["2KiB", "2kib", "2k", "2048"] {
            assert_eq!(text.parse(), Ok(SectorSize::Kib2), "{text}");
        }
        for size in SectorSize::ALL {
            assert_eq!(size.to_string().parse(), Ok(size));
            assert_eq!(SectorSize::from_bytes(size.bytes()), Ok(size));
        }
    }

    #[test]
    fn unknown_names_are_refused_and_quoted() {
        for name in [
            "",
            "porep",
            "porep-",
            "porep-16g",
            "porep-32G ",
            "post-32g",
            "-32g",
        ] {
            let error = name.parse::<CircuitId>().unwrap_err();
            assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        }
        assert!("3k".parse::<SectorSize>().is_err());
        assert!("18446744073709551616".parse::<SectorSize>().is_err());
        assert!("Porep".parse::<ProofKind>().is_err());
    }
}
