//! The quotient and the multi-scalar multiplications of one proof on a device.

use std::{error::Error, thread};

use blstrs::{G1Projective, G2Projective, Scalar};
use bytemuck::Pod;
use cuzk_circuit::{Assignment, Bitmap, CompactScalars};
use cuzk_field::{Fr, G1, G2, casts};
use cuzk_kernels::runtime::{Arena, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut};
use rayon::prelude::*;

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
        let domain = 3 * Arena::bytes::<Fr>(counts.h + 1);
        let kept = 3 * bitmap_bytes(aux.len())
            + Arena::bytes::<Fr>(others)
            + Selection::bytes(len, others as u32);
        let left = |taken: u64| {
            room.checked_sub(taken).ok_or(MsmError::Memory {
                needed: taken,
                limit: room,
            })
        };
        let h = Plan::new::<G1>(counts.h, multiprocessors, left(domain)?)?;
        let others = Plan::new::<G2>(others, multiprocessors, left(kept)?)?;
        let ones = aux.bits().count_ones() as u32;
        let adding = match ones {
            0 => 0,
            _ => sum_of_points_bytes::<G1>(ones, multiprocessors)
                .max(sum_of_points_bytes::<G2>(ones, multiprocessors)),
        };
        let values = (others.kept_bytes() + adding)
            .max(others.bytes::<G1>())
            .max(others.bytes::<G2>());
        let bytes = (domain + h.bytes::<G1>()).max(kept + values);
        if bytes > room {
            return Err(MsmError::Memory {
                needed: bytes,
                limit: room,
            });
        }
        Ok(Needs { h, others, bytes })
    }
}

/// Computes all sums of a proof.
///
/// # Errors
/// When the device fails, or nobody waits for the proof any more.
pub fn sums(
    job: &Job,
    needs: &Needs,
    resident: &Resident,
    quotient: &Quotient,
    arena: &mut Arena,
    span: &Span,
) -> Result<Sums, Box<dyn Error + Send + Sync>> {
    let points = job.params.decode(crate::SubgroupCheck::Full)?;
    thread::scope(|scope| {
        // The few inputs are summed on the host while the device works.
        let inputs = scope.spawn(|| Inputs::sum(points, &job.assignment));
        let mut sums = device_sums(job, needs, resident, quotient, arena, span)?;
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
    resident: &Resident,
    quotient: &Quotient,
    arena: &mut Arena,
    span: &Span,
) -> Result<Sums, Box<dyn Error + Send + Sync>> {
    let h = sum_h(job, needs, resident, quotient, arena, span)?;
    arena.reset();
    let part = span.child("upload witness");
    let Assignment {
        witness, densities, ..
    } = &job.assignment;
    let aux = Aux::upload(arena, &witness.aux)?;
    drop(part);

    job.cancelled.check()?;
    let part = span.child("msm l");
    let l = aux.selected(arena, needs, None, |arena, selected| {
        selected.sum::<G1>(arena, resident.l.global())
    })?;
    drop(part);

    job.cancelled.check()?;
    let part = span.child("msm a");
    let inputs = witness.inputs.len();
    let a = aux.selected(arena, needs, Some(&densities.a_aux), |arena, selected| {
        selected.sum::<G1>(arena, resident.a.global().offset(inputs))
    })?;
    drop(part);

    job.cancelled.check()?;
    let part = span.child("msm b");
    let dense = densities.b_inputs.count_ones();
    let (b_g1, b_g2): (G1Projective, G2Projective) =
        aux.selected(arena, needs, Some(&densities.b_aux), |arena, selected| {
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
    resident: &Resident,
    quotient: &Quotient,
    arena: &mut Arena,
    span: &Span,
) -> Result<G1Projective, Box<dyn Error + Send + Sync>> {
    job.cancelled.check()?;
    let n = 1usize << quotient.log2();
    let runtime = arena.runtime().clone();
    let part = span.child("upload a and b");
    let a = padded(arena, &job.assignment.a, n)?;
    let b = padded(arena, &job.assignment.b, n)?;
    let c = arena.take::<Fr>(n)?;
    part.note("bytes", 64 * n as u64);
    drop(part);
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

/// `values` and zeros up to `n` elements, on the device.
fn padded(arena: &mut Arena, values: &[Scalar], n: usize) -> Result<GlobalMut<Fr>, RuntimeError> {
    let array = arena.take::<Fr>(n)?;
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
    Ok(array)
}

/// The private variables on the device.
struct Aux {
    len: u32,
    others_len: u32,
    bits: Global<[u32; 4]>,
    others: Global<[u32; 4]>,
    values: Global<Fr>,
}

impl Aux {
    fn upload(arena: &mut Arena, aux: &CompactScalars) -> Result<Self, RuntimeError> {
        let bits = upload_bitmap(arena, aux.bits())?;
        let others = upload_bitmap(arena, aux.is_other())?;
        let values = upload(arena, casts::from_blst::<Fr>(aux.others()))?;
        Ok(Aux {
            len: aux.len() as u32,
            others_len: aux.others().len() as u32,
            bits,
            others,
            values,
        })
    }

    /// Runs `work` on the variables that have a base.
    fn selected<T>(
        &self,
        arena: &mut Arena,
        needs: &Needs,
        density: Option<&Bitmap>,
        work: impl FnOnce(&mut Arena, &Selected) -> Result<T, MsmError>,
    ) -> Result<T, MsmError> {
        let mark = arena.mark();
        let density = density
            .map(|bitmap| upload_bitmap(arena, bitmap))
            .transpose()?;
        let bitmaps = Bitmaps {
            len: self.len,
            bits: self.bits,
            others: self.others,
            density,
        };
        let selection = Selection::new(arena, bitmaps, self.others_len)?;
        let scalars = Scalars {
            values: self.values,
            map: Some(selection.map.read()),
        };
        let sorted = Sorted::new(arena, &needs.others, scalars)?;
        let outcome = work(arena, &Selected { selection, sorted });
        arena.rewind(mark);
        outcome
    }
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

fn upload<T: Element + Pod>(arena: &mut Arena, values: &[T]) -> Result<Global<T>, RuntimeError> {
    let array = arena.take::<T>(values.len())?;
    arena
        .runtime()
        .upload(array.address(), bytemuck::cast_slice(values))?;
    Ok(array.read())
}

/// A bitmap in groups of 128 bits; the last one is filled with zeros.
fn upload_bitmap(arena: &mut Arena, bitmap: &Bitmap) -> Result<Global<[u32; 4]>, RuntimeError> {
    let words = bitmap.words();
    let array = arena.take::<[u32; 4]>(bitmap.len().div_ceil(128))?;
    let runtime = arena.runtime();
    runtime.upload(array.address(), bytemuck::cast_slice(words))?;
    if words.len() % 2 == 1 {
        runtime.zero(array.address() + 8 * words.len() as u64, 8)?;
    }
    Ok(array.read())
}

fn bitmap_bytes(bits: usize) -> u64 {
    Arena::bytes::<[u32; 4]>(bits.div_ceil(128))
}
