//! Lays recorded templates and parts out as the final tables.

use super::CompiledError;
use super::blocks::{Block, Blocks};
use super::flatten::{Flat, PAGE, flatten};
use super::items::{Item, ONE, OUTSIDE, terms};
use super::layout::{Instance, Tables, Template, Terms};
use super::recorder::Recording;
use crate::{CircuitError, Scalar};
use std::collections::HashMap;

/// The tables and the coefficient table of a recording.
pub(super) fn build(recording: &Recording) -> Result<(Tables, Vec<Scalar>), CompiledError> {
    let (templates, flat) = flatten(recording)?;
    let mut pages = Pages::new(recording.coefficients.list());
    let mut tables = TemplateTables::default();
    for block in templates.list() {
        tables.push(block, &mut pages);
    }
    if u32::try_from(tables.c.variables.len()).is_err() {
        let rows = recording.constraints as usize;
        return Err(CircuitError::TooLarge { rows }.into());
    }
    if !recording.with_c {
        tables.c_ends.clear();
    }
    let (instances, outside) = place(recording, &templates, &flat)?;
    let tables = Tables {
        templates: tables.templates.into(),
        row_ends: tables.row_ends.into(),
        a: tables.a.into(),
        b: tables.b.into(),
        c: tables.c.into(),
        c_ends: tables.c_ends.into(),
        instances: instances.into(),
        outside: outside.into(),
    };
    Ok((tables, pages.table))
}

/// The circuit's parts with their outside references made absolute.
fn place(
    recording: &Recording,
    templates: &Blocks,
    flat: &Flat,
) -> Result<(Vec<Instance>, Vec<u32>), CompiledError> {
    if u32::try_from(flat.outside.len()).is_err() {
        let rows = recording.constraints as usize;
        return Err(CircuitError::TooLarge { rows }.into());
    }
    let mut instances = Vec::with_capacity(flat.parts.len());
    for part in &flat.parts {
        if templates.list()[part.template as usize].rows > 0 {
            instances.push(Instance {
                template: part.template,
                first_row: part.row,
                aux_base: part.base,
                outside_start: part.outside.start as u32,
            });
        }
    }
    // The root's outside references are inputs; its private variables are the circuit's.
    let absolute = |&variable: &u32| match variable & OUTSIDE {
        0 => variable,
        _ if variable == ONE => ONE,
        _ => recording.root_outside[(variable & !OUTSIDE) as usize - 1],
    };
    Ok((instances, flat.outside.iter().map(absolute).collect()))
}

#[derive(Default)]
struct Side {
    variables: Vec<u32>,
    coefficients: Vec<u16>,
}

impl From<Side> for Terms {
    fn from(side: Side) -> Self {
        Terms {
            variables: side.variables.into(),
            coefficients: side.coefficients.into(),
        }
    }
}

#[derive(Default)]
struct TemplateTables {
    templates: Vec<Template>,
    row_ends: Vec<[u32; 2]>,
    a: Side,
    b: Side,
    c: Side,
    c_ends: Vec<u32>,
}

impl TemplateTables {
    fn push(&mut self, block: &Block, pages: &mut Pages) {
        let page = pages.page_for(block);
        let template = Template {
            rows_start: self.row_ends.len() as u64,
            a_start: self.a.variables.len() as u64,
            b_start: self.b.variables.len() as u64,
            rows: block.rows as u32,
            aux: block.aux,
            outside: block.outside,
            page,
        };
        let variable = |code: u32| match code & OUTSIDE {
            0 => 1 + block.outside + code,
            _ => code & !OUTSIDE,
        };
        for item in block.items() {
            let Item::Row { a, b, c, .. } = item else {
                continue;
            };
            for (side, terms) in [(&mut self.a, a), (&mut self.b, b), (&mut self.c, c)] {
                for term in terms.chunks_exact(2) {
                    side.variables.push(variable(term[0]));
                    side.coefficients.push(pages.id(term[1]));
                }
            }
            self.row_ends.push([
                (self.a.variables.len() as u64 - template.a_start) as u32,
                (self.b.variables.len() as u64 - template.b_start) as u32,
            ]);
            self.c_ends.push(self.c.variables.len() as u32);
        }
        self.templates.push(template);
    }
}

/// Distributes coefficients over pages of at most [`PAGE`] entries, each starting with 1.
struct Pages<'c> {
    all: &'c [Scalar],
    table: Vec<Scalar>,
    start: usize,
    ids: HashMap<u32, u16>,
}

impl<'c> Pages<'c> {
    fn new(all: &'c [Scalar]) -> Self {
        let mut pages = Self {
            all,
            table: Vec::new(),
            start: 0,
            ids: HashMap::new(),
        };
        if all.len() <= PAGE {
            (0..all.len() as u32).for_each(|id| pages.insert(id));
        } else {
            pages.insert(0);
        }
        pages
    }

    fn insert(&mut self, id: u32) {
        let next = self.ids.len();
        if let std::collections::hash_map::Entry::Vacant(entry) = self.ids.entry(id) {
            entry.insert(next as u16);
            self.table.push(self.all[id as usize]);
        }
    }

    /// Start of a page that holds all coefficients of a template.
    fn page_for(&mut self, block: &Block) -> u32 {
        if self.all.len() <= PAGE {
            return 0;
        }
        let mut used: Vec<u32> = vec![0];
        for item in block.items() {
            if let Item::Row { a, b, c, .. } = item {
                used.extend(terms(a, b, c).map(|term| term[1]));
            }
        }
        used.sort_unstable();
        used.dedup();
        let new = used.iter().filter(|&id| !self.ids.contains_key(id)).count();
        if self.ids.len() + new > PAGE {
            self.start = self.table.len();
            self.ids.clear();
        }
        used.into_iter().for_each(|id| self.insert(id));
        self.start as u32
    }

    fn id(&self, coefficient: u32) -> u16 {
        self.ids.get(&coefficient).copied().unwrap_or_default()
    }
}
