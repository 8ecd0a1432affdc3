//! `cuzk prove`: an input file to verified proof bytes.

use super::compiled::{Place, Recording};
use super::{check_folder, open_request, params_dir, write_file};
use crate::output::{Output, hex};
use crate::{arguments::Prove, error::Error};
use blstrs::Scalar;
use cuzk_circuit::{Assignment, CompiledCircuit};
use cuzk_filecoin::{Request, WitnessPath};
use cuzk_prover::timeline::{Span, Timeline};
use cuzk_prover::{Params, PendingProof, Prover, Retry};
use ff::Field;
use rand_core::OsRng;
use serde_json::json;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: &Prove, output: &Output) -> Result<(), Error> {
    let dir = params_dir(arguments.params_dir.as_deref())?;
    for path in arguments.out.iter().chain(&arguments.trace) {
        check_folder(path)?;
    }
    let timeline = Timeline::new();
    let progress = output.progress("reading the input");
    let request = timeline.span("parse").time("read and check", || {
        open_request(&arguments.input, arguments.miner)
    })?;
    let id = request.circuit_id();
    let refuses = id.is_for_production() && !arguments.allow_test_parameters;
    if refuses && id.has_test_params(&dir)? {
        return Err(Error::TestParameters { circuit: id, dir });
    }
    let prover = Prover::with_memory_limit(arguments.device.clone(), arguments.memory.vram_limit)?;

    progress.now(format!("opening the parameters of {id}"));
    let params = {
        let _span = timeline.span("parameters");
        Arc::new(Params::map(id.params_path(&dir, "params")?)?)
    };
    let place = Place::beside_params(id, &dir)?;
    let circuit = match arguments.direct {
        true => None,
        false => timeline
            .span("compiled circuit")
            .time("open", || place.open()),
    };
    let recording = (circuit.is_none() && !arguments.direct).then(|| place.record_in_background());
    let mut work = Work {
        request: &request,
        prover: &prover,
        params: &params,
        circuit: circuit.as_ref(),
        witness: None,
        timeline: &timeline,
        plan: arguments.plan.then_some(output),
        retries: Vec::new(),
    };
    let proofs = work.all(|k| {
        progress.now(format!(
            "proving {id}, partition {} of {}",
            k + 1,
            request.partitions()
        ))
    })?;
    let synthesis = work.describe();
    let bytes = {
        let _span = timeline.span("assemble");
        let bytes = request.assemble(&proofs)?;
        if let Some(out) = &arguments.out {
            write_file(out, &bytes)?;
        }
        bytes
    };
    let retries = std::mem::take(&mut work.retries);
    let release = timeline.span("release");
    drop((params, request));
    drop(release);
    drop(progress);
    if let Some(path) = &arguments.trace {
        write_file(path, timeline.chrome_trace().as_bytes())?;
    }
    let report = timeline.report();
    let value = json!({
        "circuit": id.to_string(), "partitions": proofs.len(), "proof_bytes": bytes.len(),
        "backend": prover.backend(),
        "retries": retries.iter().map(|r| json!({"backend": r.backend, "reason": r.reason})).collect::<Vec<_>>(),
        "timeline": report.rows,
        "synthesis": synthesis.path, "witness": synthesis.witness, "recording": recording.is_some(),
        "proof": arguments.out.is_none().then(|| hex(&bytes)),
    });
    let target = arguments
        .out
        .as_ref()
        .map_or_else(|| hex(&bytes), |p| p.display().to_string());
    let again: String = retries
        .iter()
        .map(|retry| {
            format!(
                "made again elsewhere: {}: {}\n",
                retry.backend, retry.reason
            )
        })
        .collect();
    let text = format!(
        "{report}\n{again}proved {id} on {}, {}: {} bytes, verified\n{target}",
        prover.backend(),
        synthesis.text(),
        bytes.len()
    );
    output.result(&value, &text);
    if let Some(recording) = recording {
        wait_for(recording, output);
    }
    Ok(())
}

/// Waits for the compiled circuit: the process would take the recording with it.
fn wait_for(recording: Recording, output: &Output) {
    let _progress = output.progress("compiling the circuit for the next proof");
    recording.finish();
}

