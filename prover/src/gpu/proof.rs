//! The quotient and the multi-scalar multiplications of one proof on a device, as a [`Plan`] says.

use std::error::Error;
use std::thread;

use blstrs::{G1Projective, G2Projective, Scalar};
use bytemuck::Pod;
use cuzk_circuit::Assignment;
use cuzk_field::{Affine, Fr, G1, casts};
use cuzk_kernels::runtime::{Arena, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut};
use group::Group;
use rayon::prelude::*;

use super::clock::Clock;
use super::evaluate::{CircuitTables, DeviceWitness};
use super::lane::{Lane, Tables};
use super::msm::{GpuCurve, MsmError, Plan as SumPlan, Scalars, Sorted};
use super::parts::{HostArrays, PartedQuotient};
use super::plan::{BaseSet, BaseSets, Blocks, Plan};
use super::quotient::Quotient;
use super::resident::Resident;
use super::stage::{Bases, Slice};
use super::variables::OfVariables;
use crate::{Points, Sums, backend::Job, msm, timeline::Span};

/// Whatever ends a proof.
pub type AnyError = Box<dyn Error + Send + Sync>;

/// What a proof is made from.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// The job.
    pub job: &'a Job,
    /// How.
    pub plan: &'a Plan,
    /// The counts of the private variables that the plan was made for.
    pub blocks: &'a Blocks,
    /// The base sets on the device.
    pub resident: &'a Resident,
    /// The tables of the job's compiled circuit, if A and B are evaluated on the device.
    pub circuit: Option<&'a CircuitTables>,
}

impl Work<'_> {
    /// Computes all sums of a proof.
    ///
    /// # Errors
    /// When the device fails, or nobody waits for the proof any more.
    pub fn sums(self, lane: &mut Lane, span: &Span) -> Result<Sums, AnyError> {
        // Of what stays on the device only the few points of the inputs are needed here.
        let points = match self.plan.resident == BaseSets::ALL {
            true => self.job.params.input_points()?,
            false => self.job.params.decode(crate::SubgroupCheck::Full)?,
        };
        let assignment = &self.job.assignment;
        thread::scope(|scope| {
            // The few inputs are summed on the host while the device works.
            let inputs = scope.spawn(|| Inputs::sum(points, assignment));
            let clock = Clock::start(lane.runtime(), span.timeline())?;
            let on = OnDevice {
                work: self,
                points,
                clock: &clock,
                span,
            };
            let mut sums = on.sums(lane)?;
            clock.finish()?;
            let inputs = inputs
                .join()
                .map_err(|panic| crate::backend::panic_message(&*panic))?;
            sums.a += inputs.a;
            sums.b_g1 += inputs.b_g1;
            sums.b_g2 += inputs.b_g2;
            Ok(sums)
        })
    }
}

/// The inputs' part of the sums that they take part in.
struct Inputs {
    a: G1Projective,
    b_g1: G1Projective,
    b_g2: G2Projective,
}

impl Inputs {
    fn sum(points: &Points, assignment: &Assignment) -> Self {
        let Assignment {
            witness, densities, ..
        } = assignment;
        let dense = crate::cpu::dense(&witness.inputs, &densities.b_inputs);
        Inputs {
            a: msm::few(&points.a, &witness.inputs, msm::g1),
            b_g1: msm::few(&points.b_g1, &dense, msm::g1),
            b_g2: msm::few(&points.b_g2, &dense, msm::g2),
        }
    }
}

/// The device's part of a proof.
#[derive(Clone, Copy)]
pub struct OnDevice<'a> {
    pub(super) work: Work<'a>,
    pub(super) points: &'a Points,
    pub(super) clock: &'a Clock,
    pub(super) span: &'a Span,
}

