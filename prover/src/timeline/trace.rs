//! A timeline in Chrome's trace format: complete events in microseconds, one row for each track.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};

use super::SpanRecord;

/// Renders the spans; those that still run last until `now`.
pub(super) fn chrome(spans: &[SpanRecord], now: Duration) -> String {
    let mut tracks: BTreeMap<&str, usize> = BTreeMap::new();
    for span in spans {
        let next = tracks.len() + 1;
        tracks.entry(&span.track).or_insert(next);
    }
    let names = tracks.iter().map(|(name, id)| {
        json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": id, "args": { "name": name } })
    });
    let events = spans
        .iter()
        .map(|span| event(span, tracks[&*span.track], now));
    let events: Vec<Value> = names.chain(events).collect();
    json!({ "displayTimeUnit": "ms", "traceEvents": events }).to_string()
}

/// One complete event.
fn event(span: &SpanRecord, track: usize, now: Duration) -> Value {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let duration = span.duration.unwrap_or(now.saturating_sub(span.start));
    let notes: Map<String, Value> = span
        .notes
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    json!({
        "name": span.name,
        "ph": "X",
        "pid": 1,
        "tid": track,
        "ts": micros(span.start),
        "dur": micros(duration),
        "args": notes,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Timeline;
    use super::*;

    #[test]
    fn the_trace_is_json_with_one_event_a_span_and_one_name_a_track() {
        let timeline = Timeline::new();
        let ms = Duration::from_millis(1);
        let prove = timeline.record(None, "prove \"x\"", "host", ms, 4 * ms);
        timeline.record(Some(prove), "kernel", "cuda:0", 2 * ms, ms);
        let trace: Value = serde_json::from_str(&timeline.chrome_trace()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        let kernel = events.iter().find(|e| e["name"] == "kernel").unwrap();
        assert_eq!(kernel["ts"], 2000.0);
        assert_eq!(kernel["dur"], 1000.0);
        let host = events.iter().find(|e| e["args"]["name"] == "host").unwrap();
        assert_ne!(kernel["tid"], host["tid"]);
    }
}
