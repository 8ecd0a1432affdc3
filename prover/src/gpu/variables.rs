//! The sums over the private variables of one proof on a device, chunk by chunk.

use std::thread;

use blstrs::{G1Projective, G2Projective};
use bytemuck::Pod;
use cuzk_circuit::Assignment;
use cuzk_field::{Affine, G1, G2, casts};
use cuzk_kernels::Global;
use cuzk_kernels::runtime::{Arena, DeviceBuffer, RuntimeError};
use group::Group;

use super::evaluate::{DeviceWitness, upload_bitmap};
use super::msm::{Bitmaps, GpuCurve, MsmError, Scalars, Selection, Sorted, sum_of_ones};
use super::plan::{BaseSet, Chunk, GROUP, Position};
use super::proof::{AnyError, OnDevice};
use super::stage::{Bases, Slice};

/// The sums of the private variables.
pub struct OfVariables {
    /// Over [`crate::Points::l`].
    pub l: G1Projective,
    /// Over [`crate::Points::a`].
    pub a: G1Projective,
    /// Over [`crate::Points::b_g1`].
    pub b_g1: G1Projective,
    /// Over [`crate::Points::b_g2`].
    pub b_g2: G2Projective,
}

/// Which private variables have a base in a set.
#[derive(Clone, Copy)]
enum Density {
    All,
    A,
    B,
}

