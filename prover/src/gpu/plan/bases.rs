//! The five base sets of a parameter file.

use std::fmt;

use crate::Counts;

/// A section of the parameters that sums run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseSet {
    /// [`crate::Points::h`]
    H,
    /// [`crate::Points::l`]
    L,
    /// [`crate::Points::a`]
    A,
    /// [`crate::Points::b_g1`]
    BG1,
    /// [`crate::Points::b_g2`]
    BG2,
}

impl BaseSet {
    /// All five.
    pub const ALL: [BaseSet; 5] = [
        BaseSet::H,
        BaseSet::L,
        BaseSet::A,
        BaseSet::BG1,
        BaseSet::BG2,
    ];

    /// The name in the parameters.
    pub fn name(self) -> &'static str {
        match self {
            BaseSet::H => "h",
            BaseSet::L => "l",
            BaseSet::A => "a",
            BaseSet::BG1 => "b_g1",
            BaseSet::BG2 => "b_g2",
        }
    }

    /// Bytes of a point on the device.
    pub fn point_bytes(self) -> u64 {
        match self {
            BaseSet::BG2 => 192,
            _ => 96,
        }
    }

    /// Bytes of the set on the device.
    pub fn bytes(self, counts: &Counts) -> u64 {
        let points = match self {
            BaseSet::H => counts.h,
            BaseSet::L => counts.l,
            BaseSet::A => counts.a,
            BaseSet::BG1 | BaseSet::BG2 => counts.b,
        };
        self.point_bytes() * points as u64
    }
}

/// Some of the five.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaseSets(u8);

impl BaseSets {
    /// None of them.
    pub const NONE: BaseSets = BaseSets(0);
    /// All of them.
    pub const ALL: BaseSets = BaseSets(31);

    /// All 32 combinations, the largest first.
    pub fn subsets() -> impl Iterator<Item = BaseSets> {
        (0..32).rev().map(BaseSets)
    }

    /// These and one more.
    #[must_use]
    pub fn with(self, set: BaseSet) -> Self {
        BaseSets(self.0 | 1 << set as u8)
    }

    /// Whether the set is among these.
    pub fn contains(self, set: BaseSet) -> bool {
        self.0 >> set as u8 & 1 == 1
    }

    /// Whether all of `others` are among these.
    pub fn contains_all(self, others: BaseSets) -> bool {
        self.0 & others.0 == others.0
    }

    /// The sets in the order of [`BaseSet::ALL`].
    pub fn iter(self) -> impl Iterator<Item = BaseSet> {
        BaseSet::ALL
            .into_iter()
            .filter(move |&set| self.contains(set))
    }

    /// Bytes on the device.
    pub fn bytes(self, counts: &Counts) -> u64 {
        self.iter().map(|set| set.bytes(counts)).sum()
    }

    /// Those that are not among these.
    #[must_use]
    pub fn complement(self) -> Self {
        BaseSets(31 & !self.0)
    }
}

impl fmt::Display for BaseSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(BaseSet::name).collect();
        f.write_str(&if names.is_empty() {
            "none".into()
        } else {
            names.join(", ")
        })
    }
}
