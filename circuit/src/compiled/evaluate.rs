//! A·w and B·w from the compact witness, straight from the templates.

use super::layout::{INPUT, Instance, Tables, Template, Terms};
use super::wide::{WideSum, limbs};
use crate::{Scalar, Witness};
use ff::Field;
use rayon::prelude::*;

/// Rows that one task evaluates at least, where the circuit has that many.
const TASK_ROWS: usize = 1 << 14;

/// A variable's value: [`ZERO`], [`ONE`], `INPUT | i`, or 2 + position among the others.
type ValueRef = u32;
const ZERO: ValueRef = 0;
const ONE: ValueRef = 1;

/// Tables and values that all tasks read.
#[derive(Clone, Copy)]
pub(super) struct Evaluation<'e> {
    pub tables: &'e Tables,
    pub coefficients: &'e [Scalar],
    pub witness: &'e Witness,
}

/// Consecutive instances with the rows that they fill.
struct Task<'o> {
    instances: &'o [Instance],
    a: &'o mut [Scalar],
    b: &'o mut [Scalar],
}

impl Evaluation<'_> {
    /// Fills `a` and `b`, one value a constraint. The tables must be valid, the witness must fit
    /// and the outputs must have the circuit's length.
    pub fn run(self, a: &mut [Scalar], b: &mut [Scalar]) {
        let tasks = tasks(&self.tables.instances, a, b);
        tasks
            .into_par_iter()
            .for_each_init(Vec::new, |values, task| {
                let (mut a, mut b) = (task.a, task.b);
                for instance in task.instances {
                    let template = &self.tables.templates[instance.template as usize];
                    self.gather(instance, template, values);
                    let (a_rows, a_rest) =
                        std::mem::take(&mut a).split_at_mut(template.rows as usize);
                    let (b_rows, b_rest) =
                        std::mem::take(&mut b).split_at_mut(template.rows as usize);
                    self.rows(template, values, a_rows, b_rows);
                    (a, b) = (a_rest, b_rest);
                }
            });
    }

    /// Looks up the values of all variables that the instance's terms can name.
    fn gather(self, instance: &Instance, template: &Template, values: &mut Vec<ValueRef>) {
        values.clear();
        values.push(ONE);
        for &variable in self.tables.outside(instance, template) {
            values.push(self.value(variable));
        }
        let start = instance.aux_base as usize;
        self.gather_own(start, start + template.aux as usize, values);
    }

    /// The private variables from `at` to `end`, by words of the witness's bitmaps.
    fn gather_own(self, mut at: usize, end: usize, values: &mut Vec<ValueRef>) {
        let aux = &self.witness.aux;
        let (flags, bits, ranks) = (aux.is_other().words(), aux.bits().words(), aux.ranks());
        while at < end {
            let (word, low) = (at / 64, at % 64);
            let count = (64 - low).min(end - at);
            let (other, bit) = (flags[word] >> low, bits[word] >> low);
            if other == 0 {
                values.extend((0..count).map(|k| (bit >> k & 1) as u32));
            } else {
                let before = flags[word] & ((1 << low) - 1);
                let mut next = 2 + ranks[word] + before.count_ones();
                for k in 0..count {
                    let is_other = (other >> k & 1) as u32;
                    values.push(if is_other == 1 {
                        next
                    } else {
                        (bit >> k & 1) as u32
                    });
                    next += is_other;
                }
            }
            at += count;
        }
    }

    fn value(self, variable: u32) -> ValueRef {
        if variable & INPUT != 0 {
            return variable;
        }
        let aux = &self.witness.aux;
        let (word, low) = (variable as usize / 64, variable % 64);
        let flags = aux.is_other().words()[word];
        if flags >> low & 1 == 0 {
            return (aux.bits().words()[word] >> low & 1) as u32;
        }
        2 + aux.ranks()[word] + (flags & ((1 << low) - 1)).count_ones()
    }

    fn rows(self, template: &Template, values: &[ValueRef], a: &mut [Scalar], b: &mut [Scalar]) {
        let page = &self.coefficients[template.page as usize..];
        let ends = self.tables.row_ends(template);
        let last = ends.last().copied().unwrap_or_default();
        let a_terms = SideTerms::new(&self.tables.a, template.a_start, last[0]);
        let b_terms = SideTerms::new(&self.tables.b, template.b_start, last[1]);
        let mut starts = [0, 0];
        for ((a, b), ends) in a.iter_mut().zip(b).zip(ends) {
            *a = self.sum(a_terms, starts[0]..ends[0], values, page);
            *b = self.sum(b_terms, starts[1]..ends[1], values, page);
            starts = *ends;
        }
    }

    #[inline]
    fn sum(
        self,
        terms: SideTerms<'_>,
        range: std::ops::Range<u32>,
        values: &[ValueRef],
        page: &[Scalar],
    ) -> Scalar {
        let range = range.start as usize..range.end as usize;
        let variables = &terms.variables[range.clone()];
        let coefficients = &terms.coefficients[range];
        if let ([variable], [id]) = (variables, coefficients) {
            return match values[*variable as usize] {
                ZERO => Scalar::ZERO,
                ONE => page[*id as usize],
                value => self.product(value, *id, page),
            };
        }
        let mut sum = WideSum::default();
        for (&variable, &id) in variables.iter().zip(coefficients) {
            match values[variable as usize] {
                ZERO => {}
                ONE => sum.add(&limbs(&page[id as usize])),
                value => sum.add(&limbs(&self.product(value, id, page))),
            }
        }
        sum.reduce()
    }

    #[inline]
    fn product(self, value: ValueRef, id: u16, page: &[Scalar]) -> Scalar {
        match id {
            0 => *self.scalar(value),
            _ => page[id as usize] * self.scalar(value),
        }
    }

    #[inline]
    fn scalar(&self, value: ValueRef) -> &Scalar {
        match value & INPUT {
            0 => &self.witness.aux.others()[value as usize - 2],
            _ => &self.witness.inputs[(value & !INPUT) as usize],
        }
    }
}

/// The terms of one side of one template.
#[derive(Clone, Copy)]
struct SideTerms<'t> {
    variables: &'t [u32],
    coefficients: &'t [u16],
}

impl<'t> SideTerms<'t> {
    fn new(terms: &'t Terms, start: u64, len: u32) -> Self {
        let range = start as usize..start as usize + len as usize;
        Self {
            variables: &terms.variables[range.clone()],
            coefficients: &terms.coefficients[range],
        }
    }
}

/// Splits the outputs at instance boundaries into tasks of about [`TASK_ROWS`] rows.
fn tasks<'o>(
    mut instances: &'o [Instance],
    mut a: &'o mut [Scalar],
    mut b: &'o mut [Scalar],
) -> Vec<Task<'o>> {
    let mut tasks = Vec::new();
    while let Some(first) = instances.first() {
        let start = first.first_row as usize;
        let far = |instance: &Instance| instance.first_row as usize >= start + TASK_ROWS;
        let count = instances.iter().position(far).unwrap_or(instances.len());
        let (mine, rest) = instances.split_at(count);
        let rows = rest
            .first()
            .map_or(a.len(), |i| i.first_row as usize - start);
        let (a_rows, a_rest) = a.split_at_mut(rows);
        let (b_rows, b_rest) = b.split_at_mut(rows);
        tasks.push(Task {
            instances: mine,
            a: a_rows,
            b: b_rows,
        });
        (instances, a, b) = (rest, a_rest, b_rest);
    }
    tasks
}
