//! The circuit's polynomials at τ from its compiled form, straight from the templates.
//!
//! Instances are divided into tasks of consecutive rows. A task computes its Lagrange values, adds
//! into the columns of its own private variables in place and keeps what falls on other columns in a
//! list, which is added at the end. Sums in the field are exact, so the result does not depend on how
//! the work is divided.

use super::{
    SetupError,
    qap::{Evaluations, Lagrange, Polynomials},
    waste::{Secret, ToxicWaste},
};
use cuzk_circuit::{CompiledCircuit, CompiledError, INPUT, Instance, Scalar, Template, TermsView};
use ff::Field;
use rayon::prelude::*;
use std::hint::black_box;

/// Rows that a task has at least, where the circuit has that many.
const TASK_ROWS: usize = 1 << 16;
/// A, B and C.
const SIDES: usize = 3;

/// Evaluates the polynomials of a compiled circuit. Memory: three scalars a variable.
pub(super) fn evaluate(
    circuit: &CompiledCircuit,
    waste: &ToxicWaste,
) -> Result<Evaluations, SetupError> {
    if !circuit.has_c() {
        let identity = circuit.identity().to_owned();
        return Err(CompiledError::WithoutC { identity }.into());
    }
    let shape = circuit.shape();
    let log2 = shape.domain_log2();
    let lagrange = Lagrange::new(log2, waste.tau)?;
    let mut aux: [Secret; SIDES] = std::array::from_fn(|_| Secret::zeros(shape.aux));
    let mut inputs: [Secret; SIDES] = std::array::from_fn(|_| Secret::zeros(shape.inputs));
    let kinds = kinds(circuit.coefficients());
    let evaluation = Evaluation {
        circuit,
        kinds: &kinds,
    };
    let far: Vec<Far> = {
        let [u, v, w] = &mut aux;
        let tasks = tasks(circuit.instances(), [&mut u.0, &mut v.0, &mut w.0]);
        let run = |task| evaluation.run(&lagrange, task);
        tasks.into_par_iter().map(run).collect()
    };
    let sides: Vec<_> = aux.iter_mut().zip(&mut inputs).enumerate().collect();
    sides
        .into_par_iter()
        .for_each(|(side, (aux, inputs))| add_far(&far, side, &mut aux.0, &mut inputs.0));
    // The rows x_i · 0 = 0.
    let mut last = Secret::zeros(shape.inputs);
    lagrange.fill(shape.constraints, &mut last.0);
    for (sum, value) in inputs[0].0.iter_mut().zip(last.iter()) {
        *sum += value;
    }
    let polynomials = |[u, v, w]: [Secret; SIDES]| Polynomials { u, v, w };
    Ok(Evaluations {
        domain_log2: log2,
        inputs: polynomials(inputs),
        aux: polynomials(aux),
    })
}

/// How a coefficient enters a sum.
#[derive(Clone, Copy)]
enum Kind {
    One,
    MinusOne,
    Other,
}

fn kinds(coefficients: &[Scalar]) -> Vec<Kind> {
    let minus_one = -Scalar::ONE;
    let kind = |coefficient: &Scalar| match *coefficient {
        one if one == Scalar::ONE => Kind::One,
        negative if negative == minus_one => Kind::MinusOne,
        _ => Kind::Other,
    };
    coefficients.iter().map(kind).collect()
}

/// Consecutive instances and the columns that lie between their first private variable and that of
/// the next task.
struct Task<'e> {
    instances: &'e [Instance],
    /// The variable of the first column.
    start: usize,
    columns: [&'e mut [Scalar]; SIDES],
}

/// Divides the instances and the columns.
fn tasks<'e>(
    mut instances: &'e [Instance],
    mut columns: [&'e mut [Scalar]; SIDES],
) -> Vec<Task<'e>> {
    let mut tasks: Vec<Task<'e>> = Vec::new();
    let mut start = 0;
    while let Some(first) = instances.first() {
        let row = first.first_row as usize;
        let far = |instance: &Instance| instance.first_row as usize >= row + TASK_ROWS;
        let count = instances.iter().position(far).unwrap_or(instances.len());
        let (mine, rest) = instances.split_at(count);
        let left = columns[0].len();
        // Bases ascend in what was recorded; where they do not, columns are merely far.
        let own = rest.first().map_or(left, |next| {
            (next.aux_base as usize).saturating_sub(start).min(left)
        });
        let mut own_columns: [&'e mut [Scalar]; SIDES] = Default::default();
        for (all, own_column) in columns.iter_mut().zip(&mut own_columns) {
            let (head, tail) = std::mem::take(all).split_at_mut(own);
            (*own_column, *all) = (head, tail);
        }
        tasks.push(Task {
            instances: mine,
            start,
            columns: own_columns,
        });
        (instances, start) = (rest, start + own);
    }
    tasks
}

