//! Finds repetition in a stretch of rows that no namespace marks.

use super::items::{Item, OUTSIDE, terms};
use std::collections::HashMap;
use std::ops::Range;

/// Rows whose forms must agree for a repetition to be considered.
const SEED_ROWS: usize = 4;
/// Shortest period that is worth a template of its own.
const MIN_PERIOD: usize = 64;
/// Stretches with fewer rows are left alone.
const MIN_ROWS: usize = 256;
/// A reference at most this far back belongs to the form of a row.
const NEAR: u32 = 8;

/// Cuts rows into pieces such that repetitions with a fixed period become pieces of equal form.
///
/// Only where to cut is decided here; whether two pieces are the same is decided by comparing
/// them. The form of a row is its coefficients and, for private variables allocated shortly
/// before it, their distance.
pub(super) fn cut(rows: &[Item<'_>]) -> Vec<Range<usize>> {
    if rows.len() < MIN_ROWS {
        return whole(0..rows.len());
    }
    let forms: Vec<u64> = rows.iter().map(form).collect();
    let mut pieces = Vec::new();
    let mut start = 0;
    for (repetition, period) in repetitions(&forms) {
        pieces.extend(whole(start..repetition.start));
        let mut at = repetition.start;
        while at + period <= repetition.end {
            pieces.push(at..at + period);
            at += period;
        }
        start = at;
    }
    pieces.extend(whole(start..rows.len()));
    pieces
}

fn whole(range: Range<usize>) -> Vec<Range<usize>> {
    match range.is_empty() {
        true => Vec::new(),
        false => vec![range],
    }
}

/// Stretches that repeat at least once with their periods, ascending, without overlap.
fn repetitions(forms: &[u64]) -> Vec<(Range<usize>, usize)> {
    let mut found = Vec::new();
    let mut last_seen: HashMap<u64, usize> = HashMap::new();
    let mut at = 0;
    while at + SEED_ROWS <= forms.len() {
        let seed = mix_all(&forms[at..at + SEED_ROWS]);
        let previous = last_seen.insert(seed, at);
        if let Some(previous) = previous
            && let Some((range, period)) = grow(forms, previous, at)
        {
            at = range.end;
            found.push((range, period));
            last_seen.clear();
            continue;
        }
        at += 1;
    }
    found
}

/// The repetition with the period of two equal seeds, if at least two whole periods agree.
fn grow(forms: &[u64], first: usize, second: usize) -> Option<(Range<usize>, usize)> {
    // A period too short to be worth a template is taken several times.
    let distance = second - first;
    let period = distance * MIN_PERIOD.div_ceil(distance);
    let agreeing = forms[first..]
        .iter()
        .zip(forms.get(first + period..)?)
        .take_while(|(x, y)| x == y)
        .count();
    let periods = 1 + agreeing / period;
    (periods > 1).then_some((first..first + periods * period, period))
}

/// A number that equal rows of equal blocks share.
fn form(item: &Item<'_>) -> u64 {
    let Item::Row { cursor, a, b, c } = *item else {
        return 0;
    };
    let mut state = mix(mix(a.len() as u64, b.len() as u64), c.len() as u64);
    for term in terms(a, b, c) {
        let distance = cursor.wrapping_sub(term[0]);
        let near = term[0] & OUTSIDE == 0 && distance <= NEAR;
        let place = if near { u64::from(distance) + 1 } else { 0 };
        state = mix(state, u64::from(term[1]) << 32 | place);
    }
    state
}

fn mix_all(forms: &[u64]) -> u64 {
    forms.iter().fold(0, |state, &form| mix(state, form))
}

fn mix(state: u64, word: u64) -> u64 {
    let mixed = (state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_forms(forms: &[u64]) -> Vec<(Range<usize>, usize)> {
        repetitions(forms)
    }

    #[test]
    fn a_repeated_block_is_found_with_its_period_between_other_rows() {
        let head: Vec<u64> = (1000..1020).collect();
        let block: Vec<u64> = (0..137).map(|i| i * i % 11 + i).collect();
        let tail: Vec<u64> = (2000..2011).collect();
        let mut forms = head.clone();
        (0..5).for_each(|_| forms.extend(&block));
        forms.extend(&tail);
        assert_eq!(cut_forms(&forms), [(20..20 + 5 * 137, 137)]);
    }

    #[test]
    fn a_single_repeated_row_is_cut_into_pieces_of_a_useful_length() {
        assert_eq!(cut_forms(&[7; 200]), [(0..192, 64)]);
    }

    #[test]
    fn rows_without_repetition_stay_together() {
        let forms: Vec<u64> = (0..500).collect();
        assert!(cut_forms(&forms).is_empty());
    }
}
