//! Where the time went: spans with parents, measured on the host or reported by a device.
//!
//! ```
//! use cuzk_prover::timeline::Timeline;
//!
//! let timeline = Timeline::new();
//! let prove = timeline.span("prove");
//! let quotient = prove.child("quotient");
//! drop(quotient);
//! let spent = prove.end();
//! let report = timeline.report();
//! assert_eq!(report.rows[1].name, "prove");
//! assert!(report.rows[1].wall >= report.rows[2].wall);
//! println!("{report}");
//! # assert!(spent.as_secs_f64() >= report.rows[2].wall);
//! ```

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

mod report;
mod trace;

pub use report::{Report, ReportRow};

/// The track of spans that a device's events measured.
pub const DEVICE_TRACK: &str = "device";

/// Names a span of one timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(usize);

/// A span as it was recorded. Times count from the timeline's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanRecord {
    /// What was done.
    pub name: Cow<'static, str>,
    /// The span that this one is a part of.
    pub parent: Option<SpanId>,
    /// The thread or the device queue that did it.
    pub track: Cow<'static, str>,
    /// When it began.
    pub start: Duration,
    /// How long it took; none while it is still running.
    pub duration: Option<Duration>,
    /// Quantities that belong to the span, such as bytes or points.
    pub notes: Vec<(&'static str, u64)>,
}

/// A record of spans that threads and back ends add to. Clones share the record.
#[derive(Clone, Debug)]
pub struct Timeline {
    origin: Instant,
    spans: Arc<Mutex<Vec<SpanRecord>>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

impl Timeline {
    /// An empty timeline whose origin is now.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
            spans: Arc::default(),
        }
    }

    /// The instant that all times count from.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// The time since the origin.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Begins a span without a parent on the current thread; it ends when the guard is dropped.
    pub fn span(&self, name: impl Into<Cow<'static, str>>) -> Span {
        self.begin(None, name.into())
    }

    /// Begins a part of `parent` on the current thread; it ends when the guard is dropped.
    pub fn span_in(&self, parent: SpanId, name: impl Into<Cow<'static, str>>) -> Span {
        self.begin(Some(parent), name.into())
    }

    /// Adds a span that was measured elsewhere, for instance by a device's events. `start` counts
    /// from the origin.
    pub fn record(
        &self,
        parent: Option<SpanId>,
        name: impl Into<Cow<'static, str>>,
        track: impl Into<Cow<'static, str>>,
        start: Duration,
        duration: Duration,
    ) -> SpanId {
        self.push(SpanRecord {
            name: name.into(),
            parent,
            track: track.into(),
            start,
            duration: Some(duration),
            notes: Vec::new(),
        })
    }

    /// Copies all spans of `other`; those without a parent become parts of `parent`.
    pub fn absorb(&self, parent: Option<SpanId>, other: &Timeline) {
        if Arc::ptr_eq(&self.spans, &other.spans) {
            return;
        }
        let incoming = other.spans();
        let mut spans = self.lock();
        let first = spans.len();
        for mut span in incoming {
            span.parent = span.parent.map(|SpanId(id)| SpanId(first + id)).or(parent);
            span.start = match other.origin.checked_duration_since(self.origin) {
                Some(later) => span.start + later,
                None => span.start.saturating_sub(self.origin - other.origin),
            };
            spans.push(span);
        }
    }

    /// All spans so far. The position of a span is its number: parents stand before their parts,
    /// except where a part was added by [`Self::record`].
    pub fn spans(&self) -> Vec<SpanRecord> {
        self.lock().clone()
    }

    /// The spans as a table: wall time, sum of parts, and the rest that no part explains.
    pub fn report(&self) -> Report {
        Report::new(&self.spans(), self.elapsed())
    }

    /// The spans in Chrome's trace format, which Perfetto and `chrome://tracing` open.
    pub fn chrome_trace(&self) -> String {
        trace::chrome(&self.spans(), self.elapsed())
    }

    fn begin(&self, parent: Option<SpanId>, name: Cow<'static, str>) -> Span {
        let track = thread::current()
            .name()
            .map_or("thread".into(), |name| name.to_owned().into());
        let id = self.push(SpanRecord {
            name,
            parent,
            track,
            start: self.elapsed(),
            duration: None,
            notes: Vec::new(),
        });
        Span {
            timeline: self.clone(),
            id,
        }
    }

    fn push(&self, span: SpanRecord) -> SpanId {
        let mut spans = self.lock();
        spans.push(span);
        SpanId(spans.len() - 1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SpanRecord>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A span that is running; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "a span ends when its guard is dropped"]
pub struct Span {
    timeline: Timeline,
    id: SpanId,
}

impl Span {
    /// Begins a part of this span.
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Span {
        self.timeline.span_in(self.id, name)
    }

    /// Runs `work` as a part of this span.
    pub fn time<T>(&self, name: impl Into<Cow<'static, str>>, work: impl FnOnce() -> T) -> T {
        let _part = self.child(name);
        work()
    }

    /// Drops `value` as a part of this span named "free", because freeing much memory takes time.
    pub fn free<T>(&self, value: T) {
        self.time("free", || drop(value));
    }

    /// Attaches a quantity.
    pub fn note(&self, key: &'static str, value: u64) {
        if let Some(span) = self.timeline.lock().get_mut(self.id.0) {
            span.notes.push((key, value));
        }
    }

    /// The span's number, to add parts from elsewhere.
    pub fn id(&self) -> SpanId {
        self.id
    }

    /// The timeline that the span belongs to.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Ends the span now and returns how long it took.
    pub fn end(self) -> Duration {
        self.close()
    }

    fn close(&self) -> Duration {
        let now = self.timeline.elapsed();
        match self.timeline.lock().get_mut(self.id.0) {
            Some(span) => *span.duration.get_or_insert(now.saturating_sub(span.start)),
            None => Duration::ZERO,
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_span_keeps_its_parent_and_its_notes() {
        let timeline = Timeline::new();
        let outer = timeline.span("outer");
        let inner = outer.child("inner");
        inner.note("points", 12);
        drop(inner);
        drop(outer);
        let spans = timeline.spans();
        assert_eq!(spans[1].parent, Some(SpanId(0)));
        assert_eq!(spans[1].notes, [("points", 12)]);
        assert!(spans.iter().all(|span| span.duration.is_some()));
        assert!(spans[0].duration >= spans[1].duration);
    }

    #[test]
    fn absorbed_spans_keep_their_real_time_and_get_a_parent() {
        let early = Timeline::new();
        thread::sleep(5 * MS);
        let late = Timeline::new();
        late.record(None, "kernel", "gpu", MS, 2 * MS);
        let outer = early.span("outer");
        early.absorb(Some(outer.id()), &late);
        let spans = early.spans();
        assert_eq!(spans[1].parent, Some(outer.id()));
        assert!(spans[1].start >= 6 * MS, "{:?}", spans[1].start);
        assert_eq!(spans[1].duration, Some(2 * MS));

        late.absorb(None, &early);
        let back = &late.spans()[2];
        assert_eq!((back.name.as_ref(), back.start), ("kernel", MS));
    }

    #[test]
    fn a_timeline_does_not_absorb_itself() {
        let timeline = Timeline::new();
        timeline.record(None, "once", "host", MS, MS);
        timeline.absorb(None, &timeline.clone());
        assert_eq!(timeline.spans().len(), 1);
    }
}
