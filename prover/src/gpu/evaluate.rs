//! A·w and B·w on a device, from a compiled circuit's tables and the compact witness.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use blstrs::Scalar;
use cuzk_circuit::{
    Bitmap, CompactScalars, CompiledCircuit, Instance, Template, TermsView, Witness,
};
use cuzk_field::{Fr, casts};
use cuzk_kernels::evaluate::rank::{BLOCK_GROUPS, GROUP, evaluate_rank_count, evaluate_rank_write};
use cuzk_kernels::evaluate::rows::evaluate_rows;
use cuzk_kernels::evaluate::{
    CHUNK_ROWS, IN_TABLE, InstanceHead, MAX_POWER, MAX_TERMS, MINUS, SAFE_POWER, TemplateHead,
};
use cuzk_kernels::msm::rounds::msm_row_scan;
use cuzk_kernels::runtime::{Arena, DeviceBuffer, Runtime, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut};
use ff::Field;

/// Warps of a block of the evaluation.
const WARPS: u32 = evaluate_rows::THREADS / 32;

/// The tables of one compiled circuit on one device, and its densities.
pub struct CircuitTables {
    circuit: Weak<CompiledCircuit>,
    runtime: Arc<dyn Runtime>,
    constraints: usize,
    chunks: DeviceBuffer<[u32; 2]>,
    instances: DeviceBuffer<InstanceHead>,
    templates: DeviceBuffer<TemplateHead>,
    row_ends: DeviceBuffer<[u32; 2]>,
    a_terms: DeviceBuffer<[u32; 2]>,
    b_terms: DeviceBuffer<[u32; 2]>,
    outside: DeviceBuffer<u32>,
    coefficients: DeviceBuffer<Fr>,
    /// Private variables in A, in groups of 128 bits.
    pub a_aux: DeviceBuffer<[u32; 4]>,
    /// Private variables in B, in groups of 128 bits.
    pub b_aux: DeviceBuffer<[u32; 4]>,
}

/// A compact witness on the device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceWitness {
    /// Number of private variables.
    pub len: u32,
    /// Number of those that are neither 0 nor 1.
    pub others_len: u32,
    /// The private variables that are 1.
    pub bits: Global<[u32; 4]>,
    /// The private variables that are neither 0 nor 1.
    pub others: Global<[u32; 4]>,
    /// Their values in order.
    pub values: Global<Fr>,
}

impl DeviceWitness {
    /// Copies private variables to the device.
    ///
    /// # Errors
    /// When the device fails or the arena is too small.
    pub fn upload(arena: &mut Arena, aux: &CompactScalars) -> Result<Self, RuntimeError> {
        Self::upload_part(arena, aux, 0..aux.len(), 0..aux.others().len())
    }

    /// Copies the private variables `range` to the device, which begin at a multiple of 128 and have these
    /// of the others.
    ///
    /// # Errors
    /// When the device fails or the arena is too small.
    pub fn upload_part(
        arena: &mut Arena,
        aux: &CompactScalars,
        range: Range<usize>,
        of_others: Range<usize>,
    ) -> Result<Self, RuntimeError> {
        let bits = upload_bitmap(arena, aux.bits(), range.clone())?;
        let others = upload_bitmap(arena, aux.is_other(), range.clone())?;
        let values = arena.take::<Fr>(of_others.len())?;
        let found = &aux.others()[of_others.clone()];
        let bytes = bytemuck::cast_slice(casts::from_blst::<Fr>(found));
        arena.runtime().upload(values.address(), bytes)?;
        Ok(DeviceWitness {
            len: range.len() as u32,
            others_len: of_others.len() as u32,
            bits,
            others,
            values: values.read(),
        })
    }

    /// Arena bytes that [`Self::upload`] takes for `len` variables, `others` of them not bits.
    pub fn bytes(len: usize, others: usize) -> u64 {
        2 * bitmap_bytes(len) + Arena::bytes::<Fr>(others)
    }
}