/// What a task adds to columns that are not its own: variables as the circuit's outside references
/// name them.
#[derive(Default)]
struct Far([Vec<(u32, Scalar)>; SIDES]);

impl Drop for Far {
    fn drop(&mut self) {
        for list in &mut self.0 {
            list.iter_mut().for_each(|entry| entry.1 = Scalar::ZERO);
            black_box(list.as_slice());
        }
    }
}

fn add_far(far: &[Far], side: usize, aux: &mut [Scalar], inputs: &mut [Scalar]) {
    for (variable, value) in far.iter().flat_map(|far| &far.0[side]) {
        let sum = match variable & INPUT {
            0 => aux.get_mut(*variable as usize),
            _ => inputs.get_mut((variable & !INPUT) as usize),
        };
        if let Some(sum) = sum {
            *sum += value;
        }
    }
}

#[derive(Clone, Copy)]
struct Evaluation<'e> {
    circuit: &'e CompiledCircuit,
    kinds: &'e [Kind],
}

impl Evaluation<'_> {
    fn run(self, lagrange: &Lagrange, mut task: Task<'_>) -> Far {
        let mut far = Far::default();
        let mut values = Secret(Vec::new());
        let mut outside = Secret(Vec::new());
        for instance in task.instances {
            let template = &self.circuit.templates()[instance.template as usize];
            values.0.resize(template.rows as usize, Scalar::ZERO);
            lagrange.fill_here(instance.first_row as usize, &mut values.0);
            for side in 0..SIDES {
                outside.0.clear();
                outside
                    .0
                    .resize(1 + template.outside as usize, Scalar::ZERO);
                let range = task.own(instance, template);
                let mut spare = Secret(Vec::new());
                let own = match range {
                    Some(range) => &mut task.columns[side][range],
                    None => {
                        spare.0.resize(template.aux as usize, Scalar::ZERO);
                        &mut spare.0[..]
                    }
                };
                self.add_rows(template, side, &values, &mut outside.0, own);
                let list = &mut far.0[side];
                push(list, (instance.aux_base..).zip(&spare.0));
                self.spread(instance, &outside, &mut task, side, list);
            }
        }
        far
    }

    /// Adds all terms of one side of an instance to the sums of its variables: the constant one and
    /// the outside references, and its own private variables.
    fn add_rows(
        self,
        template: &Template,
        side: usize,
        lagrange: &[Scalar],
        outside: &mut [Scalar],
        own: &mut [Scalar],
    ) {
        let page = template.page as usize;
        let coefficients = &self.circuit.coefficients()[page..];
        let kinds = &self.kinds[page..];
        let terms = self.terms(side);
        let mut start = self.first_term(template, side);
        for (row, value) in lagrange.iter().enumerate() {
            let end = self.row_end(template, side, row);
            let variables = terms.variables[start..end].iter();
            for (&variable, &id) in variables.zip(&terms.coefficients[start..end]) {
                let variable = variable as usize;
                let sum = match variable.checked_sub(outside.len()) {
                    Some(own_variable) => &mut own[own_variable],
                    None => &mut outside[variable],
                };
                match kinds[id as usize] {
                    Kind::One => *sum += value,
                    Kind::MinusOne => *sum -= value,
                    Kind::Other => *sum += value * coefficients[id as usize],
                }
            }
            start = end;
        }
    }

    fn terms(&self, side: usize) -> TermsView<'_> {
        match side {
            0 => self.circuit.a_terms(),
            1 => self.circuit.b_terms(),
            _ => self.circuit.c_terms(),
        }
    }

    fn first_term(self, template: &Template, side: usize) -> usize {
        match side {
            0 => template.a_start as usize,
            1 => template.b_start as usize,
            _ => match template.rows_start as usize {
                0 => 0,
                row => self.circuit.c_ends()[row - 1] as usize,
            },
        }
    }

    fn row_end(self, template: &Template, side: usize, row: usize) -> usize {
        let row = template.rows_start as usize + row;
        match side {
            0 => template.a_start as usize + self.circuit.row_ends()[row][0] as usize,
            1 => template.b_start as usize + self.circuit.row_ends()[row][1] as usize,
            _ => self.circuit.c_ends()[row] as usize,
        }
    }

    /// Adds the sums of the constant one and of an instance's outside references to their columns.
    fn spread(
        self,
        instance: &Instance,
        sums: &[Scalar],
        task: &mut Task<'_>,
        side: usize,
        far: &mut Vec<(u32, Scalar)>,
    ) {
        let first = instance.outside_start as usize;
        let references = &self.circuit.outside()[first..first + sums.len() - 1];
        let (start, columns) = (task.start, &mut task.columns[side]);
        let variables = std::iter::once(INPUT).chain(references.iter().copied());
        for (variable, value) in variables.zip(sums) {
            if value.is_zero_vartime() {
                continue;
            }
            let place = (variable as usize).checked_sub(start);
            match place.and_then(|place| columns.get_mut(place)) {
                Some(sum) => *sum += value,
                None => far.push((variable, *value)),
            }
        }
    }
}

