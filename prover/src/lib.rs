//! Groth16 over BLS12-381: parameters, proofs, verification.

pub mod params;
mod proof;
mod verify;
mod verifying_key;

pub use params::{Counts, Params, ParamsError, PointFault, Points, RawSections, SubgroupCheck};
pub use proof::{Proof, ProofError};
pub use verify::{PreparedVerifyingKey, VerifyError};
pub use verifying_key::VerifyingKey;

mod msm {
    //! Sums of multiples of points.
    use blstrs::{G1Affine, G1Projective, Scalar};

    /// Σ scalars_i · bases_i.
    pub fn g1(bases: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
        bases
            .iter()
            .zip(scalars)
            .map(|(base, scalar)| base * scalar)
            .sum()
    }
}