/// Bits of a bitmap from a multiple of 128 on, in groups of 128 bits; the last one is filled with zeros.
///
/// # Errors
/// When the device fails or the arena is too small.
pub fn upload_bitmap(
    arena: &mut Arena,
    bitmap: &Bitmap,
    range: Range<usize>,
) -> Result<Global<[u32; 4]>, RuntimeError> {
    let array = arena.take::<[u32; 4]>(groups(range.len()))?;
    copy_bitmap(arena.runtime(), array, bitmap, range)?;
    Ok(array.read())
}

/// Arena bytes of a bitmap.
pub fn bitmap_bytes(bits: usize) -> u64 {
    Arena::bytes::<[u32; 4]>(groups(bits))
}

fn groups(bits: usize) -> usize {
    bits.div_ceil(GROUP as usize)
}

fn copy_bitmap(
    runtime: &Arc<dyn Runtime>,
    array: GlobalMut<[u32; 4]>,
    bitmap: &Bitmap,
    range: Range<usize>,
) -> Result<(), RuntimeError> {
    let words = &bitmap.words()[range.start / 64..range.end.div_ceil(64)];
    runtime.upload(array.address(), bytemuck::cast_slice(words))?;
    if words.len() % 2 == 1 {
        runtime.zero(array.address() + 8 * words.len() as u64, 8)?;
    }
    Ok(())
}

impl CircuitTables {
    /// Copies a circuit's tables to the device.
    ///
    /// # Errors
    /// When the device fails or has no room.
    pub fn new(
        runtime: &Arc<dyn Runtime>,
        circuit: &Arc<CompiledCircuit>,
    ) -> Result<Self, RuntimeError> {
        let codes = Codes::new(circuit);
        let templates = templates(circuit);
        let instances: Vec<InstanceHead> = circuit.instances().iter().map(instance).collect();
        let density = |bitmap: &Bitmap| {
            let buffer = DeviceBuffer::new(runtime, groups(bitmap.len()))?;
            copy_bitmap(runtime, buffer.global_mut(), bitmap, 0..bitmap.len())?;
            Ok(buffer)
        };
        let upload = |terms: Vec<[u32; 2]>| DeviceBuffer::from_slice(runtime, &terms);
        Ok(CircuitTables {
            circuit: Arc::downgrade(circuit),
            runtime: runtime.clone(),
            constraints: circuit.shape().constraints,
            chunks: upload(chunks(&templates, &instances))?,
            row_ends: DeviceBuffer::from_slice(runtime, circuit.row_ends())?,
            a_terms: upload(codes.terms(circuit, 0))?,
            b_terms: upload(codes.terms(circuit, 1))?,
            outside: DeviceBuffer::from_slice(runtime, circuit.outside())?,
            coefficients: DeviceBuffer::from_slice(runtime, &codes.table)?,
            a_aux: density(&circuit.densities().a_aux)?,
            b_aux: density(&circuit.densities().b_aux)?,
            instances: DeviceBuffer::from_slice(runtime, &instances)?,
            templates: DeviceBuffer::from_slice(runtime, &templates)?,
        })
    }

    /// Whether these are the tables of `circuit`.
    pub fn is_for(&self, circuit: &Arc<CompiledCircuit>) -> bool {
        std::ptr::eq(self.circuit.as_ptr(), Arc::as_ptr(circuit))
    }

    /// Device memory that the tables of a circuit take.
    pub fn bytes_for(circuit: &CompiledCircuit) -> u64 {
        let templates = circuit.templates();
        let chunks = circuit.instances().iter().map(|instance| {
            let rows = templates[instance.template as usize].rows;
            u64::from(rows.div_ceil(CHUNK_ROWS))
        });
        let pairs = chunks.sum::<u64>()
            + (circuit.row_ends().len()
                + circuit.a_terms().variables.len()
                + circuit.b_terms().variables.len()) as u64;
        let heads = u64::from(InstanceHead::BYTES) * circuit.instances().len() as u64
            + u64::from(TemplateHead::BYTES) * templates.len() as u64;
        let coefficients = 1 + MAX_POWER as usize + circuit.coefficients().len();
        8 * pairs
            + heads
            + 4 * circuit.outside().len() as u64
            + u64::from(Fr::BYTES) * coefficients as u64
            + 2 * 16 * groups(circuit.shape().aux) as u64
    }

