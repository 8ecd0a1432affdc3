//! The quotient and the multi-scalar multiplications of one proof on a device.

use std::{error::Error, sync::Arc, thread};

use blstrs::{G1Projective, G2Projective, Scalar};
use cuzk_circuit::{Assignment, Bitmap};
use cuzk_field::{Fr, G1, G2, casts};
use cuzk_kernels::runtime::{Arena, Runtime, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut};
use rayon::prelude::*;

use super::evaluate::{CircuitTables, DeviceWitness, bitmap_bytes, upload_bitmap};
use super::msm::{
    Bitmaps, GpuCurve, MsmError, Plan, Scalars, Selection, Sorted, sum_of_points,
    sum_of_points_bytes,
};
use super::quotient::Quotient;
use super::resident::Resident;
use crate::{Params, Points, Sums, backend::Job, msm, timeline::Span};

/// The plans of a proof's sums and the device memory that they take at most at once.
pub struct Needs {
    h: Plan,
    others: Plan,
    /// Bytes of the arena.
    pub bytes: u64,
}

impl Needs {
    /// Plans a proof within `room` bytes.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn new(
        params: &Params,
        assignment: &Assignment,
        multiprocessors: u32,
        room: u64,
    ) -> Result<Self, MsmError> {
        let counts = params.counts();
        let aux = &assignment.witness.aux;
        let (len, others) = (aux.len() as u32, aux.others().len());
        let kept = DeviceWitness::bytes(aux.len(), others);
        let domain = kept + 3 * Arena::bytes::<Fr>(counts.h + 1);
        let evaluation = CircuitTables::scratch_bytes(aux.len(), counts.inputs);
        let selection = kept + bitmap_bytes(aux.len()) + Selection::bytes(len, others as u32);
        let left = |taken: u64| {
            room.checked_sub(taken).ok_or(MsmError::Memory {
                needed: taken,
                limit: room,
            })
        };
        let h = Plan::new::<G1>(counts.h, multiprocessors, left(domain)?)?;
        let others = Plan::new::<G2>(others, multiprocessors, left(selection)?)?;
        let ones = aux.bits().count_ones() as u32;
        let adding = match ones {
            0 => 0,
            _ => sum_of_points_bytes::<G1>(ones, multiprocessors)
                .max(sum_of_points_bytes::<G2>(ones, multiprocessors)),
        };
        let values = (others.kept_bytes() + adding)
            .max(others.bytes::<G1>())
            .max(others.bytes::<G2>());
        let bytes = (domain + h.bytes::<G1>().max(evaluation)).max(selection + values);
        if bytes > room {
            return Err(MsmError::Memory {
                needed: bytes,
                limit: room,
            });
        }
        Ok(Needs { h, others, bytes })
    }
}

/// What stays on the device from one proof of a circuit to the next.
#[derive(Clone, Copy)]
pub struct Kept<'k> {
    /// The parameters.
    pub resident: &'k Resident,
    /// The tables of the job's compiled circuit.
    pub tables: Option<&'k CircuitTables>,
    /// The quotient's.
    pub quotient: &'k Quotient,
}

/// Computes all sums of a proof.
///
/// # Errors
/// When the device fails, or nobody waits for the proof any more.
pub fn sums(
    job: &Job,
    needs: &Needs,
    kept: Kept<'_>,
    arena: &mut Arena,
    span: &Span,
) -> Result<Sums, Box<dyn Error + Send + Sync>> {
    let points = job.params.input_points()?;
    thread::scope(|scope| {
        // The few inputs are summed on the host while the device works.
        let inputs = scope.spawn(|| Inputs::sum(points, &job.assignment));
        let mut sums = device_sums(job, needs, kept, arena, span)?;
        let inputs = inputs
            .join()
            .map_err(|panic| crate::backend::panic_message(&*panic))?;
        sums.a += inputs.a;
        sums.b_g1 += inputs.b_g1;
        sums.b_g2 += inputs.b_g2;
        Ok(sums)
    })
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
            a: few(&points.a, &witness.inputs, msm::g1),
            b_g1: few(&points.b_g1, &dense, msm::g1),
            b_g2: few(&points.b_g2, &dense, msm::g2),
        }
    }
}

/// Σ scalar · base over as many bases as there are scalars: one by one where that is faster than buckets.
fn few<A, P>(bases: &[A], scalars: &[Scalar], many: impl Fn(&[A], &[Scalar]) -> P) -> P
where
    A: Sync,
    for<'a> &'a A: std::ops::Mul<&'a Scalar, Output = P>,
    P: Send + std::iter::Sum,
{
    const FEW: usize = 64;
    if scalars.len() > FEW {
        return many(&bases[..scalars.len()], scalars);
    }
    bases
        .par_iter()
        .zip(scalars)
        .map(|(base, scalar)| base * scalar)
        .sum()
}

