//! Compares a circuit with a compiled one, row by row.

use super::layout::{INPUT, Instance, Tables, Template, Terms};
use super::{CompiledCircuit, CompiledError};
use crate::Scalar;
use crate::stream::{ConstraintVisitor, stream_circuit};
use bellpepper_core::{Circuit, LinearCombination};
use ff::Field;

/// Checks that `circuit` has exactly the rows of `compiled`.
pub(super) fn replay<C: Circuit<Scalar>>(
    compiled: &CompiledCircuit,
    circuit: C,
) -> Result<(), CompiledError> {
    match compiled.has_c() {
        true => replay_sides::<C, true>(compiled, circuit),
        false => replay_sides::<C, false>(compiled, circuit),
    }
}

fn replay_sides<C: Circuit<Scalar>, const WITH_C: bool>(
    compiled: &CompiledCircuit,
    circuit: C,
) -> Result<(), CompiledError> {
    let mut replay = Replay::<WITH_C> {
        compiled,
        instance: 0,
        row_in_instance: 0,
        row: 0,
        inputs: 0,
        aux: 0,
        differs: None,
    };
    stream_circuit(circuit, &mut replay)?;
    let counts = (replay.row, replay.inputs, replay.aux);
    let shape = compiled.shape();
    if let Some(row) = replay.differs {
        Err(CompiledError::Differs { row })
    } else if counts != (shape.constraints, shape.inputs, shape.aux) {
        Err(CompiledError::Differs { row: replay.row })
    } else {
        Ok(())
    }
}

struct Replay<'c, const WITH_C: bool> {
    compiled: &'c CompiledCircuit,
    instance: usize,
    row_in_instance: usize,
    row: usize,
    inputs: usize,
    aux: usize,
    differs: Option<usize>,
}

impl<const WITH_C: bool> Replay<'_, WITH_C> {
    /// Whether the next row of the tables equals the given one.
    fn next_equals(&mut self, [a, b, c]: [&LinearCombination<Scalar>; 3]) -> bool {
        let tables = &self.compiled.tables;
        let Some(instance) = tables.instances.get(self.instance) else {
            return false;
        };
        let template = &tables.templates[instance.template as usize];
        let ends = tables.row_ends(template);
        let row = self.row_in_instance;
        let end = ends[row];
        let start = match row {
            0 => [0, 0],
            k => ends[k - 1],
        };
        self.row_in_instance += 1;
        if self.row_in_instance == ends.len() {
            self.row_in_instance = 0;
            self.instance += 1;
        }
        let range = |first: u64, side: usize| {
            first as usize + start[side] as usize..first as usize + end[side] as usize
        };
        let mut sides = vec![
            (&tables.a, range(template.a_start, 0), a),
            (&tables.b, range(template.b_start, 1), b),
        ];
        if WITH_C {
            let (first, ends) = tables.c_ends(template);
            let start = row.checked_sub(1).map_or(first, |k| ends[k] as usize);
            sides.push((&tables.c, start..ends[row] as usize, c));
        }
        sides.into_iter().all(|(terms, range, lc)| {
            self.side_equals(tables, instance, template, terms, range, lc)
        })
    }

    fn side_equals(
        &self,
        tables: &Tables,
        instance: &Instance,
        template: &Template,
        terms: &Terms,
        range: std::ops::Range<usize>,
        lc: &LinearCombination<Scalar>,
    ) -> bool {
        let outside = tables.outside(instance, template);
        let page = &self.compiled.coefficients[template.page as usize..];
        let variables = terms.variables[range.clone()].iter();
        let compiled = variables
            .zip(&terms.coefficients[range])
            .map(|(&variable, &id)| {
                let absolute = match variable as usize {
                    0 => INPUT,
                    k if k <= outside.len() => outside[k - 1],
                    k => instance.aux_base + (k - 1 - outside.len()) as u32,
                };
                (absolute, page[id as usize])
            });
        let inputs = lc.iter_inputs().map(|(&i, c)| (INPUT | i as u32, *c));
        let aux = lc.iter_aux().map(|(&i, c)| (i as u32, *c));
        compiled.eq(inputs.chain(aux).filter(|(_, c)| *c != Scalar::ZERO))
    }
}

impl<const WITH_C: bool> ConstraintVisitor for Replay<'_, WITH_C> {
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
        if self.differs.is_none() && !self.next_equals([a, b, c]) {
            self.differs = Some(self.row);
        }
        self.row += 1;
    }
}