    /// Device memory that the tables take.
    pub fn bytes(&self) -> u64 {
        fn of<T: Element + bytemuck::Pod>(buffer: &DeviceBuffer<T>) -> u64 {
            u64::from(T::BYTES) * buffer.len() as u64
        }
        let terms = of(&self.a_terms) + of(&self.b_terms) + of(&self.outside);
        let heads = of(&self.chunks) + of(&self.instances) + of(&self.templates);
        let densities = of(&self.a_aux) + of(&self.b_aux);
        terms + heads + densities + of(&self.row_ends) + of(&self.coefficients)
    }

    /// Fills `a` and `b`, `n` elements each, with A·w and B·w: one value a constraint, then the inputs in
    /// `a` and zeros. `inputs` and `witness` have the counts of the circuit. Values are canonical.
    ///
    /// # Errors
    /// When the device fails or the arena is too small.
    pub fn run(
        &self,
        arena: &mut Arena,
        inputs: &[Scalar],
        witness: DeviceWitness,
        [a, b]: [GlobalMut<Fr>; 2],
        n: usize,
    ) -> Result<(), RuntimeError> {
        let mark = arena.mark();
        let ranks = ranks(arena, witness)?;
        let input_values = arena.take::<Fr>(inputs.len())?;
        let runtime = arena.runtime();
        let bytes: &[u8] = bytemuck::cast_slice(casts::from_blst::<Fr>(inputs));
        runtime.upload(input_values.address(), bytes)?;
        let count = self.chunks.len() as u32;
        if count > 0 {
            runtime.launch(&evaluate_rows::launch(
                count.div_ceil(WARPS),
                count,
                self.chunks.global(),
                self.instances.global(),
                self.templates.global(),
                self.row_ends.global(),
                self.a_terms.global(),
                self.b_terms.global(),
                self.outside.global(),
                self.coefficients.global(),
                witness.bits,
                witness.others,
                ranks.read(),
                witness.values,
                input_values.read(),
                a,
                b,
            ))?;
        }
        let size = u64::from(Fr::BYTES);
        let appended = a.offset(self.constraints).address();
        runtime.copy(appended, input_values.address(), bytes.len() as u64)?;
        for (array, start) in [(a, self.constraints + inputs.len()), (b, self.constraints)] {
            if start < n {
                runtime.zero(array.offset(start).address(), size * (n - start) as u64)?;
            }
        }
        arena.rewind(mark);
        Ok(())
    }

    /// Arena bytes that [`Self::run`] takes for the time of the evaluation.
    pub fn scratch_bytes(aux: usize, inputs: usize) -> u64 {
        let groups = groups(aux);
        Arena::bytes::<u32>(groups)
            + Arena::bytes::<u32>(groups.div_ceil(BLOCK_GROUPS as usize))
            + Arena::bytes::<u32>(1)
            + Arena::bytes::<Fr>(inputs)
    }
}

/// A compiled circuit on a device with memory of its own: witness in, A·w and B·w out.
///
/// Proofs evaluate in the memory of the proof instead; this is for measurements and tests.
pub struct Evaluator {
    tables: CircuitTables,
    arena: Arena,
    /// Elements of each side: the circuit's domain.
    n: usize,
    sides: Option<[GlobalMut<Fr>; 2]>,
}

