//! Records a circuit's A and B, and C on request, as blocks, recognising repetition while it happens.
//!
//! Each namespace is a candidate block. When it ends, its rows are rewritten relative to its
//! first private variable and its outside references, looked up among the blocks already known,
//! and replaced by one reference to that block. So memory follows the number of distinct blocks,
//! not the number of rows; a circuit without repetition costs what its rows cost.

use super::CompiledError;
use super::blocks::Blocks;
use super::coefficients::Coefficients;
use super::items::{Item, Items, ONE, OUTSIDE, begin_row, end_row, push_mapped};
use super::outside::OutsideMap;
use crate::stream::ConstraintVisitor;
use crate::{CircuitError, Scalar};
use bellpepper_core::LinearCombination;
use ff::Field;

/// Namespaces with fewer rows stay part of the namespace around them.
const MIN_BLOCK_ROWS: u64 = 128;
/// A block must have at least this many terms for each outside reference.
const MIN_TERMS_PER_OUTSIDE: u64 = 4;

/// A recorded circuit: its blocks, the last of which is the whole.
pub(super) struct Recording {
    pub blocks: Blocks,
    pub coefficients: Coefficients,
    /// Whether C is recorded.
    pub with_c: bool,
    /// The block that is the whole circuit.
    pub root: u32,
    /// What the root's outside references stand for: inputs, as `OUTSIDE | i`.
    pub root_outside: Vec<u32>,
    pub constraints: u64,
    pub inputs: u32,
    pub aux: u32,
}

/// The visitor that records A and B, and C if `WITH_C`.
pub(super) struct Recorder<const WITH_C: bool> {
    log: Vec<u32>,
    open: Vec<Namespace>,
    blocks: Blocks,
    coefficients: Coefficients,
    outside: OutsideMap,
    relative: Vec<u32>,
    rows: u64,
    inputs: usize,
    aux: usize,
}

/// Where a namespace began.
struct Namespace {
    log: usize,
    aux: u32,
    rows: u64,
}

impl<const WITH_C: bool> Recorder<WITH_C> {
    pub fn new() -> Self {
        Self {
            log: Vec::new(),
            open: Vec::new(),
            blocks: Blocks::default(),
            coefficients: Coefficients::new(),
            outside: OutsideMap::new(),
            relative: Vec::new(),
            rows: 0,
            inputs: 0,
            aux: 0,
        }
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Result<Recording, CompiledError> {
        if self.inputs as u64 >= u64::from(OUTSIDE) || self.aux as u64 >= u64::from(OUTSIDE) {
            let rows = self.rows as usize;
            return Err(CircuitError::TooLarge { rows }.into());
        }
        self.make_relative(0, 0);
        let aux = self.aux as u32;
        let outside = self.outside.list().len() as u32;
        let root = self.blocks.intern(&self.relative, aux, outside);
        Ok(Recording {
            with_c: WITH_C,
            root,
            root_outside: self.outside.list().to_vec(),
            blocks: self.blocks,
            coefficients: self.coefficients,
            constraints: self.rows,
            inputs: self.inputs as u32,
            aux,
        })
    }

    /// Rewrites the log from `start` on relative to private variable `base`.
    fn make_relative(&mut self, start: usize, base: u32) {
        self.outside.clear();
        self.relative.clear();
        for item in Items(&self.log[start..]) {
            let map = |variable| self.outside.relative(variable, base);
            push_mapped(&mut self.relative, item, map, |at| at - base);
        }
    }

    /// Whether the log from `start` on is already one block.
    fn is_one_block(&self, start: usize) -> bool {
        let mut items = Items(&self.log[start..]);
        matches!(items.next(), Some(Item::Child { .. })) && items.next().is_none()
    }

    fn push_side(&mut self, lc: &LinearCombination<Scalar>) {
        for (&index, coefficient) in lc.iter_inputs() {
            if *coefficient != Scalar::ZERO {
                let id = self.coefficients.id(coefficient);
                self.log.extend_from_slice(&[OUTSIDE | index as u32, id]);
            }
        }
        for (&index, coefficient) in lc.iter_aux() {
            if *coefficient != Scalar::ZERO {
                let id = self.coefficients.id(coefficient);
                self.log.extend_from_slice(&[index as u32 & !OUTSIDE, id]);
            }
        }
    }
}

// The constant one is input 0.
const _: () = assert!(ONE == OUTSIDE);

impl<const WITH_C: bool> ConstraintVisitor for Recorder<WITH_C> {
    const READS_C: bool = WITH_C;

    fn alloc_input(&mut self, _index: usize) {
        self.inputs += 1;
    }

    fn alloc_aux(&mut self, _index: usize) {
        self.aux += 1;
    }

    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    ) {
        let start = begin_row(&mut self.log, self.aux as u32);
        self.push_side(a);
        let a_end = self.log.len();
        self.push_side(b);
        let b_end = self.log.len();
        if WITH_C {
            self.push_side(c);
        }
        end_row(&mut self.log, start, a_end, b_end);
        self.rows += 1;
    }

    fn enter(&mut self) {
        self.open.push(Namespace {
            log: self.log.len(),
            aux: self.aux as u32,
            rows: self.rows,
        });
    }

    fn leave(&mut self) {
        let Some(namespace) = self.open.pop() else {
            return;
        };
        if self.rows - namespace.rows < MIN_BLOCK_ROWS || self.is_one_block(namespace.log) {
            return;
        }
        self.make_relative(namespace.log, namespace.aux);
        let (_, terms) = self.blocks.count(&self.relative);
        let outside = self.outside.list();
        if outside.len() as u64 * MIN_TERMS_PER_OUTSIDE > terms {
            return;
        }
        let aux = self.aux as u32 - namespace.aux;
        let block = self
            .blocks
            .intern(&self.relative, aux, outside.len() as u32);
        self.log.truncate(namespace.log);
        let item = Item::Child {
            block,
            base: namespace.aux,
            outside,
        };
        push_mapped(&mut self.log, item, |variable| variable, |at| at);
    }
}
