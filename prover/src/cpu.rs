//! The CPU back end: one proof at a time on rayon's threads, in the background of its caller.

use std::sync::{Arc, Mutex, PoisonError};

use blstrs::Scalar;
use cuzk_circuit::{Assignment, Bitmap};

use crate::{
    Backend, Points, Proof, ProveError, SubgroupCheck,
    backend::{Background, Failed, Job, Maker, Running, Sums},
    msm,
    ntt::{Domain, NttError},
    quotient::quotient_into,
    timeline::Span,
};

/// The CPU back end.
#[derive(Default)]
pub(crate) struct Cpu {
    /// Locked while a proof is made: two side by side would need twice the memory and take as long.
    workspace: Arc<Mutex<Workspace>>,
}

/// What proofs of the same size share, kept from one to the next.
#[derive(Default)]
struct Workspace {
    /// The tables of the transforms.
    domain: Option<Domain>,
    /// The coefficients of the quotient.
    h: Vec<Scalar>,
    /// A·w and B·w of jobs that leave the evaluation to the back end.
    evaluations: [Vec<Scalar>; 2],
}

impl Workspace {
    /// Makes the tables for 2^`log2` points, unless they are there.
    fn prepare(&mut self, log2: u32, span: &Span) -> Result<(&Domain, &mut Vec<Scalar>), NttError> {
        let domain = match self.domain.take() {
            Some(domain) if domain.log2() == log2 => domain,
            other => {
                span.free((other, std::mem::take(&mut self.h)));
                span.time("roots of unity", || Domain::new(log2))?
            }
        };
        Ok((self.domain.insert(domain), &mut self.h))
    }
}

/// The back end's name for a proof's errors.
fn describe() -> String {
    format!("cpu ({} threads)", rayon::current_num_threads())
}

impl Backend for Cpu {
    fn describe(&self) -> String {
        describe()
    }

    fn start(&self, job: Job) -> Result<Box<dyn Running>, Box<Failed>> {
        let maker = Maker {
            name: describe(),
            number: 0,
        };
        if job.avoid.contains(&maker.number) {
            let backend = maker.name;
            return Err(Failed::before(job, ProveError::NoDevice { backend }));
        }
        let workspace = Arc::clone(&self.workspace);
        Background::start("cuzk-cpu", maker, job, move |job| {
            let wait = job.timeline.span_in(job.parent, "wait for the cpu");
            let mut workspace = workspace.lock().unwrap_or_else(PoisonError::into_inner);
            drop(wait);
            prove(job, &mut workspace)
        })
    }
}

/// Makes the proof of a job.
fn prove(job: &mut Job, workspace: &mut Workspace) -> Result<Proof, ProveError> {
    job.cancelled.check()?;
    let timeline = job.timeline.clone();
    let span = timeline.span_in(job.parent, "cpu");
    let params = Arc::clone(&job.params);
    let points = span.time("parameters", || params.decode(SubgroupCheck::Full))?;
    let compiled = job.circuit.take();
    if let Some(circuit) = &compiled {
        let Assignment { a, b, .. } = &mut job.assignment;
        [*a, *b] = std::mem::take(&mut workspace.evaluations);
        span.time("evaluate", || circuit.evaluate_into(&mut job.assignment))?;
    }
    let sums = sums(job, points, workspace, &span)?;
    if compiled.is_some() {
        let Assignment { a, b, .. } = &mut job.assignment;
        workspace.evaluations = [std::mem::take(a), std::mem::take(b)];
    }
    Ok(span.time("assemble", || sums.assemble(params.vk(), &job.r, &job.s)))
}

/// The quotient and all multi-scalar multiplications; a and b of the assignment are overwritten.
fn sums(
    job: &mut Job,
    points: &Points,
    workspace: &mut Workspace,
    span: &Span,
) -> Result<Sums, ProveError> {
    let Assignment {
        witness,
        a,
        b,
        densities,
        ..
    } = &mut job.assignment;
    let cancelled = &job.cancelled;
    let timed = |name: &'static str| cancelled.check().map(|()| span.child(name));

    let part = timed("quotient")?;
    let (domain, quotient) = workspace.prepare(job.params.counts().domain_log2(), &part)?;
    part.time("transforms", || quotient_into(domain, a, b, quotient))?;
    drop(part);

    let part = timed("msm h")?;
    part.note("points", points.h.len() as u64);
    let h = msm::g1(&points.h, quotient);
    drop(part);

    let part = timed("msm l")?;
    part.note("points", points.l.len() as u64);
    let l = msm::g1_compact(&points.l, &witness.aux, None);
    drop(part);

    let part = timed("msm a")?;
    part.note("points", points.a.len() as u64);
    let (a_inputs, a_aux) = points.a.split_at(witness.inputs.len());
    let a = msm::g1(a_inputs, &witness.inputs)
        + msm::g1_compact(a_aux, &witness.aux, Some(&densities.a_aux));
    drop(part);

    let b_inputs = dense(&witness.inputs, &densities.b_inputs);
    let part = timed("msm b_g1")?;
    part.note("points", points.b_g1.len() as u64);
    let (bases, aux) = points.b_g1.split_at(b_inputs.len());
    let b_g1 =
        msm::g1(bases, &b_inputs) + msm::g1_compact(aux, &witness.aux, Some(&densities.b_aux));
    drop(part);

    let part = timed("msm b_g2")?;
    part.note("points", points.b_g2.len() as u64);
    let (bases, aux) = points.b_g2.split_at(b_inputs.len());
    let b_g2 =
        msm::g2(bases, &b_inputs) + msm::g2_compact(aux, &witness.aux, Some(&densities.b_aux));
    drop(part);

    Ok(Sums {
        h,
        l,
        a,
        b_g1,
        b_g2,
    })
}

/// The scalars whose bit is set.
pub(crate) fn dense(scalars: &[Scalar], density: &Bitmap) -> Vec<Scalar> {
    density
        .iter_ones()
        .filter_map(|i| scalars.get(i).copied())
        .collect()
}
