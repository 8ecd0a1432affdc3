//! Compiled circuits: A and B of a circuit as templates and instances, recorded once.
//!
//! Proving needs the values A·w and B·w, and these depend on the witness alone once the circuit
//! is known. A [`CompiledCircuit`] holds the two matrices: repeated stretches of rows are stored
//! once ([`Template`]), each use ([`Instance`]) says where its rows and its private variables
//! start and which variables outside it refers to. Repetition is found while recording, from
//! the circuit's namespaces and, where there are none, from the rows themselves; equality is
//! always decided by comparing whole contents. Rows without repetition are stored once as they
//! are.
//!
//! Proving does not need C: for a satisfied system its values are the products of those of A and B,
//! and [`crate::check`] evaluates it from the circuit itself. Parameters are made from all three, so
//! [`CompiledCircuit::record_with_c`] records C as well, over the same templates and instances.
//!
//! ```
//! use cuzk_circuit::testing::RandomCircuit;
//! use cuzk_circuit::{CompiledCircuit, synthesize, witness};
//!
//! let circuit = RandomCircuit::new(1000, 3, 7);
//! let compiled = CompiledCircuit::record("random 1000/3/7", circuit.clone())?;
//! let assignment = compiled.assignment(witness(circuit.clone())?)?;
//! assert_eq!(assignment, synthesize(circuit)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod build;
mod coefficients;
mod densities;
mod error;
mod evaluate;
mod file;
mod flatten;
mod items;
mod layout;
#[allow(unsafe_code)]
mod map;
mod outside;
mod recorder;
mod repeats;
mod replay;
mod survey;
mod validate;
mod wide;

pub use error::CompiledError;
pub use file::Origin;
pub use layout::{INPUT, Instance, Template};

use crate::census::{Census, Component};
use crate::stream::stream_circuit;
use crate::{Assignment, Densities, Scalar, Shape, Witness};
use bellpepper_core::Circuit;
use evaluate::Evaluation;
use ff::Field;
use layout::Tables;
use std::sync::Arc;

/// A circuit's A and B (and C on request), ready to be evaluated for any witness.
#[derive(Clone, Debug)]
pub struct CompiledCircuit {
    identity: String,
    digest: [u8; 32],
    shape: Shape,
    coefficients: Vec<Scalar>,
    tables: Tables,
    densities: Arc<Densities>,
}

/// The terms of A, B or C of all templates.
#[derive(Clone, Copy, Debug)]
pub struct TermsView<'c> {
    /// Variables in the coordinates of the template, see [`Template`].
    pub variables: &'c [u32],
    /// Coefficients in the page of the template.
    pub coefficients: &'c [u16],
}

/// How large a compiled circuit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledSize {
    /// Distinct stretches of rows.
    pub templates: usize,
    /// Rows of all templates.
    pub template_rows: usize,
    /// Terms of A, B and (where it is recorded) C of all templates.
    pub template_terms: usize,
    /// Uses of templates.
    pub instances: usize,
    /// Outside references of all instances.
    pub outside: usize,
    /// Entries of the coefficient table.
    pub coefficients: usize,
    /// Bytes of a file that holds it.
    pub file_bytes: u64,
}

impl CompiledCircuit {
    /// Records a circuit. No value is asked for, so a blank circuit will do. `identity` names
    /// the circuit's shape, for instance the stem of its parameter file.
    ///
    /// Memory follows the number of distinct blocks, not the number of rows.
    ///
    /// # Errors
    /// [`CompiledError::Circuit`] when synthesis fails or the circuit has 2³¹ variables or more;
    /// [`CompiledError::TooManyCoefficients`] for a row that a template cannot hold.
    pub fn record<C: Circuit<Scalar>>(
        identity: impl Into<String>,
        circuit: C,
    ) -> Result<Self, CompiledError> {
        Self::record_sides::<C, false>(identity.into(), circuit)
    }