impl Evaluator {
    /// Copies the circuit's tables to the device.
    ///
    /// # Errors
    /// When the device fails or has no room.
    pub fn new(
        runtime: &Arc<dyn Runtime>,
        circuit: &Arc<CompiledCircuit>,
    ) -> Result<Self, RuntimeError> {
        Ok(Evaluator {
            tables: CircuitTables::new(runtime, circuit)?,
            arena: Arena::new(runtime, 0)?,
            n: 1 << circuit.shape().domain_log2(),
            sides: None,
        })
    }

    /// Evaluates a witness of the circuit and waits for the end; answers the device time of the
    /// evaluation, without the copy of the witness.
    ///
    /// # Errors
    /// When the device fails or has no room.
    pub fn run(&mut self, witness: &Witness) -> Result<Duration, RuntimeError> {
        let (aux, inputs) = (&witness.aux, &witness.inputs);
        let bytes = DeviceWitness::bytes(aux.len(), aux.others().len())
            + 2 * Arena::bytes::<Fr>(self.n)
            + CircuitTables::scratch_bytes(aux.len(), inputs.len());
        self.sides = None;
        if self.arena.size() < bytes {
            self.arena = Arena::new(&self.tables.runtime, bytes)?;
        }
        self.arena.reset();
        let on_device = DeviceWitness::upload(&mut self.arena, aux)?;
        let sides = [self.arena.take(self.n)?, self.arena.take(self.n)?];
        let runtime = self.tables.runtime.clone();
        let from = runtime.mark()?;
        let arena = &mut self.arena;
        self.tables.run(arena, inputs, on_device, sides, self.n)?;
        let time = runtime.elapsed(&from, &runtime.mark()?)?;
        self.sides = Some(sides);
        Ok(time)
    }

    /// Whether the last run's A·w (`b` false) or B·w (`b` true) is `expected` followed by zeros.
    ///
    /// # Errors
    /// When the device fails.
    pub fn holds(&self, b: bool, expected: &[Scalar]) -> Result<bool, RuntimeError> {
        const PIECE: usize = 1 << 20;
        let Some(sides) = self.sides else {
            return Ok(false);
        };
        let side = sides[usize::from(b)];
        let mut found = vec![Fr::ZERO; PIECE.min(self.n)];
        for at in (0..self.n).step_by(PIECE) {
            let found = &mut found[..PIECE.min(self.n - at)];
            let address = side.offset(at).address();
            self.tables
                .runtime
                .download(address, bytemuck::cast_slice_mut(found))?;
            let expected = expected
                .iter()
                .skip(at)
                .chain(std::iter::repeat(&Scalar::ZERO));
            if !casts::to_blst(found)
                .iter()
                .zip(expected)
                .all(|(x, y)| x == y)
            {
                return Ok(false);
            }
        }
        Ok(self.n >= expected.len())
    }

    /// Bytes of device memory: tables, witness and both sides.
    pub fn bytes(&self) -> u64 {
        self.tables.bytes() + self.arena.size()
    }

    /// Bytes of the tables alone.
    pub fn table_bytes(&self) -> u64 {
        self.tables.bytes()
    }

    /// The device's name.
    pub fn name(&self) -> String {
        self.tables.runtime.name()
    }
}

/// The number of others before each group of private variables.
fn ranks(arena: &mut Arena, witness: DeviceWitness) -> Result<GlobalMut<u32>, RuntimeError> {
    let groups = witness.len.div_ceil(GROUP);
    let blocks = groups.div_ceil(BLOCK_GROUPS);
    let ranks = arena.take::<u32>(groups as usize)?;
    let counts = arena.take::<u32>(blocks as usize)?;
    let total = arena.take::<u32>(1)?;
    if blocks > 0 {
        let runtime = arena.runtime();
        let others = witness.others;
        runtime.launch(&evaluate_rank_count::launch(blocks, groups, others, counts))?;
        runtime.launch(&msm_row_scan::launch(1, blocks, counts, total))?;
        let write = evaluate_rank_write::launch(blocks, groups, others, counts.read(), ranks);
        runtime.launch(&write)?;
    }
    Ok(ranks)
}

