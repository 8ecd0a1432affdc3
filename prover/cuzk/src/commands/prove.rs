//! `cuzk prove`: an input file to verified proof bytes.

use super::{check_folder, open_request, params_dir, write_file};
use crate::output::{Output, hex};
use crate::{arguments::Prove, error::Error};
use cuzk_circuit::Assignment;
use cuzk_filecoin::Request;
use cuzk_prover::timeline::{Span, Timeline};
use cuzk_prover::{Params, PendingProof, Prover};
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
    // Sectors of these sizes hold real data.
    let production = id.size.bytes() >= 512 << 20;
    if production && !arguments.allow_test_parameters && id.has_test_params(&dir)? {
        return Err(Error::TestParameters { circuit: id, dir });
    }
    let prover = Prover::new(arguments.device.clone())?;

    progress.now(format!("opening the parameters of {id}"));
    let params = {
        let _span = timeline.span("parameters");
        Arc::new(Params::map(id.params_path(&dir, "params")?)?)
    };
    let mut work = Work {
        request: &request,
        prover: &prover,
        params: &params,
        timeline: &timeline,
    };
    let proofs = work.all(|k| {
        progress.now(format!(
            "proving {id}, partition {} of {}",
            k + 1,
            request.partitions()
        ))
    })?;
    let bytes = {
        let _span = timeline.span("assemble");
        let bytes = request.assemble(&proofs)?;
        if let Some(out) = &arguments.out {
            write_file(out, &bytes)?;
        }
        bytes
    };
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
        "backend": prover.backend(), "timeline": report.rows,
        "proof": arguments.out.is_none().then(|| hex(&bytes)),
    });
    let target = arguments
        .out
        .as_ref()
        .map_or_else(|| hex(&bytes), |p| p.display().to_string());
    let text = format!(
        "{report}\nproved {id} on {}: {} bytes, verified\n{target}",
        prover.backend(),
        bytes.len()
    );
    output.result(&value, &text);
    Ok(())
}

struct Work<'a> {
    request: &'a Request,
    prover: &'a Prover,
    params: &'a Arc<Params>,
    timeline: &'a Timeline,
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
                arena = finished.assignment;
            }
            let (r, s) = (Field::random(OsRng), Field::random(OsRng));
            let timeline = self.timeline.clone();
            pending = Some(
                self.prover
                    .start_on(timeline, self.params, assignment, r, s)?,
            );
        }
        if let Some(last) = pending {
            let finished = last.finish()?;
            proofs.push(finished.proof.to_bytes());
            self.timeline.span("release").free(finished.assignment);
        }
        Ok(proofs)
    }

    fn synthesise(
        &self,
        k: usize,
        mut arena: Assignment,
        span: &Span,
    ) -> Result<Assignment, Error> {
        let circuit = span.time("circuit", || self.request.circuit(k))?;
        span.time("witness and evaluation", || {
            circuit.assignment_into(&mut arena)
        })?;
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