    /// As [`CompiledCircuit::record`], with C.
    ///
    /// # Errors
    /// As [`CompiledCircuit::record`].
    pub fn record_with_c<C: Circuit<Scalar>>(
        identity: impl Into<String>,
        circuit: C,
    ) -> Result<Self, CompiledError> {
        Self::record_sides::<C, true>(identity.into(), circuit)
    }

    fn record_sides<C: Circuit<Scalar>, const WITH_C: bool>(
        identity: String,
        circuit: C,
    ) -> Result<Self, CompiledError> {
        let mut recorder = recorder::Recorder::<WITH_C>::new();
        stream_circuit(circuit, &mut recorder)?;
        Self::of_recording(identity, recorder.finish()?)
    }

    /// As [`CompiledCircuit::record`], and counts the circuit's parts in the same pass, C included.
    ///
    /// # Errors
    /// As [`CompiledCircuit::record`].
    pub fn record_with_census<C: Circuit<Scalar>>(
        identity: impl Into<String>,
        circuit: C,
    ) -> Result<(Self, Component), CompiledError> {
        let mut both = survey::Survey {
            recorder: recorder::Recorder::<false>::new(),
            census: Census::new(),
        };
        stream_circuit(circuit, &mut both)?;
        let compiled = Self::of_recording(identity.into(), both.recorder.finish()?)?;
        Ok((compiled, both.census.finish()))
    }

    fn of_recording(
        identity: String,
        recording: recorder::Recording,
    ) -> Result<Self, CompiledError> {
        let (tables, coefficients) = build::build(&recording)?;
        let mut shape = Shape {
            constraints: recording.constraints as usize,
            inputs: recording.inputs as usize,
            aux: recording.aux as usize,
            ..Shape::default()
        };
        shape.nonzeros = nonzeros(&tables);
        let digest = file::digest(&shape, &coefficients, &tables);
        Ok(Self::assemble(
            identity,
            digest,
            shape,
            coefficients,
            tables,
        ))
    }

    fn assemble(
        identity: String,
        digest: [u8; 32],
        mut shape: Shape,
        coefficients: Vec<Scalar>,
        tables: Tables,
    ) -> Self {
        let densities = densities::densities(&tables, shape.inputs, shape.aux);
        shape.a_aux = densities.a_aux.count_ones();
        shape.b_inputs = densities.b_inputs.count_ones();
        shape.b_aux = densities.b_aux.count_ones();
        Self {
            identity,
            digest,
            shape,
            coefficients,
            tables,
            densities: Arc::new(densities),
        }
    }

    /// Checks that `circuit` has exactly the recorded rows.
    ///
    /// # Errors
    /// [`CompiledError::Differs`] with the first constraint that differs.
    pub fn replay<C: Circuit<Scalar>>(&self, circuit: C) -> Result<(), CompiledError> {
        replay::replay(self, circuit)
    }

    /// Evaluates A and B for a witness: what [`crate::synthesize`] yields, bit for bit.
    ///
    /// # Errors
    /// [`CompiledError::WrongWitness`] when the witness is of another shape.
    pub fn assignment(&self, witness: Witness) -> Result<Assignment, CompiledError> {
        let mut assignment = Assignment {
            witness,
            ..Assignment::default()
        };
        self.evaluate_into(&mut assignment)?;
        Ok(assignment)
    }

    /// Completes an assignment whose witness is set; its other contents are replaced and its
    /// memory is reused.
    ///
    /// # Errors
    /// [`CompiledError::WrongWitness`] when the witness is of another shape; nothing is changed
    /// then.
    pub fn evaluate_into(&self, assignment: &mut Assignment) -> Result<(), CompiledError> {
        let Assignment { witness, a, b, .. } = assignment;
        self.check_witness(witness)?;
        let rows = self.shape.constraints;
        a.resize(rows, Scalar::ZERO);
        b.resize(rows, Scalar::ZERO);
        let evaluation = Evaluation {
            tables: &self.tables,
            coefficients: &self.coefficients,
            witness,
        };
        evaluation.run(a, b);
        a.extend_from_slice(&witness.inputs);
        b.resize(self.shape.rows(), Scalar::ZERO);
        assignment.densities = self.densities.clone();
        assignment.constraints = rows;
        Ok(())
    }