impl OnDevice<'_> {
    fn sums(self, lane: &mut Lane) -> Result<Sums, AnyError> {
        let (tables, arena, host) = lane.parts()?;
        arena.reset();
        let keeps = self.work.plan.keeps_witness;
        let witness = keeps.then(|| self.upload_all(arena)).transpose()?;
        let mark = arena.mark();
        let h = self.sum_h(tables, arena, host, witness)?;
        arena.rewind(mark);
        let OfVariables { l, a, b_g1, b_g2 } = self.sum_variables(arena, witness)?;
        Ok(Sums {
            h,
            l,
            a,
            b_g1,
            b_g2,
        })
    }

    /// The quotient, and its sum with h.
    fn sum_h(
        self,
        tables: &Tables,
        arena: &mut Arena,
        host: &mut HostArrays,
        witness: Option<DeviceWitness>,
    ) -> Result<G1Projective, AnyError> {
        let plan = &self.work.plan.h;
        let stage = Arena::bytes::<Affine<G1>>(plan.piece);
        thread::scope(|scope| {
            let mut bases = Bases::start(scope, arena, self.h_slices(), stage)?;
            match tables {
                Tables::Whole(quotient) => {
                    let h = self.quotient(quotient, arena, witness)?;
                    let points = self.work.job.params.counts().h;
                    Ok(self.sum_h_pieces(
                        arena,
                        h.read(),
                        Run {
                            first: 0,
                            step: 1,
                            len: points,
                        },
                        &mut bases,
                    )?)
                }
                Tables::Parted(quotient) => self.parted_quotient(quotient, arena, host, &mut bases),
            }
        })
    }

    /// What has to be brought to the device for the sum over h, in order.
    fn h_slices(&self) -> Vec<Slice<'_>> {
        if self.work.plan.resident.contains(BaseSet::H) {
            return Vec::new();
        }
        let (plan, h) = (&self.work.plan.h, self.h());
        let pieces = self
            .h_runs()
            .into_iter()
            .flat_map(|run| run.pieces(plan.piece));
        pieces
            .map(|run| Slice::new(h, run.first, run.step, run.len))
            .collect()
    }

    fn h(&self) -> &[Affine<G1>] {
        casts::from_blst(&self.points.h)
    }

    /// The coefficients of the quotient part by part.
    fn h_runs(&self) -> Vec<Run> {
        let (rows, points) = (self.work.plan.h.rows, self.work.job.params.counts().h);
        let step = 1usize << rows;
        (0..step)
            .map(|part| {
                let first = if rows == 0 {
                    0
                } else {
                    part.reverse_bits() >> (usize::BITS - rows)
                };
                // The last coefficient of the domain has no point and is zero.
                Run {
                    first,
                    step,
                    len: (points - first).div_ceil(step),
                }
            })
            .collect()
    }

    /// The quotient's coefficients in natural order; they stay taken from the arena.
    fn quotient(
        self,
        quotient: &Quotient,
        arena: &mut Arena,
        witness: Option<DeviceWitness>,
    ) -> Result<GlobalMut<Fr>, AnyError> {
        self.work.job.cancelled.check()?;
        let n = 1usize << quotient.log2();
        let b = arena.take::<Fr>(n)?;
        let mark = arena.mark();
        let a = arena.take::<Fr>(n)?;
        self.evaluations(arena, [a, b], n, witness)?;
        let c = arena.take::<Fr>(n)?;
        let part = self.span.child("quotient");
        self.clock.time(&part, "device", || quotient.run(a, b, c))?;
        arena.runtime().synchronize()?;
        arena.rewind(mark);
        Ok(b)
    }

    /// Fills `a` and `b` with A·w and B·w.
    fn evaluations(
        self,
        arena: &mut Arena,
        [a, b]: [GlobalMut<Fr>; 2],
        n: usize,
        witness: Option<DeviceWitness>,
    ) -> Result<(), AnyError> {
        let assignment = &self.work.job.assignment;
        let Some(tables) = self.work.circuit else {
            let part = self.span.child("upload a and b");
            part.note("bytes", 64 * n as u64);
            self.clock.time(&part, "device", || {
                padded(arena, a, &assignment.a, n)?;
                padded(arena, b, &assignment.b, n)
            })?;
            return Ok(());
        };
        let mark = arena.mark();
        let witness = match witness {
            Some(witness) => witness,
            None => self.upload_all(arena)?,
        };
        let part = self.span.child("evaluate");
        let inputs = &assignment.witness.inputs;
        self.clock.time(&part, "device", || {
            tables.run(arena, inputs, witness, [a, b], n)
        })?;
        arena.rewind(mark);
        Ok(())
    }

    /// The quotient in parts, each with its share of the sum.
    fn parted_quotient(
        self,
        quotient: &PartedQuotient,
        arena: &mut Arena,
        host: &mut HostArrays,
        bases: &mut Bases,
    ) -> Result<G1Projective, AnyError> {
        let job = self.work.job;
        let sources = [&job.assignment.a[..], &job.assignment.b[..]];
        let part = self.span.child("quotient in parts");
        part.note("parts", 1 << quotient.size().1);
        self.clock.time(&part, "device", || {
            let columns = self.work.plan.h.columns;
            quotient.walk(arena, sources, host, columns, || {
                Ok::<_, AnyError>(job.cancelled.check()?)
            })
        })?;
        drop(part);
        let mut sum = G1Projective::identity();
        for (number, run) in self.h_runs().into_iter().enumerate() {
            job.cancelled.check()?;
            let mark = arena.mark();
            let part = self.span.child("quotient of a part");
            let h = self
                .clock
                .time(&part, "device", || quotient.part(arena, host, number))?;
            drop(part);
            sum += self.sum_h_pieces(arena, h.read(), run, bases)?;
            arena.rewind(mark);
        }
        Ok(sum)
    }

    /// Σ h_i · base over the coefficients of one run, which lie on the device one after the other.
    fn sum_h_pieces(
        self,
        arena: &mut Arena,
        values: Global<Fr>,
        run: Run,
        bases: &mut Bases,
    ) -> Result<G1Projective, AnyError> {
        let mut sum = G1Projective::identity();
        let mut done = 0;
        for piece in run.pieces(self.work.plan.h.piece) {
            self.work.job.cancelled.check()?;
            let part = self.span.child("msm h");
            part.note("points", piece.len as u64);
            let mark = arena.mark();
            let values = values.offset(done);
            sum += self.clock.time(&part, "device", || {
                self.sum_h_piece(arena, values, piece, bases, &part)
            })?;
            arena.rewind(mark);
            done += piece.len;
        }
        Ok(sum)
    }

    fn sum_h_piece(
        self,
        arena: &mut Arena,
        values: Global<Fr>,
        piece: Run,
        bases: &mut Bases,
        part: &Span,
    ) -> Result<G1Projective, MsmError> {
        let resident = self.work.resident.h.as_ref();
        let (points, map) = match resident {
            Some(h) if piece.step == 1 => (h.global().offset(piece.first), None),
            Some(h) => (h.global(), Some(upload(arena, &piece.indices())?)),
            None => (bases.next()?, None),
        };
        let plan = self.sum_plan::<G1>(arena, piece.len, self.work.plan.h.bits)?;
        let scalars = Scalars { values, map };
        let sorted = part.time("sort", || Sorted::new(arena, &plan, scalars))?;
        part.time("sum", || sorted.sum::<G1>(arena, points))
    }

    /// The plan of a sum within what is left of the arena.
    pub(super) fn sum_plan<C: GpuCurve>(
        self,
        arena: &Arena,
        points: usize,
        bits: u32,
    ) -> Result<SumPlan, MsmError> {
        SumPlan::with_bits::<C>(
            points,
            bits,
            arena.runtime().multiprocessors(),
            arena.left(),
        )
    }
}

