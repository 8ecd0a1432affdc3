//! Synthesis of Filecoin circuits, compiled once here.
//!
//! The functions of `cuzk-circuit` are generic; each crate that calls them with a
//! [`FilecoinCircuit`] would compile nine circuits anew for each of them.

use std::path::Path;

use cuzk_circuit::{
    Assignment, CircuitError, CompiledCircuit, CompiledError, Component, Origin, Shape, Witness,
};

use crate::circuit::FilecoinCircuit;

impl FilecoinCircuit {
    /// Witness, evaluations of A and B, densities: [`cuzk_circuit::synthesize`].
    ///
    /// # Errors
    /// A value is missing (the circuit is blank) or synthesis fails.
    pub fn assignment(self) -> Result<Assignment, CircuitError> {
        cuzk_circuit::synthesize(self)
    }

    /// As [`FilecoinCircuit::assignment`], in the memory of `arena`.
    ///
    /// # Errors
    /// As [`FilecoinCircuit::assignment`].
    pub fn assignment_into(self, arena: &mut Assignment) -> Result<(), CircuitError> {
        cuzk_circuit::synthesize_into(self, arena)
    }

    /// The values of the variables alone: [`fn@cuzk_circuit::witness`].
    ///
    /// # Errors
    /// As [`FilecoinCircuit::assignment`].
    pub fn witness(self) -> Result<Witness, CircuitError> {
        cuzk_circuit::witness(self)
    }

    /// As [`FilecoinCircuit::witness`], in the memory of `arena`.
    ///
    /// # Errors
    /// As [`FilecoinCircuit::assignment`].
    pub fn witness_into(self, arena: &mut Witness) -> Result<(), CircuitError> {
        cuzk_circuit::witness_into(self, arena)
    }

    /// Counts of constraints and variables; a blank circuit will do: [`fn@cuzk_circuit::shape`].
    ///
    /// # Errors
    /// Synthesis fails.
    pub fn shape(self) -> Result<Shape, CircuitError> {
        cuzk_circuit::shape(self)
    }

    /// A and B as templates and instances, from the file at `path` or recorded and saved there; a
    /// blank circuit will do: [`CompiledCircuit::open_or_record`].
    ///
    /// # Errors
    /// The circuit cannot be recorded.
    pub fn compiled(
        self,
        path: &Path,
        identity: &str,
    ) -> Result<(CompiledCircuit, Origin), CompiledError> {
        CompiledCircuit::open_or_record(path, identity, self)
    }

    /// A and B as templates and instances, and the circuit's parts; a blank circuit will do:
    /// [`CompiledCircuit::record_with_census`].
    ///
    /// # Errors
    /// The circuit cannot be recorded.
    pub fn surveyed(self, identity: &str) -> Result<(CompiledCircuit, Component), CompiledError> {
        CompiledCircuit::record_with_census(identity, self)
    }

    /// Names the first constraint that does not hold: [`fn@cuzk_circuit::check`].
    ///
    /// # Errors
    /// [`CircuitError::Unsatisfied`], or as [`FilecoinCircuit::assignment`].
    pub fn check(self) -> Result<(), CircuitError> {
        cuzk_circuit::check(self)
    }
}
