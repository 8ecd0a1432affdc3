//! `cuzk circuit`: what a circuit consists of.

use super::write_file;
use crate::arguments::{CircuitInfo, Circuits};
use crate::{error::Error, output::Output, treemap};
use cuzk_circuit::{CompiledCircuit, Component};
use cuzk_filecoin::CircuitId;
use serde_json::{Value, json};
use std::time::Instant;

/// Parts below this share of the constraints are not printed as text.
const LEAST_SHARE: f64 = 0.001;
/// Levels of parts that are printed as text.
const LEVELS: usize = 5;

/// Runs the command.
pub fn run(arguments: &Circuits, output: &Output) -> Result<(), Error> {
    match arguments {
        Circuits::Info(info) => run_info(info, output),
    }
}

fn run_info(arguments: &CircuitInfo, output: &Output) -> Result<(), Error> {
    let id = CircuitId::new(arguments.circuit.kind, arguments.circuit.sector_size);
    if let Some(path) = &arguments.html {
        super::check_folder(path)?;
    }
    let progress = output.progress(format!("counting {id}"));
    let start = Instant::now();
    let (compiled, whole) = id.blank_circuit()?.surveyed(&id.params_file_stem()?)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(progress);
    let uses = uses(&compiled);
    if let Some(path) = &arguments.html {
        let title = format!("{id}: {} constraints", grouped(whole.constraints));
        write_file(path, treemap::page(&title, &whole).as_bytes())?;
    }
    let value = describe(id, &compiled, &whole, &uses, seconds);
    let mut text = counts(id, &compiled, &whole);
    text += &components(&whole);
    text += &templates(&whole, &uses);
    output.result(&value, text.trim_end());
    Ok(())
}

/// A template with the part of the circuit that its instances make up.
struct Use {
    template: usize,
    instances: u64,
    rows: u64,
    /// Terms of A and B of one instance.
    terms: [u64; 2],
}

/// All templates, those that cover the most constraints first.
fn uses(compiled: &CompiledCircuit) -> Vec<Use> {
    let mut uses: Vec<Use> = (compiled.templates().iter().enumerate())
        .map(|(template, head)| {
            let end = (head.rows_start + u64::from(head.rows)) as usize;
            let last = compiled.row_ends()[..end].last();
            Use {
                template,
                instances: 0,
                rows: head.rows.into(),
                terms: last.copied().unwrap_or_default().map(u64::from),
            }
        })
        .collect();
    for instance in compiled.instances() {
        uses[instance.template as usize].instances += 1;
    }
    uses.sort_by_key(|u| std::cmp::Reverse(u.instances * u.rows));
    uses
}

fn describe(
    id: CircuitId,
    compiled: &CompiledCircuit,
    whole: &Component,
    uses: &[Use],
    seconds: f64,
) -> Value {
    let (shape, size) = (compiled.shape(), compiled.size());
    let templates: Vec<Value> = uses
        .iter()
        .map(|u| {
            json!({
                "template": u.template, "instances": u.instances, "rows": u.rows,
                "terms": u.terms, "share": share(u.instances * u.rows, whole.constraints),
            })
        })
        .collect();
    json!({
        "circuit": id.to_string(), "constraints": shape.constraints, "inputs": shape.inputs,
        "aux": shape.aux, "domain_log2": shape.domain_log2(), "params_bytes": shape.params_bytes(),
        "density": {"a_aux": shape.a_aux, "b_inputs": shape.b_inputs, "b_aux": shape.b_aux},
        "nonzeros": whole.nonzeros, "coefficients": size.coefficients,
        "compiled": {
            "templates": size.templates, "template_rows": size.template_rows,
            "template_terms": size.template_terms, "instances": size.instances,
            "outside": size.outside, "file_bytes": size.file_bytes,
        },
        "templates": templates, "components": tree(whole, whole.constraints), "seconds": seconds,
    })
}

fn tree(part: &Component, all: u64) -> Value {
    json!({
        "name": part.name, "occurrences": part.occurrences, "constraints": part.constraints,
        "aux": part.aux, "nonzeros": part.nonzeros, "share": share(part.constraints, all),
        "parts": part.parts.iter().map(|part| tree(part, all)).collect::<Vec<_>>(),
    })
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn counts(id: CircuitId, compiled: &CompiledCircuit, whole: &Component) -> String {
    let (shape, size) = (compiled.shape(), compiled.size());
    let [a, b, c] = whole.nonzeros;
    let rows = [
        ("constraints", shape.constraints as u64),
        ("inputs (with the constant one)", shape.inputs as u64),
        ("private variables", shape.aux as u64),
        ("of them in A", shape.a_aux as u64),
        ("of them in B", shape.b_aux as u64),
        ("coefficients in A", a),
        ("coefficients in B", b),
        ("coefficients in C", c),
        ("distinct coefficients of A and B", size.coefficients as u64),
        ("templates", size.templates as u64),
        ("terms in them", size.template_terms as u64),
        ("instances", size.instances as u64),
        ("bytes of the compiled circuit", size.file_bytes),
        ("bytes of the parameters", shape.params_bytes()),
    ];
    let mut text = format!("{id}, domain 2^{}\n", shape.domain_log2());
    for (name, count) in rows {
        text += &format!("{:>16} {name}\n", grouped(count));
    }
    text
}

fn components(whole: &Component) -> String {
    let mut text = format!(
        "\n{:>8} {:>14} {:>14} {:>10}  part (numbers in names as #)\n",
        "share", "constraints", "variables", "times"
    );
    let mut stack = vec![(whole, 0)];
    while let Some((part, level)) = stack.pop() {
        let name = if level == 0 {
            "the circuit"
        } else {
            &part.name
        };
        text += &format!(
            "{:>7.2}% {:>14} {:>14} {:>10}  {}{name}\n",
            100.0 * share(part.constraints, whole.constraints),
            grouped(part.constraints),
            grouped(part.aux),
            grouped(part.occurrences),
            "  ".repeat(level)
        );
        let large = |part: &&Component| share(part.constraints, whole.constraints) >= LEAST_SHARE;
        if level < LEVELS {
            stack.extend(
                part.parts
                    .iter()
                    .filter(large)
                    .rev()
                    .map(|p| (p, level + 1)),
            );
        }
    }
    text
}

fn templates(whole: &Component, uses: &[Use]) -> String {
    let mut text = format!(
        "\n{:>8} {:>10} {:>12} {:>12} {:>12}  template\n",
        "share", "instances", "constraints", "terms in A", "terms in B"
    );
    for u in uses {
        let share = share(u.instances * u.rows, whole.constraints);
        if share < LEAST_SHARE {
            continue;
        }
        text += &format!(
            "{:>7.2}% {:>10} {:>12} {:>12} {:>12}  {}\n",
            100.0 * share,
            grouped(u.instances),
            grouped(u.rows),
            grouped(u.terms[0]),
            grouped(u.terms[1]),
            u.template
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        let texts = [0, 7, 999, 1000, 130_278_541].map(grouped);
        assert_eq!(texts, ["0", "7", "999", "1,000", "130,278,541"]);
    }
}