fn instance(instance: &Instance) -> InstanceHead {
    InstanceHead {
        template: instance.template,
        first_row: instance.first_row,
        aux_base: instance.aux_base,
        outside_start: instance.outside_start,
    }
}

fn templates(circuit: &CompiledCircuit) -> Vec<TemplateHead> {
    let head = |template: &Template| TemplateHead {
        rows_start: template.rows_start,
        a_start: template.a_start,
        b_start: template.b_start,
        rows: template.rows,
        outside: template.outside,
    };
    circuit.templates().iter().map(head).collect()
}

/// Instances cut into pieces: (instance, first of its rows).
fn chunks(templates: &[TemplateHead], instances: &[InstanceHead]) -> Vec<[u32; 2]> {
    let mut chunks = Vec::new();
    for (k, instance) in instances.iter().enumerate() {
        let rows = templates[instance.template as usize].rows;
        let firsts = (0..rows).step_by(CHUNK_ROWS as usize);
        chunks.extend(firsts.map(|first| [k as u32, first]));
    }
    chunks
}

/// The coefficients as the device reads them.
struct Codes {
    /// Powers of two, then the circuit's table.
    table: Vec<Fr>,
    /// The code of each entry of the circuit's table.
    codes: Vec<u32>,
}

impl Codes {
    fn new(circuit: &CompiledCircuit) -> Self {
        let powers: Vec<Scalar> = std::iter::successors(Some(Scalar::ONE), |x| Some(x.double()))
            .take(1 + MAX_POWER as usize)
            .collect();
        let largest = match longest_row(circuit) < MAX_TERMS {
            true => MAX_POWER,
            false => SAFE_POWER,
        };
        let machine = &powers[..=largest as usize];
        let in_table = |k: usize| IN_TABLE | (powers.len() + k) as u32;
        let code = |(k, coefficient): (usize, &Scalar)| {
            let power = |x: &Scalar| machine.iter().position(|power| power == x);
            match (power(coefficient), power(&-*coefficient)) {
                (Some(power), _) => power as u32,
                (None, Some(power)) => MINUS | power as u32,
                (None, None) => in_table(k),
            }
        };
        let codes = circuit.coefficients().iter().enumerate().map(code);
        let codes = codes.collect();
        let mut table = casts::from_blst::<Fr>(&powers).to_vec();
        table.extend_from_slice(casts::from_blst::<Fr>(circuit.coefficients()));
        Codes { table, codes }
    }

    /// Terms of one side of all templates: variable and code.
    fn terms(&self, circuit: &CompiledCircuit, side: usize) -> Vec<[u32; 2]> {
        let TermsView {
            variables,
            coefficients,
        } = [circuit.a_terms(), circuit.b_terms()][side];
        let mut terms = vec![[0; 2]; variables.len()];
        for template in circuit.templates() {
            let Some(ends) = ends_of(circuit, template).last() else {
                continue;
            };
            let start = [template.a_start, template.b_start][side] as usize;
            for k in start..start + ends[side] as usize {
                let entry = template.page as usize + usize::from(coefficients[k]);
                terms[k] = [variables[k], self.codes[entry]];
            }
        }
        terms
    }
}

fn ends_of<'c>(circuit: &'c CompiledCircuit, template: &Template) -> &'c [[u32; 2]] {
    let start = template.rows_start as usize;
    &circuit.row_ends()[start..start + template.rows as usize]
}

/// Terms of the longest side of any row.
fn longest_row(circuit: &CompiledCircuit) -> u32 {
    let longest = |template: &Template| {
        let mut start = [0; 2];
        let lengths = ends_of(circuit, template).iter().map(|end| {
            let [a, b] = [0, 1].map(|side| end[side] - start[side]);
            start = *end;
            a.max(b)
        });
        lengths.max()
    };
    circuit
        .templates()
        .iter()
        .filter_map(longest)
        .max()
        .unwrap_or(0)
}
