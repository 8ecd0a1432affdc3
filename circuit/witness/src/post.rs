//! The winning and window proof-of-space-time circuit.

use crate::error::WitnessError;
use crate::poseidon::Poseidons;
use crate::tree::{Hasher, Path, path};
use crate::{Scalar, Witness};
use rayon::prelude::*;

/// How many sectors are computed before they are appended: bounds the memory beside the witness.
const BATCH: usize = 32;

/// The private inputs of one sector.
#[derive(Clone, Debug)]
pub struct Sector {
    /// The replica's commitment, a public input.
    pub comm_r: Scalar,
    /// The column tree's root.
    pub comm_c: Scalar,
    /// The replica tree's root.
    pub comm_r_last: Scalar,
    /// The challenged leaves and their places in the replica tree.
    pub openings: Vec<(Scalar, Path)>,
}

/// Appends the variables of `slots` sectors to `out`, whose first input is the constant one.
///
/// `sector` yields each of the first `sectors`, in any order and from any thread; the last of them
/// fills the slots that remain.
///
/// # Errors
/// The inputs are not of the circuit's shape; `out` is then incomplete.
pub fn append(
    slots: usize,
    sectors: usize,
    sector: impl Fn(usize) -> Sector + Sync,
    poseidons: &Poseidons,
    out: &mut Witness,
) -> Result<(), WitnessError> {
    let sectors = sectors.min(slots);
    for first in (0..sectors).step_by(BATCH) {
        let parts = (first..sectors.min(first + BATCH))
            .into_par_iter()
            .map(|i| sector(i).part(poseidons))
            .collect::<Result<Vec<_>, _>>()?;
        for part in &parts {
            append_part(part, out);
        }
        if let Some(last) = parts.last().filter(|_| first + BATCH >= sectors) {
            (sectors..slots).for_each(|_| append_part(last, out));
        }
    }
    Ok(())
}

fn append_part(part: &Witness, out: &mut Witness) {
    out.inputs.extend_from_slice(&part.inputs);
    out.aux.append(&part.aux);
}

impl Sector {
    fn part(&self, poseidons: &Poseidons) -> Result<Witness, WitnessError> {
        let mut out = Witness::default();
        for value in [self.comm_r_last, self.comm_c, self.comm_r] {
            out.aux.push(value);
        }
        out.inputs.push(self.comm_r);
        let roots = [self.comm_c, self.comm_r_last];
        poseidons.two.hash(&roots, &mut out.aux)?;
        let tree = Hasher::Poseidon(poseidons);
        for (leaf, opening) in &self.openings {
            out.aux.push(*leaf);
            path(tree, *leaf, opening, &mut out)?;
        }
        Ok(out)
    }
}