/// How the values came about.
struct Synthesis {
    path: &'static str,
    witness: &'static str,
}

impl Synthesis {
    fn text(&self) -> String {
        match self.path {
            "compiled" => format!("compiled circuit, {} witness", self.witness),
            path => format!("{path} synthesis"),
        }
    }
}

struct Work<'a> {
    request: &'a Request,
    prover: &'a Prover,
    params: &'a Arc<Params>,
    /// A and B, if they need not be synthesised.
    circuit: Option<&'a Arc<CompiledCircuit>>,
    /// What made the last witness, where it was made alone.
    witness: Option<WitnessPath>,
    timeline: &'a Timeline,
    /// Where the plan is told before the first proof.
    plan: Option<&'a Output>,
    /// Attempts that failed.
    retries: Vec<Retry>,
}

impl Work<'_> {
    /// Proves all partitions: the next one is synthesised while the device works on the last.
    fn all(&mut self, mut tell: impl FnMut(usize)) -> Result<Vec<[u8; 192]>, Error> {
        let mut proofs = Vec::with_capacity(self.request.partitions());
        let mut arena = Assignment::default();
        let mut pending: Option<PendingProof> = None;
        for k in 0..self.request.partitions() {
            tell(k);
            let synthesis = self.timeline.span("synthesis");
            let assignment = self.synthesise(k, std::mem::take(&mut arena), &synthesis)?;
            drop(synthesis);
            if let Some(previous) = pending.take() {
                let finished = previous.finish()?;
                proofs.push(finished.proof.to_bytes());
                self.retries.extend(finished.retries);
                arena = finished.assignment;
            }
            if let Some(output) = self.plan.take() {
                let circuit = self.circuit.map(|circuit| &**circuit);
                for (device, plan) in self.prover.plans(self.params, &assignment, circuit)? {
                    output.note(&format!("{device}\n{plan}\n"));
                }
            }
            let (r, s) = (Field::random(OsRng), Field::random(OsRng));
            pending = Some(self.start(assignment, r, s)?);
        }
        if let Some(last) = pending {
            let finished = last.finish()?;
            proofs.push(finished.proof.to_bytes());
            self.retries.extend(finished.retries);
            self.timeline.span("release").free(finished.assignment);
        }
        Ok(proofs)
    }

    fn start(&self, assignment: Assignment, r: Scalar, s: Scalar) -> Result<PendingProof, Error> {
        let (prover, params) = (self.prover, self.params);
        let timeline = self.timeline.clone();
        let started = match self.circuit {
            Some(circuit) => {
                prover.start_compiled_on(timeline, params, circuit, assignment.witness, r, s)
            }
            None => prover.start_on(timeline, params, assignment, r, s),
        };
        Ok(started?)
    }

    fn describe(&self) -> Synthesis {
        let (path, witness) = match (self.circuit, self.witness) {
            (None, _) => ("direct", "generic"),
            (Some(_), Some(WitnessPath::Native)) => ("compiled", "native"),
            (Some(_), _) => ("compiled", "generic"),
        };
        Synthesis { path, witness }
    }

    /// The values of partition `k`: the witness alone where the back end evaluates the circuit.
    fn synthesise(
        &mut self,
        k: usize,
        mut arena: Assignment,
        span: &Span,
    ) -> Result<Assignment, Error> {
        if self.circuit.is_some() {
            let witness = &mut arena.witness;
            let path = span.time("witness", || self.request.witness_into(k, witness))?;
            self.witness = Some(path);
        } else {
            let circuit = span.time("circuit", || self.request.circuit(k))?;
            span.time("witness and evaluation", || {
                circuit.assignment_into(&mut arena)
            })?;
        }
        let expected = span.time("public inputs", || self.request.public_inputs(k))?;
        let found = &arena.witness.inputs[1..];
        if found == expected {
            return Ok(arena);
        }
        let same = found
            .iter()
            .zip(&expected)
            .take_while(|(a, b)| a == b)
            .count();
        Err(Error::PublicInputs {
            partition: k,
            input: same,
        })
    }
}