/// The sums over h and over the private variables.
fn device_sums(
    job: &Job,
    needs: &Needs,
    kept: Kept<'_>,
    arena: &mut Arena,
    span: &Span,
) -> Result<Sums, Box<dyn Error + Send + Sync>> {
    let Kept {
        resident, tables, ..
    } = kept;
    let Assignment {
        witness, densities, ..
    } = &job.assignment;
    let part = span.child("upload witness");
    let aux = DeviceWitness::upload(arena, &witness.aux)?;
    part.note(
        "bytes",
        DeviceWitness::bytes(witness.aux.len(), witness.aux.others().len()),
    );
    drop(part);
    let mark = arena.mark();
    let h = sum_h(job, needs, kept, aux, arena, span)?;
    arena.rewind(mark);
    let density = |resident: fn(&CircuitTables) -> Global<[u32; 4]>, host| match tables {
        Some(tables) => Density::OnDevice(resident(tables)),
        None => Density::OnHost(host),
    };
    let a_density = density(|tables| tables.a_aux.global(), &densities.a_aux);
    let b_density = density(|tables| tables.b_aux.global(), &densities.b_aux);

    job.cancelled.check()?;
    let part = span.child("msm l");
    let l = selected(arena, needs, aux, Density::All, |arena, selected| {
        selected.sum::<G1>(arena, resident.l.global())
    })?;
    drop(part);

    job.cancelled.check()?;
    let part = span.child("msm a");
    let inputs = witness.inputs.len();
    let a = selected(arena, needs, aux, a_density, |arena, selected| {
        selected.sum::<G1>(arena, resident.a.global().offset(inputs))
    })?;
    drop(part);

    job.cancelled.check()?;
    let part = span.child("msm b");
    let dense = densities.b_inputs.count_ones();
    let (b_g1, b_g2): (G1Projective, G2Projective) =
        selected(arena, needs, aux, b_density, |arena, selected| {
            let in_g1 = part.time("g1", || {
                selected.sum::<G1>(arena, resident.b_g1.global().offset(dense))
            })?;
            let in_g2 = part.time("g2", || {
                selected.sum::<G2>(arena, resident.b_g2.global().offset(dense))
            })?;
            Ok((in_g1, in_g2))
        })?;
    drop(part);
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
    job: &Job,
    needs: &Needs,
    kept: Kept<'_>,
    aux: DeviceWitness,
    arena: &mut Arena,
    span: &Span,
) -> Result<G1Projective, Box<dyn Error + Send + Sync>> {
    let Kept {
        resident,
        tables,
        quotient,
    } = kept;
    job.cancelled.check()?;
    let n = 1usize << quotient.log2();
    let runtime = arena.runtime().clone();
    let [a, b, c] = [arena.take::<Fr>(n)?, arena.take(n)?, arena.take(n)?];
    match tables {
        Some(tables) => {
            let _part = span.child("evaluate");
            let inputs = &job.assignment.witness.inputs;
            tables.run(arena, inputs, aux, [a, b], n)?;
        }
        None => {
            let part = span.child("upload a and b");
            padded(&runtime, &job.assignment.a, a, n)?;
            padded(&runtime, &job.assignment.b, b, n)?;
            part.note("bytes", 64 * n as u64);
        }
    }
    let part = span.child("quotient");
    quotient.run(a, b, c)?;
    runtime.synchronize()?;
    drop(part);
    job.cancelled.check()?;
    let part = span.child("msm h");
    part.note("points", resident.h.len() as u64);
    let scalars = Scalars {
        values: b.read(),
        map: None,
    };
    let sorted = part.time("sort", || Sorted::new(arena, &needs.h, scalars))?;
    Ok(part.time("sum", || sorted.sum::<G1>(arena, resident.h.global()))?)
}

/// Copies `values` to `array`, and zeros up to `n` elements.
fn padded(
    runtime: &Arc<dyn Runtime>,
    values: &[Scalar],
    array: GlobalMut<Fr>,
    n: usize,
) -> Result<(), RuntimeError> {
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

/// Which private variables have a base.
#[derive(Clone, Copy)]
enum Density<'d> {
    All,
    OnHost(&'d Bitmap),
    OnDevice(Global<[u32; 4]>),
}

/// Runs `work` on the private variables that have a base.
fn selected<T>(
    arena: &mut Arena,
    needs: &Needs,
    aux: DeviceWitness,
    density: Density<'_>,
    work: impl FnOnce(&mut Arena, &Selected) -> Result<T, MsmError>,
) -> Result<T, MsmError> {
    let mark = arena.mark();
    let density = match density {
        Density::All => None,
        Density::OnHost(bitmap) => Some(upload_bitmap(arena, bitmap)?),
        Density::OnDevice(bitmap) => Some(bitmap),
    };
    let bitmaps = Bitmaps {
        len: aux.len,
        bits: aux.bits,
        others: aux.others,
        density,
    };
    let selection = Selection::new(arena, bitmaps, aux.others_len)?;
    let scalars = Scalars {
        values: aux.values,
        map: Some(selection.map.read()),
    };
    let sorted = Sorted::new(arena, &needs.others, scalars)?;
    let outcome = work(arena, &Selected { selection, sorted });
    arena.rewind(mark);
    outcome
}

/// Ones and others with the numbers of their bases, sorted once for all base sets.
struct Selected {
    selection: Selection,
    sorted: Sorted,
}

impl Selected {
    fn sum<C: GpuCurve>(
        &self,
        arena: &mut Arena,
        bases: Global<cuzk_field::Affine<C>>,
    ) -> Result<C::Host, MsmError> {
        let (ones, count) = (self.selection.ones.read(), self.selection.ones_len);
        let ones = sum_of_points::<C>(arena, ones, count, bases)?;
        Ok(ones + self.sorted.sum::<C>(arena, bases)?)
    }
}
