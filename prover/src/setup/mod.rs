//! Parameters of a circuit from known secrets: for tests and private networks.
//!
//! Whoever knows the secrets (the [`ToxicWaste`]) can prove anything, so parameters made here are
//! no substitute for those of a ceremony. They are byte for byte the ones that bellperson's
//! `generate_parameters` makes from the same secrets.
//!
//! # What is computed
//!
//! Let uᵢ, vᵢ, wᵢ be the polynomials that take the coefficients of variable i in A, B, C on the
//! domain's points, one point a row. With the Lagrange polynomials Lⱼ of the domain,
//! uᵢ(τ) = Σⱼ Aⱼᵢ·Lⱼ(τ), so one pass over the rows, adding Lⱼ(τ) times each coefficient to its
//! variable, evaluates all of them; rows are never stored. The circuit is synthesised twice, once
//! to count its rows (the Lⱼ depend on the domain's size) and once for this pass. Memory is three
//! scalars a variable and one a row; points leave in blocks.
//!
//! A point k·G then takes one affine addition a window from a table of all multiples of the
//! window's base; for a circuit of any size that is where the time goes.
//!
//! None of this is constant time.

mod file;
mod fixed_base;
mod qap;
mod sections;
#[cfg(test)]
mod tests;
mod waste;

use crate::{Params, ParamsError, ntt::NttError};
use bellpepper_core::Circuit;
use cuzk_circuit::{CircuitError, Scalar, shape};
use qap::Evaluations;
use sections::{Memory, Sections};
use std::path::Path;
use thiserror::Error;

pub use sections::Progress;
pub use waste::ToxicWaste;

/// Why parameters could not be generated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The circuit could not be synthesised.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// The circuit has too many rows for the field.
    #[error(transparent)]
    Domain(#[from] NttError),
    /// The parameters do not fit the file format, or could not be written.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A private variable occurs in no constraint (or its polynomials cancel at τ), so any value
    /// would do for it.
    #[error("private variable {index} is unconstrained")]
    Unconstrained {
        /// Index among the private variables.
        index: usize,
    },
    /// A secret has a value that makes the parameters useless.
    #[error("the secret {secret} must not be {value}")]
    Waste {
        /// Name of the secret.
        secret: &'static str,
        /// The value it has.
        value: &'static str,
    },
    /// Two syntheses of the circuit differ.
    #[error("the circuit has {first} rows in one synthesis and {second} in the next")]
    Unstable {
        /// Rows at first.
        first: usize,
        /// Rows afterwards.
        second: usize,
    },
}

/// Generates the parameters of a circuit in memory. Witness values are not asked for, so a blank
/// circuit will do; it is synthesised twice.
///
/// # Errors
/// [`SetupError`] when synthesis fails, a private variable is unconstrained, or a secret is
/// degenerate.
pub fn generate<C>(circuit: C, waste: &ToxicWaste) -> Result<Params, SetupError>
where
    C: Circuit<Scalar> + Clone,
{
    let evaluations = evaluate(circuit, waste)?;
    let sections = Sections::new(waste, &evaluations)?;
    let mut memory = Memory::default();
    // Memory takes all points, so the only failures are those of the secrets and the circuit.
    sections
        .emit(&mut memory, &mut |_| ())
        .map_err(|source| crate::params::io_error("memory", "write", source))?;
    Ok(Params::from_parts(
        sections.verifying_key(),
        memory.points(),
    )?)
}

/// Generates the parameters of a circuit straight into a `.params` file, block by block, so that
/// the points are never all in memory. The file appears under its name when it is complete and
/// synced. `progress` is called after each block.
///
/// # Errors
/// As [`generate`], or when the file cannot be written; no file is left then.
pub fn generate_file<C>(
    circuit: C,
    waste: &ToxicWaste,
    path: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), SetupError>
where
    C: Circuit<Scalar> + Clone,
{
    let evaluations = evaluate(circuit, waste)?;
    let sections = Sections::new(waste, &evaluations)?;
    file::write(path.as_ref(), &sections, progress)
}

/// The values of all QAP polynomials at τ.
fn evaluate<C>(circuit: C, waste: &ToxicWaste) -> Result<Evaluations, SetupError>
where
    C: Circuit<Scalar> + Clone,
{
    waste.check()?;
    let shape = shape(circuit.clone())?;
    qap::evaluate(circuit, &shape, waste)
}
