//! Turns recorded blocks into templates and instances.
//!
//! A block is stored whole, as one template, when that takes fewer bytes over all its
//! occurrences than its parts would; otherwise it falls into the blocks that it contains and the
//! stretches of rows between them.

use super::CompiledError;
use super::blocks::Blocks;
use super::items::{Item, Items, push_mapped, resolve, terms};
use super::outside::OutsideMap;
use super::recorder::Recording;
use super::repeats;
use std::collections::HashSet;
use std::ops::Range;

/// Largest number of rows of a template: bounds the work of one instance.
pub(super) const MAX_ROWS: u64 = 1 << 16;
/// Largest number of rows of a block that stays whole although it occurs once.
const MAX_SINGLE_ROWS: u64 = 1 << 12;
/// Stretches of rows are looked through for repetition in portions of this many rows.
const MAX_RUN_ROWS: usize = 1 << 20;
/// Coefficients that one template can name.
pub(super) const PAGE: usize = 1 << 16;

const TERM_BYTES: u64 = 6;
const ROW_BYTES: u64 = 8;
const INSTANCE_BYTES: u64 = 16;
const OUTSIDE_BYTES: u64 = 4;

/// A part of a block or of the circuit: an instance of a template.
pub(super) struct Part {
    pub template: u32,
    pub row: u32,
    pub base: u32,
    /// Its outside references, in [`Flat::outside`].
    pub outside: Range<usize>,
}

/// A block or circuit as parts in the order of their rows, in the block's coordinates.
#[derive(Default)]
pub(super) struct Flat {
    pub parts: Vec<Part>,
    pub outside: Vec<u32>,
}

impl Flat {
    fn push(&mut self, template: u32, row: u64, base: u32, outside: impl Iterator<Item = u32>) {
        let start = self.outside.len();
        self.outside.extend(outside);
        self.parts.push(Part {
            template,
            row: row as u32,
            base,
            outside: start..self.outside.len(),
        });
    }
}

/// The templates (as blocks without children) and the circuit's parts over them.
pub(super) fn flatten(recording: &Recording) -> Result<(Blocks, Flat), CompiledError> {
    let plan = Plan::new(recording);
    let mut flattener = Flattener {
        recording,
        templates: Blocks::default(),
        map: OutsideMap::new(),
        flat: Vec::new(),
    };
    for (id, needed) in plan.needed.iter().enumerate() {
        let flat = match (needed, plan.whole[id]) {
            (false, _) => Flat::default(),
            (true, true) => flattener.whole(id as u32),
            (true, false) => flattener.split(id as u32)?,
        };
        flattener.flat.push(flat);
    }
    let root = flattener.flat.swap_remove(recording.root as usize);
    Ok((flattener.templates, root))
}

/// Which blocks become templates.
struct Plan {
    whole: Vec<bool>,
    /// Blocks that are not merely inside a template.
    needed: Vec<bool>,
}

impl Plan {
    fn new(recording: &Recording) -> Self {
        let blocks = recording.blocks.list();
        let occurrences = occurrences(recording);
        let many_coefficients = recording.coefficients.list().len() > PAGE;
        let mut whole = Vec::with_capacity(blocks.len());
        // Bytes of each block's templates, and bytes that each occurrence adds.
        let mut costs: Vec<(u64, u64)> = Vec::with_capacity(blocks.len());
        for (id, block) in blocks.iter().enumerate() {
            let as_whole = (
                TERM_BYTES * block.terms + ROW_BYTES * block.rows,
                INSTANCE_BYTES + OUTSIDE_BYTES * u64::from(block.outside),
            );
            let as_parts = parts_cost(block.items(), &costs);
            let total = |(once, each): (u64, u64)| once + each * occurrences[id].max(1);
            let limit = match occurrences[id] {
                0 | 1 => MAX_SINGLE_ROWS,
                _ => MAX_ROWS,
            };
            let fits = (1..=limit).contains(&block.rows)
                && (!many_coefficients || block.terms <= PAGE as u64);
            let is_whole = fits && total(as_whole) <= total(as_parts);
            whole.push(is_whole);
            costs.push(if is_whole { as_whole } else { as_parts });
        }
        let mut needed = vec![false; blocks.len()];
        needed[recording.root as usize] = true;
        for id in (0..blocks.len()).rev() {
            if needed[id] && !whole[id] {
                for_each_child(blocks[id].items(), |child| needed[child as usize] = true);
            }
        }
        Self { whole, needed }
    }
}