impl Task<'_> {
    /// Where the instance's own private variables lie in the task's columns, if they do.
    fn own(&self, instance: &Instance, template: &Template) -> Option<std::ops::Range<usize>> {
        let start = (instance.aux_base as usize).checked_sub(self.start)?;
        let end = start + template.aux as usize;
        (end <= self.columns[0].len()).then_some(start..end)
    }
}

fn push<'s>(far: &mut Vec<(u32, Scalar)>, sums: impl Iterator<Item = (u32, &'s Scalar)>) {
    let nonzero = sums.filter(|(_, value)| !value.is_zero_vartime());
    far.extend(nonzero.map(|(variable, value)| (variable, *value)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::qap;
    use bellpepper_core::Circuit;
    use cuzk_circuit::shape;
    use cuzk_circuit::testing::{RandomCircuit, RepeatedCircuit};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn check<C: Circuit<Scalar> + Clone>(name: &str, circuit: C) {
        let waste = ToxicWaste::random(ChaCha20Rng::seed_from_u64(31));
        let compiled = CompiledCircuit::record_with_c(name, circuit.clone()).unwrap();
        let found = evaluate(&compiled, &waste).unwrap();
        let shape = shape(circuit.clone()).unwrap();
        let expected = qap::evaluate(circuit, &shape, &waste).unwrap();
        assert_eq!(found.domain_log2, expected.domain_log2, "{name}");
        for (found, expected) in [
            (&found.inputs, &expected.inputs),
            (&found.aux, &expected.aux),
        ] {
            for (found, expected) in [
                (&found.u, &expected.u),
                (&found.v, &expected.v),
                (&found.w, &expected.w),
            ] {
                assert!(found.0 == expected.0, "{name}");
            }
        }
    }

    #[test]
    fn polynomials_from_templates_equal_those_from_the_rows() {
        for (seed, rows) in [(1, 1), (2, 40), (3, 5000)] {
            check(&format!("random {rows}"), RandomCircuit::new(rows, 3, seed));
        }
        for namespaces in [true, false] {
            let circuit = RepeatedCircuit {
                block: RandomCircuit::new(900, 2, 5),
                repetitions: 150,
                namespaces,
                altered: None,
            };
            check(&format!("repeated, namespaces {namespaces}"), circuit);
        }
    }

    #[test]
    fn instances_whose_variables_do_not_ascend_have_far_columns_only() {
        let instance = |first_row: u32, aux_base| Instance {
            template: 0,
            first_row,
            aux_base,
            outside_start: 0,
        };
        let far = TASK_ROWS as u32;
        let instances = [instance(0, 70), instance(far, 5), instance(2 * far, 60)];
        let mut columns = [vec![Scalar::ZERO; 100], vec![Scalar::ZERO; 100], vec![]];
        columns[2] = columns[0].clone();
        let [u, v, w] = &mut columns;
        let tasks = tasks(&instances, [u, v, w]);
        let starts: Vec<_> = tasks
            .iter()
            .map(|t| (t.start, t.columns[0].len()))
            .collect();
        assert_eq!(starts, [(0, 5), (5, 55), (60, 40)]);
    }

    #[test]
    fn a_circuit_without_c_is_refused() {
        let waste = ToxicWaste::random(ChaCha20Rng::seed_from_u64(32));
        let compiled = CompiledCircuit::record("plain", RandomCircuit::new(20, 1, 1)).unwrap();
        let error = evaluate(&compiled, &waste).err().unwrap();
        assert!(error.to_string().contains("without C"), "{error}");
    }
}