/// Every `step`th coefficient from `first` on.
#[derive(Clone, Copy)]
struct Run {
    first: usize,
    step: usize,
    len: usize,
}

impl Run {
    /// Runs of at most `len` coefficients, one after the other.
    fn pieces(self, len: usize) -> impl Iterator<Item = Run> {
        (0..self.len).step_by(len.max(1)).map(move |done| Run {
            first: self.first + done * self.step,
            step: self.step,
            len: len.min(self.len - done),
        })
    }

    /// The coefficients' numbers.
    fn indices(self) -> Vec<u32> {
        let number = |i: usize| (self.first + i * self.step) as u32;
        (0..self.len).into_par_iter().map(number).collect()
    }
}

/// Fills `array` with `values` and zeros up to `n` elements.
fn padded(
    arena: &Arena,
    array: GlobalMut<Fr>,
    values: &[Scalar],
    n: usize,
) -> Result<(), RuntimeError> {
    let runtime = arena.runtime();
    runtime.upload(
        array.address(),
        bytemuck::cast_slice(casts::from_blst::<Fr>(values)),
    )?;
    if values.len() < n {
        let rest = array.offset(values.len());
        runtime.zero(
            rest.address(),
            u64::from(Fr::BYTES) * (n - values.len()) as u64,
        )?;
    }
    Ok(())
}

/// A copy of `values` in the arena.
///
/// # Errors
/// When the device fails or the arena is full.
pub fn upload<T: Element + Pod>(
    arena: &mut Arena,
    values: &[T],
) -> Result<Global<T>, RuntimeError> {
    let array = arena.take::<T>(values.len())?;
    arena
        .runtime()
        .upload(array.address(), bytemuck::cast_slice(values))?;
    Ok(array.read())
}
