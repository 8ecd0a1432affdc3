//! The table of kernels and the limits that they declared.

use super::cuda::{Inspected, Usage};
use super::ptx::{Kernel, Limits, Module};
use super::sass::Counts;
use super::{Result, occupancy};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One kernel of the table.
pub struct Row {
    /// Name.
    pub name: String,
    /// What it declares.
    pub limits: Limits,
    /// What the assembler says.
    pub usage: Usage,
    /// Its instructions.
    pub counts: Counts,
    /// Blocks that fit a multiprocessor.
    pub blocks: u32,
    /// Share of the multiprocessor's thread slots that they fill.
    pub occupancy: f64,
}

impl Row {
    /// Static and launch-time shared memory together.
    fn shared(&self) -> u32 {
        self.usage.shared + self.limits.shared
    }
}

/// Joins what is known about each kernel.
pub fn rows(module: &Module, inspected: &BTreeMap<String, Inspected>, arch: &str) -> Vec<Row> {
    let row = |kernel: &Kernel| {
        let one = inspected.get(&kernel.name)?;
        let shared = one.usage.shared + kernel.limits.shared;
        let (blocks, occupancy) =
            occupancy::of(arch, kernel.limits.threads, one.usage.registers, shared);
        Some(Row {
            name: kernel.name.clone(),
            limits: kernel.limits,
            usage: one.usage,
            counts: Counts::of(&one.code),
            blocks,
            occupancy,
        })
    };
    module.kernels.iter().filter_map(row).collect()
}

const HEADINGS: [&str; 12] = [
    "kernel",
    "threads",
    "blocks/SM",
    "registers",
    "spills",
    "stack",
    "shared",
    "IMAD.WIDE",
    "IMAD",
    "IADD3",
    "all",
    "occupancy",
];

/// The table as text. Registers and blocks are shown with their limits.
pub fn table(rows: &[Row]) -> String {
    let mut cells: Vec<Vec<String>> = vec![HEADINGS.map(str::to_owned).to_vec()];
    for row in rows {
        cells.push(vec![
            row.name.clone(),
            row.limits.threads.to_string(),
            format!("{} ({})", row.blocks, row.limits.min_blocks),
            format!("{} ({})", row.usage.registers, row.limits.registers),
            row.usage.spills.to_string(),
            row.usage.stack.to_string(),
            row.shared().to_string(),
            row.counts.imad_wide.to_string(),
            row.counts.imad.to_string(),
            row.counts.iadd3.to_string(),
            row.counts.all.to_string(),
            format!("{:.0} %", 100.0 * row.occupancy),
        ]);
    }
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| cells.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &cells {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padded = if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            };
            text.push_str(&padded);
        }
        text.push('\n');
    }
    text
}

/// The table as JSON.
pub fn json(rows: &[Row], arch: &str, compiler: &str, ptxas: &str) -> Value {
    let kernels: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "threads": row.limits.threads,
                "min_blocks": row.limits.min_blocks,
                "max_registers": row.limits.registers,
                "registers": row.usage.registers,
                "spill_bytes": row.usage.spills,
                "stack_bytes": row.usage.stack,
                "shared_bytes": row.shared(),
                "imad_wide": row.counts.imad_wide,
                "imad": row.counts.imad,
                "iadd3": row.counts.iadd3,
                "instructions": row.counts.all,
                "blocks_per_multiprocessor": row.blocks,
                "occupancy": row.occupancy,
            })
        })
        .collect();
    json!({ "arch": arch, "compiler": compiler, "ptxas": ptxas, "kernels": kernels })
}

/// Fails with one line for every limit that a kernel exceeds.
pub fn check_limits(rows: &[Row]) -> Result<()> {
    let breaches: Vec<String> = rows.iter().flat_map(breaches).collect();
    if breaches.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} limits are exceeded\n{}",
        breaches.len(),
        breaches.join("\n")
    )
    .into())
}

fn breaches(row: &Row) -> Vec<String> {
    let above = [
        ("registers", row.usage.registers, row.limits.registers),
        ("spilled bytes", row.usage.spills, row.limits.spills),
        ("bytes of stack", row.usage.stack, row.limits.stack),
    ];
    let mut lines: Vec<String> = above
        .into_iter()
        .filter(|(_, is, limit)| is > limit)
        .map(|(what, is, limit)| format!("{}: {is} {what}, declared at most {limit}", row.name))
        .collect();
    if row.usage.shared > 0 {
        lines.push(format!(
            "{}: {} bytes of static shared memory; all shared memory is passed at launch",
            row.name, row.usage.shared
        ));
    }
    if row.blocks < row.limits.min_blocks {
        lines.push(format!(
            "{}: {} blocks fit a multiprocessor, declared at least {}",
            row.name, row.blocks, row.limits.min_blocks
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(registers: u32, spills: u32) -> Row {
        let limits = Limits {
            threads: 128,
            min_blocks: 3,
            registers: 100,
            ..Limits::default()
        };
        let (blocks, occupancy) = occupancy::of("sm_90", 128, registers, 0);
        Row {
            name: "k".into(),
            limits,
            usage: Usage {
                registers,
                spills,
                ..Usage::default()
            },
            counts: Counts::default(),
            blocks,
            occupancy,
        }
    }

    #[test]
    fn every_exceeded_limit_is_named() {
        assert!(check_limits(&[row(100, 0)]).is_ok());
        let message = check_limits(&[row(200, 4)]).unwrap_err().to_string();
        assert_eq!(
            message,
            "3 limits are exceeded\nk: 200 registers, declared at most 100\n\
             k: 4 spilled bytes, declared at most 0\nk: 2 blocks fit a multiprocessor, declared at least 3"
        );
    }

    #[test]
    fn the_table_and_the_json_have_a_row_for_each_kernel() {
        let rows = [row(64, 0), row(80, 0)];
        assert_eq!(table(&rows).lines().count(), 3);
        let value = json(&rows, "sm_90", "rustc", "13.0");
        assert_eq!(value["kernels"][1]["registers"], 80);
    }
}