fn for_each_child(items: Items<'_>, mut visit: impl FnMut(u32)) {
    for item in items {
        if let Item::Child { block, .. } = item {
            visit(block);
        }
    }
}

/// How often each block occurs in the circuit.
fn occurrences(recording: &Recording) -> Vec<u64> {
    let blocks = recording.blocks.list();
    let mut occurrences = vec![0u64; blocks.len()];
    occurrences[recording.root as usize] = 1;
    for (id, block) in blocks.iter().enumerate().rev() {
        let times = occurrences[id];
        for_each_child(block.items(), |child| occurrences[child as usize] += times);
    }
    occurrences
}

/// Cost of a block that falls into its parts; about half of the terms of its own rows are
/// counted as outside references.
fn parts_cost(items: Items<'_>, costs: &[(u64, u64)]) -> (u64, u64) {
    let (mut once, mut each) = (0, 0);
    let mut seen = HashSet::new();
    let mut in_run = false;
    for item in items {
        match item {
            Item::Row { a, b, c, .. } => {
                let terms = (a.len() + b.len() + c.len()) as u64 / 2;
                once += ROW_BYTES + TERM_BYTES * terms;
                each += OUTSIDE_BYTES * terms / 2 + if in_run { 0 } else { INSTANCE_BYTES };
                in_run = true;
            }
            Item::Child { block, .. } => {
                let cost = costs[block as usize];
                if seen.insert(block) {
                    once += cost.0;
                }
                each += cost.1;
                in_run = false;
            }
        }
    }
    (once, each)
}

struct Flattener<'r> {
    recording: &'r Recording,
    templates: Blocks,
    map: OutsideMap,
    /// The flat form of each block so far.
    flat: Vec<Flat>,
}

impl Flattener<'_> {
    /// The block as a single part.
    fn whole(&mut self, id: u32) -> Flat {
        let recording = self.recording;
        let block = &recording.blocks.list()[id as usize];
        let outside: Vec<u32> = (0..block.outside).map(outside_reference).collect();
        let mut words = Vec::new();
        expand(&recording.blocks, id, 0, &outside, &mut words);
        let template = self.templates.intern(&words, block.aux, block.outside);
        let mut flat = Flat::default();
        flat.push(template, 0, 0, outside.into_iter());
        flat
    }

    /// The block as the parts of the blocks inside and the stretches of rows between them.
    fn split(&mut self, id: u32) -> Result<Flat, CompiledError> {
        let mut flat = Flat::default();
        let mut run = Run::default();
        let recording = self.recording;
        let blocks = recording.blocks.list();
        let mut row = 0;
        for item in blocks[id as usize].items() {
            match item {
                Item::Row { cursor, .. } => {
                    push_mapped(&mut run.words, item, |variable| variable, |at| at);
                    run.end = cursor;
                    run.rows += 1;
                    row += 1;
                    if run.rows == MAX_RUN_ROWS {
                        self.flush(&mut run, row, &mut flat)?;
                    }
                }
                Item::Child {
                    block,
                    base,
                    outside,
                } => {
                    self.flush(&mut run, row, &mut flat)?;
                    let child = &self.flat[block as usize];
                    for part in &child.parts {
                        let references = child.outside[part.outside.clone()].iter();
                        flat.push(
                            part.template,
                            row + u64::from(part.row),
                            base + part.base,
                            references.map(|&variable| resolve(variable, base, outside)),
                        );
                    }
                    let block = &blocks[block as usize];
                    row += block.rows;
                    run.start = base + block.aux;
                    run.end = run.start;
                }
            }
        }
        self.flush(&mut run, row, &mut flat)?;
        Ok(flat)
    }

    /// Ends a stretch of rows, the last of which is row `end_row − 1` of the block.
    fn flush(&mut self, run: &mut Run, end_row: u64, flat: &mut Flat) -> Result<(), CompiledError> {
        let rows: Vec<Item<'_>> = Items(&run.words).collect();
        let mut row = end_row - run.rows as u64;
        let mut start = run.start;
        let many_coefficients = self.recording.coefficients.list().len() > PAGE;
        for piece in repeats::cut(&rows) {
            for rows in limit(&rows[piece], many_coefficients)? {
                let end = rows.iter().fold(start, |_, item| cursor(item));
                self.piece(rows, row, start..end, flat);
                row += rows.len() as u64;
                start = end;
            }
        }
        run.words.clear();
        run.rows = 0;
        run.start = run.end;
        Ok(())
    }

    /// Makes rows whose own private variables are `aux` a part.
    fn piece(&mut self, rows: &[Item<'_>], row: u64, aux: Range<u32>, flat: &mut Flat) {
        let mut words = Vec::new();
        self.map.clear();
        for &item in rows {
            let map = |variable| self.map.relative(variable, aux.start);
            push_mapped(&mut words, item, map, |at| at - aux.start);
        }
        let outside = self.map.list();
        let own = aux.end - aux.start;
        let template = self.templates.intern(&words, own, outside.len() as u32);
        flat.push(template, row, aux.start, outside.iter().copied());
    }
}