impl OnDevice<'_> {
    /// The sums over the private variables, chunk by chunk; `witness` holds all of them if there is only one
    /// chunk and they are there already.
    ///
    /// # Errors
    /// When the device fails, or nobody waits for the proof any more.
    pub fn sum_variables(
        self,
        arena: &mut Arena,
        witness: Option<DeviceWitness>,
    ) -> Result<OfVariables, AnyError> {
        let plan = &self.work.plan.variables;
        let chunks: Vec<Chunk> = self.work.blocks.chunks(plan.blocks).collect();
        let slices = chunks.iter().flat_map(|chunk| self.slices(chunk)).collect();
        let mut sums = OfVariables {
            l: G1Projective::identity(),
            a: G1Projective::identity(),
            b_g1: G1Projective::identity(),
            b_g2: G2Projective::identity(),
        };
        thread::scope(|scope| {
            let mut bases = Bases::start(scope, arena, slices, plan.stage_bytes)?;
            for chunk in &chunks {
                let mark = arena.mark();
                self.add_chunk(arena, chunk, witness, &mut bases, &mut sums)?;
                arena.rewind(mark);
            }
            Ok(sums)
        })
    }

    /// Where the private variables' bases begin in a set: behind those of the inputs.
    fn inputs_in(&self, set: BaseSet) -> usize {
        let Assignment {
            witness, densities, ..
        } = &self.work.job.assignment;
        match set {
            BaseSet::H | BaseSet::L => 0,
            BaseSet::A => witness.inputs.len(),
            BaseSet::BG1 | BaseSet::BG2 => densities.b_inputs.count_ones(),
        }
    }

    /// First base and number of bases that a chunk has in a set.
    fn bases_of(&self, set: BaseSet, chunk: &Chunk) -> (usize, usize) {
        let (start, counts) = (chunk.start, chunk.counts());
        let (first, len) = match set {
            BaseSet::H | BaseSet::L => (start.variables, counts.variables),
            BaseSet::A => (start.a, counts.a),
            BaseSet::BG1 | BaseSet::BG2 => (start.b, counts.b),
        };
        (self.inputs_in(set) + first, len)
    }

    /// What has to be brought to the device for a chunk, in order.
    fn slices(&self, chunk: &Chunk) -> Vec<Slice<'_>> {
        let streamed = self.work.plan.resident.complement();
        let sets = streamed.iter().filter(|&set| set != BaseSet::H);
        sets.map(|set| {
            let (first, len) = self.bases_of(set, chunk);
            let in_g1 = |points| Slice::new(casts::from_blst::<Affine<G1>>(points), first, 1, len);
            match set {
                BaseSet::H => in_g1(&self.points.h),
                BaseSet::L => in_g1(&self.points.l),
                BaseSet::A => in_g1(&self.points.a),
                BaseSet::BG1 => in_g1(&self.points.b_g1),
                BaseSet::BG2 => {
                    let points = casts::from_blst::<Affine<G2>>(&self.points.b_g2);
                    Slice::new(points, first, 1, len)
                }
            }
        })
        .collect()
    }

    /// A chunk's bases in a set.
    fn bases<C: GpuCurve>(
        &self,
        set: BaseSet,
        resident: Option<&DeviceBuffer<Affine<C>>>,
        chunk: &Chunk,
        bases: &mut Bases,
    ) -> Result<Global<Affine<C>>, RuntimeError>
    where
        Affine<C>: Pod,
    {
        match resident {
            Some(points) => Ok(points.global().offset(self.bases_of(set, chunk).0)),
            None => bases.next(),
        }
    }

    fn add_chunk(
        self,
        arena: &mut Arena,
        chunk: &Chunk,
        witness: Option<DeviceWitness>,
        staged: &mut Bases,
        sums: &mut OfVariables,
    ) -> Result<(), AnyError> {
        let (job, resident) = (self.work.job, self.work.resident);
        let aux = match witness {
            Some(witness) => witness,
            None => self.upload(arena, chunk)?,
        };
        let aux = (chunk, aux);
        job.cancelled.check()?;
        let part = self.span.child("msm l");
        sums.l += self.clock.time(&part, "device", || {
            let bases = self.bases(BaseSet::L, resident.l.as_ref(), chunk, staged)?;
            self.selected(arena, aux, Density::All, |arena, selected| {
                selected.sum::<G1>(arena, bases)
            })
        })?;
        drop(part);

        job.cancelled.check()?;
        let part = self.span.child("msm a");
        sums.a += self.clock.time(&part, "device", || {
            let bases = self.bases(BaseSet::A, resident.a.as_ref(), chunk, staged)?;
            self.selected(arena, aux, Density::A, |arena, selected| {
                selected.sum::<G1>(arena, bases)
            })
        })?;
        drop(part);

        job.cancelled.check()?;
        let part = self.span.child("msm b");
        let (in_g1, in_g2) = self.clock.time(&part, "device", || {
            self.selected(arena, aux, Density::B, |arena, selected| {
                let bases = self.bases(BaseSet::BG1, resident.b_g1.as_ref(), chunk, staged)?;
                let in_g1 = part.time("g1", || selected.sum::<G1>(arena, bases))?;
                let bases = self.bases(BaseSet::BG2, resident.b_g2.as_ref(), chunk, staged)?;
                let in_g2 = part.time("g2", || selected.sum::<G2>(arena, bases))?;
                Ok((in_g1, in_g2))
            })
        })?;
        sums.b_g1 += in_g1;
        sums.b_g2 += in_g2;
        Ok(())
    }

    /// All private variables on the device.
    ///
    /// # Errors
    /// When the device fails or the arena is full.
    pub fn upload_all(&self, arena: &mut Arena) -> Result<DeviceWitness, RuntimeError> {
        let total = self.work.blocks.total();
        let start = Position::default();
        self.upload(arena, &Chunk { start, end: total })
    }

    /// A chunk's values on the device.
    fn upload(&self, arena: &mut Arena, chunk: &Chunk) -> Result<DeviceWitness, RuntimeError> {
        let aux = &self.work.job.assignment.witness.aux;
        let (start, end) = (chunk.start, chunk.end);
        let part = self.span.child("upload witness");
        part.note(
            "bytes",
            DeviceWitness::bytes(chunk.counts().variables, chunk.counts().others),
        );
        self.clock.time(&part, "device", || {
            let others = start.others..end.others;
            DeviceWitness::upload_part(arena, aux, start.variables..end.variables, others)
        })
    }

    /// Which of a chunk's variables have a base, as bits on the device.
    fn density(
        &self,
        arena: &mut Arena,
        density: Density,
        chunk: &Chunk,
    ) -> Result<Option<Global<[u32; 4]>>, RuntimeError> {
        let densities = &self.work.job.assignment.densities;
        let tables = self.work.circuit;
        let (bitmap, kept) = match density {
            Density::All => return Ok(None),
            Density::A => (&densities.a_aux, tables.map(|tables| &tables.a_aux)),
            Density::B => (&densities.b_aux, tables.map(|tables| &tables.b_aux)),
        };
        let range = chunk.start.variables..chunk.end.variables;
        match kept {
            Some(kept) => Ok(Some(kept.global().offset(range.start / GROUP))),
            None => upload_bitmap(arena, bitmap, range).map(Some),
        }
    }

    /// Runs `work` on the variables of a chunk that have a base.
    fn selected<T>(
        &self,
        arena: &mut Arena,
        (chunk, aux): (&Chunk, DeviceWitness),
        density: Density,
        work: impl FnOnce(&mut Arena, &Selected) -> Result<T, MsmError>,
    ) -> Result<T, MsmError> {
        let mark = arena.mark();
        let density = self.density(arena, density, chunk)?;
        let counts = chunk.counts();
        let bitmaps = Bitmaps {
            len: aux.len,
            bits: aux.bits,
            others: aux.others,
            density,
        };
        let selection = Selection::new(arena, bitmaps, counts.others as u32)?;
        let scalars = Scalars {
            values: aux.values,
            map: Some(selection.map.read()),
        };
        let plan = self.sum_plan::<G2>(arena, counts.others, self.work.plan.variables.bits)?;
        let sorted = Sorted::new(arena, &plan, scalars)?;
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
        bases: Global<Affine<C>>,
    ) -> Result<C::Host, MsmError> {
        let (ones, count) = (self.selection.ones.read(), self.selection.ones_len);
        let ones = sum_of_ones::<C>(arena, ones, count, bases)?;
        Ok(ones + self.sorted.sum::<C>(arena, bases)?)
    }
}
