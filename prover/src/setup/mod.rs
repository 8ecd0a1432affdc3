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
//! A [`CompiledCircuit`] with C is evaluated from its templates instead, in parallel and without a
//! synthesis, and its points can be made on a device: [`generate_file_from`], [`prepare`].
//!
//! A point k·G then takes one affine addition a window from a table of all multiples of the
//! window's base; for a circuit of any size that is where the time goes.
//!
//! None of this is constant time.

mod compiled;
mod device;
mod file;
mod fixed_base;
mod generator;
mod qap;
mod sections;
#[cfg(test)]
mod tests;
mod waste;

use crate::{Params, ParamsError, Points, gpu::Runtime, gpu::RuntimeError, ntt::NttError};
use bellpepper_core::Circuit;
use cuzk_circuit::{CircuitError, CompiledCircuit, CompiledError, Scalar, shape};
use device::OnDevice;
use qap::Evaluations;
use sections::{EmitError, Host, Memory, Sections};
use std::{path::Path, sync::Arc};
use thiserror::Error;

pub(crate) use fixed_base::table_of_multiples;
pub(crate) use generator::{DevicePoints, Generator};

pub use sections::Progress;
pub use waste::ToxicWaste;

/// Why parameters could not be generated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The circuit could not be synthesised.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// The compiled circuit does not serve.
    #[error(transparent)]
    Compiled(#[from] CompiledError),
    /// The device failed or has no room.
    #[error(transparent)]
    Device(#[from] RuntimeError),
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
    let points = points(&sections)?;
    Ok(Params::from_parts(sections.verifying_key(), points)?)
}

/// All points, computed on the host.
fn points(sections: &Sections<'_>) -> Result<Points, SetupError> {
    let mut memory = Memory::default();
    let outcome = sections.emit(&mut Host::new(sections), &mut memory, &mut |_| ());
    match outcome {
        Ok(()) => Ok(memory.points()),
        Err(EmitError::Setup(error)) => Err(error),
        // Memory takes all points.
        Err(EmitError::Sink(source)) => {
            Err(crate::params::io_error("memory", "write", source).into())
        }
    }
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
    file::write(
        path.as_ref(),
        &sections,
        &mut Host::new(&sections),
        progress,
    )
}

/// As [`generate_file`], from a circuit that was recorded with C. The points are computed on the
/// device behind `runtime`, or on the host if there is none; the bytes are the same.
///
/// # Errors
/// As [`generate_file`], or when C was not recorded or the device fails.
pub fn generate_file_from(
    circuit: &CompiledCircuit,
    waste: &ToxicWaste,
    runtime: Option<&Arc<dyn Runtime>>,
    path: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), SetupError> {
    waste.check()?;
    let evaluations = compiled::evaluate(circuit, waste)?;
    let sections = Sections::new(waste, &evaluations)?;
    match runtime {
        None => file::write(
            path.as_ref(),
            &sections,
            &mut Host::new(&sections),
            progress,
        ),
        Some(runtime) => {
            let mut device = OnDevice::new(runtime, waste, &sections.counts())?;
            file::write(path.as_ref(), &sections, &mut device, progress)
        }
    }
}

/// Parameters of a circuit that was recorded with C, whose points are made where they are used: in
/// the memory of each device that proves, or on the host where that is asked for. The host keeps the
/// verifying key and the points of the inputs.
///
/// # Errors
/// As [`generate`], or when C was not recorded.
pub fn prepare(circuit: Arc<CompiledCircuit>, waste: ToxicWaste) -> Result<Params, SetupError> {
    let (generator, key, counts) = Generator::new(circuit, waste)?;
    Ok(Params::generated(key, counts, generator)?)
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