/// A stretch of rows between blocks, in the coordinates of the block around it.
#[derive(Default)]
struct Run {
    words: Vec<u32>,
    rows: usize,
    /// Private variables before the first row that the block's earlier parts allocated.
    start: u32,
    /// Private variables before the last row.
    end: u32,
}

fn cursor(item: &Item<'_>) -> u32 {
    match *item {
        Item::Row { cursor, .. } => cursor,
        Item::Child { base, .. } => base,
    }
}

fn outside_reference(k: u32) -> u32 {
    super::items::OUTSIDE | (k + 1)
}

/// Cuts rows so that no piece exceeds [`MAX_ROWS`] or, where the circuit has that many, names
/// more than [`PAGE`] coefficients (1 is always among them).
fn limit<'i, 'w>(
    mut rows: &'i [Item<'w>],
    many_coefficients: bool,
) -> Result<Vec<&'i [Item<'w>]>, CompiledError> {
    let mut pieces = Vec::new();
    while !rows.is_empty() {
        let mut len = rows.len().min(MAX_ROWS as usize);
        if many_coefficients {
            len = rows_in_page(&rows[..len])?;
        }
        let (piece, rest) = rows.split_at(len);
        pieces.push(piece);
        rows = rest;
    }
    Ok(pieces)
}

/// How many of the first rows fit into one page of coefficients.
fn rows_in_page(rows: &[Item<'_>]) -> Result<usize, CompiledError> {
    let mut page = HashSet::from([0]);
    for (k, item) in rows.iter().enumerate() {
        let Item::Row { a, b, c, .. } = *item else {
            continue;
        };
        page.extend(terms(a, b, c).map(|term| term[1]));
        if page.len() > PAGE {
            return match k {
                0 => Err(CompiledError::TooManyCoefficients { limit: PAGE }),
                _ => Ok(k),
            };
        }
    }
    Ok(rows.len())
}

/// Appends the rows of a block, those of the blocks inside included.
fn expand(blocks: &Blocks, id: u32, base: u32, outside: &[u32], words: &mut Vec<u32>) {
    for item in blocks.list()[id as usize].items() {
        let map = |variable| resolve(variable, base, outside);
        match item {
            Item::Row { .. } => push_mapped(words, item, map, |at| base + at),
            Item::Child {
                block,
                base: inner,
                outside: references,
            } => {
                let references: Vec<u32> = references.iter().map(|&v| map(v)).collect();
                expand(blocks, block, base + inner, &references, words);
            }
        }
    }
}
