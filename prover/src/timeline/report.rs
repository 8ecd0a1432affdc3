//! The table of a timeline: for each span its wall time, the sum of its parts and the rest.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use super::{SpanId, SpanRecord};

/// The table of a timeline. The first row is the whole; parts follow their span. Spans of the same
/// name under the same parent share a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The rows, in order of time and depth.
    pub rows: Vec<ReportRow>,
}

/// A row of a [`Report`]. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportRow {
    /// How deep the span is nested; 0 for the whole.
    pub depth: usize,
    /// What was done.
    pub name: String,
    /// How many spans the row stands for.
    pub count: usize,
    /// The time from begin to end.
    pub wall: f64,
    /// The sum of the parts' times; above `wall` where parts ran side by side.
    pub parts: f64,
    /// The time during which no part ran; none where the span has no parts.
    pub unexplained: Option<f64>,
}

/// An interval in time.
type Interval = (Duration, Duration);

impl Report {
    /// Builds the table. Spans that still run last until `now`.
    pub(super) fn new(spans: &[SpanRecord], now: Duration) -> Self {
        let tree = Tree::new(spans, now);
        let roots = tree.children.get(&None).map_or(&[][..], Vec::as_slice);
        let begin = roots
            .iter()
            .map(|&i| tree.intervals[i].0)
            .min()
            .unwrap_or_default();
        let end = roots
            .iter()
            .map(|&i| tree.intervals[i].1)
            .max()
            .unwrap_or_default();
        let mut rows = vec![tree.row(0, "total", &[(begin, end)], roots)];
        tree.add_rows(&mut rows, 1, roots);
        Self { rows }
    }
}

/// Spans by parent, with the end of each.
struct Tree<'a> {
    spans: &'a [SpanRecord],
    intervals: Vec<Interval>,
    children: BTreeMap<Option<SpanId>, Vec<usize>>,
}

impl<'a> Tree<'a> {
    fn new(spans: &'a [SpanRecord], now: Duration) -> Self {
        let interval = |span: &SpanRecord| {
            let end = span.duration.map_or(now, |duration| span.start + duration);
            (span.start, end.max(span.start))
        };
        let mut children: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (i, span) in spans.iter().enumerate() {
            children.entry(span.parent).or_default().push(i);
        }
        children
            .values_mut()
            .for_each(|ids| ids.sort_by_key(|&i| spans[i].start));
        Self {
            spans,
            intervals: spans.iter().map(interval).collect(),
            children,
        }
    }

    /// Adds a row for each name among `ids`, each followed by the rows of its parts.
    fn add_rows(&self, rows: &mut Vec<ReportRow>, depth: usize, ids: &[usize]) {
        let mut names: Vec<&str> = Vec::new();
        for &i in ids {
            if !names.contains(&&*self.spans[i].name) {
                names.push(&self.spans[i].name);
            }
        }
        for name in names {
            let group: Vec<usize> = ids
                .iter()
                .copied()
                .filter(|&i| self.spans[i].name == name)
                .collect();
            let parts: Vec<usize> = group
                .iter()
                .filter_map(|&i| self.children.get(&Some(SpanId(i))))
                .flatten()
                .copied()
                .collect();
            let intervals: Vec<Interval> = group.iter().map(|&i| self.intervals[i]).collect();
            rows.push(self.row(depth, name, &intervals, &parts));
            self.add_rows(rows, depth + 1, &parts);
        }
    }

    /// The row of spans with these intervals and these parts.
    fn row(&self, depth: usize, name: &str, wholes: &[Interval], parts: &[usize]) -> ReportRow {
        let mut intervals: Vec<Interval> = parts.iter().map(|&i| self.intervals[i]).collect();
        intervals.sort();
        let length = |&(begin, end): &Interval| end.saturating_sub(begin);
        let rest: Duration = wholes
            .iter()
            .map(|whole| uncovered(*whole, &intervals))
            .sum();
        ReportRow {
            depth,
            name: name.to_owned(),
            count: wholes.len(),
            wall: wholes.iter().map(length).sum::<Duration>().as_secs_f64(),
            parts: intervals.iter().map(length).sum::<Duration>().as_secs_f64(),
            unexplained: (!parts.is_empty()).then_some(rest.as_secs_f64()),
        }
    }
}

