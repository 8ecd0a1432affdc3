//! Checks that tables are consistent, so that evaluation can trust them.

use super::layout::{INPUT, Tables, Template, Terms};

/// What is wrong with which table.
pub(super) struct Flaw {
    pub table: &'static str,
    /// The entry at fault.
    pub entry: usize,
}

fn flaw(table: &'static str, entry: usize) -> Flaw {
    Flaw { table, entry }
}

/// Checks all tables of a circuit with the given counts.
pub(super) fn validate(
    tables: &Tables,
    coefficients: usize,
    constraints: u64,
    inputs: u64,
    aux: u64,
) -> Result<(), Flaw> {
    for terms in [&tables.a, &tables.b, &tables.c] {
        if terms.variables.len() != terms.coefficients.len() {
            return Err(flaw("terms", terms.variables.len()));
        }
    }
    if !c_ends_are_valid(tables) {
        return Err(flaw("C row ends", tables.c_ends.len()));
    }
    for (k, template) in tables.templates.iter().enumerate() {
        if !template_is_valid(tables, template, coefficients) {
            return Err(flaw("templates", k));
        }
    }
    for (k, &variable) in tables.outside.iter().enumerate() {
        let exists = match variable & INPUT {
            0 => u64::from(variable) < aux,
            _ => u64::from(variable & !INPUT) < inputs,
        };
        if !exists {
            return Err(flaw("outside references", k));
        }
    }
    validate_instances(tables, constraints, aux)
}

fn validate_instances(tables: &Tables, constraints: u64, aux: u64) -> Result<(), Flaw> {
    let mut row = 0;
    for (k, instance) in tables.instances.iter().enumerate() {
        let Some(template) = tables.templates.get(instance.template as usize) else {
            return Err(flaw("instances", k));
        };
        let outside_end = u64::from(instance.outside_start) + u64::from(template.outside);
        let aux_end = u64::from(instance.aux_base) + u64::from(template.aux);
        if u64::from(instance.first_row) != row
            || outside_end > tables.outside.len() as u64
            || aux_end > aux
        {
            return Err(flaw("instances", k));
        }
        row += u64::from(template.rows);
    }
    match row == constraints {
        true => Ok(()),
        false => Err(flaw("instances", tables.instances.len())),
    }
}

fn template_is_valid(tables: &Tables, template: &Template, coefficients: usize) -> bool {
    let rows = range(
        template.rows_start,
        u64::from(template.rows),
        tables.row_ends.len(),
    );
    let Some(ends) = rows.and_then(|rows| tables.row_ends.get(rows)) else {
        return false;
    };
    let ascending = ends
        .windows(2)
        .all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1]);
    let (Some(last), true, true) = (
        ends.last(),
        ascending,
        template.variables() <= u64::from(u32::MAX),
    ) else {
        return false;
    };
    let page = (coefficients as u64).saturating_sub(u64::from(template.page));
    let side = |terms: &Terms, start: u64, len: u64| {
        let Some(range) = range(start, len, terms.variables.len()) else {
            return false;
        };
        let variables = &terms.variables[range.clone()];
        let ids = &terms.coefficients[range];
        variables
            .iter()
            .all(|&v| u64::from(v) < template.variables())
            && ids.iter().all(|&id| u64::from(id) < page)
    };
    let c = match tables.c_ends.is_empty() {
        true => true,
        false => {
            let (start, ends) = tables.c_ends(template);
            let end = ends.last().map_or(start, |&end| end as usize);
            side(&tables.c, start as u64, (end - start) as u64)
        }
    };
    c && side(&tables.a, template.a_start, last[0].into())
        && side(&tables.b, template.b_start, last[1].into())
}

/// C is recorded for all rows or for none; its terms lie in the order of the rows.
fn c_ends_are_valid(tables: &Tables) -> bool {
    let (ends, terms) = (&tables.c_ends, tables.c.variables.len());
    match ends.last() {
        None => terms == 0,
        Some(&last) => {
            ends.len() == tables.row_ends.len()
                && last as usize == terms
                && ends.windows(2).all(|pair| pair[0] <= pair[1])
        }
    }
}

fn range(start: u64, len: u64, total: usize) -> Option<std::ops::Range<usize>> {
    let end = start.checked_add(len)?;
    (end <= total as u64).then_some(start as usize..end as usize)
}