    fn check_witness(&self, witness: &Witness) -> Result<(), CompiledError> {
        let counts = [
            ("input", self.shape.inputs, witness.inputs.len()),
            ("auxiliary", self.shape.aux, witness.aux.len()),
        ];
        match counts.into_iter().find(|(_, x, y)| x != y) {
            None => Ok(()),
            Some((kind, expected, found)) => Err(CompiledError::WrongWitness {
                kind,
                expected,
                found,
            }),
        }
    }

    /// The name under which the circuit was recorded.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// BLAKE2b-256 of the counts and all tables. Equal circuits recorded by equal versions have
    /// equal digests.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether C was recorded.
    pub fn has_c(&self) -> bool {
        self.tables.has_c()
    }

    /// The circuit's counts; C counts no coefficients where it is not recorded.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Which variables occur in A and B.
    pub fn densities(&self) -> &Arc<Densities> {
        &self.densities
    }

    /// How large the compiled form is.
    pub fn size(&self) -> CompiledSize {
        CompiledSize {
            templates: self.tables.templates.len(),
            template_rows: self.tables.row_ends.len(),
            template_terms: self.tables.a.variables.len()
                + self.tables.b.variables.len()
                + self.tables.c.variables.len(),
            instances: self.tables.instances.len(),
            outside: self.tables.outside.len(),
            coefficients: self.coefficients.len(),
            file_bytes: file::file_bytes(self),
        }
    }

    /// The templates.
    pub fn templates(&self) -> &[Template] {
        &self.tables.templates
    }

    /// The instances, in the order of their rows, without gaps.
    pub fn instances(&self) -> &[Instance] {
        &self.tables.instances
    }

    /// For each row of each template the ends of its A and B terms, see [`Template`].
    pub fn row_ends(&self) -> &[[u32; 2]] {
        &self.tables.row_ends
    }

    /// The A terms of all templates.
    pub fn a_terms(&self) -> TermsView<'_> {
        view(&self.tables.a)
    }

    /// The B terms of all templates.
    pub fn b_terms(&self) -> TermsView<'_> {
        view(&self.tables.b)
    }

    /// The C terms of all templates in the order of their rows; none where C was not recorded.
    pub fn c_terms(&self) -> TermsView<'_> {
        view(&self.tables.c)
    }

    /// For each row of each template the end of its C terms in [`CompiledCircuit::c_terms`]; a row's
    /// terms start where those of the row before end. Empty where C was not recorded.
    pub fn c_ends(&self) -> &[u32] {
        &self.tables.c_ends
    }

    /// The outside references of all instances: private variables, or [`INPUT`]` | i`.
    pub fn outside(&self) -> &[u32] {
        &self.tables.outside
    }

    /// The coefficient table: pages of at most 2¹⁶ entries, each beginning with 1.
    pub fn coefficients(&self) -> &[Scalar] {
        &self.coefficients
    }
}

fn view(terms: &layout::Terms) -> TermsView<'_> {
    TermsView {
        variables: &terms.variables,
        coefficients: &terms.coefficients,
    }
}

fn nonzeros(tables: &Tables) -> [u64; 3] {
    let mut counts = [0; 3];
    for instance in tables.instances.iter() {
        let template = &tables.templates[instance.template as usize];
        if let Some(last) = tables.row_ends(template).last() {
            counts[0] += u64::from(last[0]);
            counts[1] += u64::from(last[1]);
        }
        if tables.has_c() {
            let (start, ends) = tables.c_ends(template);
            counts[2] += ends.last().map_or(0, |&end| u64::from(end) - start as u64);
        }
    }
    counts
}