/// The time of `whole` that none of the intervals covers; they are sorted by their beginning.
fn uncovered(whole: Interval, parts: &[Interval]) -> Duration {
    let mut rest = Duration::ZERO;
    let mut covered_to = whole.0;
    for &(begin, end) in parts {
        rest += begin.min(whole.1).saturating_sub(covered_to);
        covered_to = covered_to.max(end.min(whole.1));
    }
    rest + whole.1.saturating_sub(covered_to)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = |row: &ReportRow| {
            let times = if row.count > 1 {
                format!(" ×{}", row.count)
            } else {
                String::new()
            };
            format!("{:indent$}{}{times}", "", row.name, indent = 2 * row.depth)
        };
        let labels: Vec<String> = self.rows.iter().map(label).collect();
        let width = labels
            .iter()
            .map(|label| label.chars().count())
            .max()
            .unwrap_or(0)
            .max(5);
        writeln!(
            f,
            "{:width$}  {:>11}  {:>12}  {:>11}",
            "span", "wall", "sum of parts", "unexplained"
        )?;
        for (row, label) in self.rows.iter().zip(labels) {
            write!(f, "{label:width$}  {:>9.3} s", row.wall)?;
            match row.unexplained {
                Some(rest) => writeln!(f, "  {:>10.3} s  {rest:>9.3} s", row.parts)?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Timeline;
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// prove 0–100 ms: two msm parts 10–40 and 30–60 that overlap, free 90–95.
    fn example() -> Timeline {
        let timeline = Timeline::new();
        let prove = timeline.record(None, "prove", "host", ms(0), ms(100));
        timeline.record(Some(prove), "msm", "gpu", ms(30), ms(30));
        timeline.record(Some(prove), "msm", "gpu", ms(10), ms(30));
        timeline.record(Some(prove), "free", "host", ms(90), ms(5));
        timeline
    }

    #[test]
    fn the_unexplained_rest_counts_overlapping_parts_once() {
        let report = example().report();
        let names: Vec<_> = report
            .rows
            .iter()
            .map(|r| (r.depth, r.name.as_str(), r.count))
            .collect();
        assert_eq!(
            names,
            [
                (0, "total", 1),
                (1, "prove", 1),
                (2, "msm", 2),
                (2, "free", 1)
            ]
        );
        let prove = &report.rows[1];
        assert!((prove.wall - 0.100).abs() < 1e-9);
        assert!((prove.parts - 0.065).abs() < 1e-9);
        assert!((prove.unexplained.unwrap() - 0.045).abs() < 1e-9);
        assert_eq!(report.rows[2].unexplained, None);
        assert!((report.rows[2].wall - 0.060).abs() < 1e-9);
    }

    #[test]
    fn parts_that_outlast_their_span_do_not_make_the_rest_negative() {
        let timeline = Timeline::new();
        let outer = timeline.record(None, "outer", "host", ms(10), ms(10));
        timeline.record(Some(outer), "part", "gpu", ms(5), ms(30));
        let report = timeline.report();
        assert_eq!(report.rows[1].unexplained, Some(0.0));
    }

    #[test]
    fn an_empty_timeline_has_a_table() {
        let report = Timeline::new().report();
        assert_eq!(report.rows.len(), 1);
        assert!(report.to_string().starts_with("span"));
    }

    #[test]
    fn the_text_aligns_its_columns() {
        let text = example().report().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].ends_with("unexplained"));
        assert_eq!(lines[0].chars().count(), lines[1].chars().count());
        assert!(lines[3].contains("msm ×2"));
    }
}
