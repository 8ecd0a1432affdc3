//! The daemon's numbers in Prometheus' text format.

use super::history::{BUCKETS, Histogram};
use super::report::Process;
use super::{Shared, convert};
use cuzk_engine::Tier;
use cuzk_filecoin::ProofKind;
use std::fmt::{Display, Write};

/// All metrics.
pub fn text(shared: &Shared) -> String {
    let mut page = Page::default();
    let status = shared.engine.status();
    let totals = &status.totals;
    page.value(
        "cuzk_up_seconds",
        "gauge",
        "Since the engine was opened.",
        status.uptime.as_secs_f64(),
    );
    page.value(
        "cuzk_ready",
        "gauge",
        "1 when preloading is done and jobs are accepted.",
        u8::from(shared.is_ready()),
    );
    page.family("cuzk_jobs_total", "counter", "Jobs that ended, by how.");
    for (state, count) in [
        ("completed", totals.completed),
        ("failed", totals.failed),
        ("cancelled", totals.cancelled),
    ] {
        page.sample("cuzk_jobs_total", &[("state", state)], count);
    }
    page.family("cuzk_proofs_total", "counter", "Completed jobs, by kind.");
    for (queue, count) in status.queues.iter().zip(totals.completed_by_kind) {
        page.sample(
            "cuzk_proofs_total",
            &[("kind", convert::kind_name(queue.kind))],
            count,
        );
    }
    page.family(
        "cuzk_jobs",
        "gauge",
        "Jobs that have not ended, by kind and state.",
    );
    for queue in &status.queues {
        let kind = convert::kind_name(queue.kind);
        page.sample(
            "cuzk_jobs",
            &[("kind", kind), ("state", "pending")],
            queue.pending,
        );
        page.sample(
            "cuzk_jobs",
            &[("kind", kind), ("state", "in_progress")],
            queue.in_progress,
        );
    }
    page.value(
        "cuzk_partitions_total",
        "counter",
        "Partitions proved and verified.",
        totals.partitions,
    );
    page.value(
        "cuzk_retries_total",
        "counter",
        "Partitions tried again after a failure.",
        totals.retries,
    );
    page.value(
        "cuzk_synthesis_seconds_total",
        "counter",
        "Time spent in synthesis, over all partitions.",
        totals.synthesis.as_secs_f64(),
    );
    page.value(
        "cuzk_prove_seconds_total",
        "counter",
        "Time spent in proofs, over all partitions.",
        totals.prove.as_secs_f64(),
    );
    devices(&mut page, &status.devices);
    page.family(
        "cuzk_parameters_bytes",
        "gauge",
        "Size of the parameters, by circuit and tier.",
    );
    for parameters in &status.parameters {
        let labels = [
            ("circuit", &*parameters.circuit.to_string()),
            ("tier", parameters.tier.name()),
        ];
        page.sample("cuzk_parameters_bytes", &labels, parameters.bytes);
    }
    let hot = status
        .parameters
        .iter()
        .filter(|p| p.tier == Tier::Hot)
        .count();
    page.value(
        "cuzk_parameters_hot",
        "gauge",
        "Circuits whose parameters are hot.",
        hot,
    );
    page.value(
        "cuzk_host_memory_used_bytes",
        "gauge",
        "Reserved of the host memory budget.",
        status.host_memory.used,
    );
    page.value(
        "cuzk_host_memory_limit_bytes",
        "gauge",
        "The host memory budget.",
        status.host_memory.limit,
    );
    page.value(
        "cuzk_host_memory_peak_bytes",
        "gauge",
        "The most that was reserved.",
        status.host_memory.peak,
    );
    page.value(
        "cuzk_queued_input_bytes",
        "gauge",
        "Inputs of jobs that have not ended.",
        status.queued_bytes,
    );
    page.value(
        "cuzk_results_kept",
        "gauge",
        "Results kept for their clients.",
        status.results_kept,
    );
    let process = Process::read();
    page.value(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory of the process.",
        process.resident,
    );
    page.value(
        "process_peak_resident_memory_bytes",
        "gauge",
        "The most resident memory so far.",
        process.peak,
    );
    page.family(
        "cuzk_job_seconds",
        "histogram",
        "From acceptance to the end of completed jobs, by kind.",
    );
    for kind in ProofKind::ALL {
        histogram(
            &mut page,
            convert::kind_name(kind),
            &shared.history.times(kind),
        );
    }
    page.0
}

fn devices(page: &mut Page, devices: &[cuzk_engine::DeviceStatus]) {
    type Field = fn(&cuzk_engine::DeviceStatus) -> f64;
    let fields: [(&str, &str, &str, Field); 6] = [
        (
            "cuzk_device_busy_seconds_total",
            "counter",
            "Time with at least one partition.",
            |d| d.busy.as_secs_f64(),
        ),
        (
            "cuzk_device_partitions_total",
            "counter",
            "Partitions proved.",
            |d| d.proved as f64,
        ),
        (
            "cuzk_device_failures_total",
            "counter",
            "Partitions that failed.",
            |d| d.failed as f64,
        ),
        (
            "cuzk_device_proving",
            "gauge",
            "Partitions being proved.",
            |d| d.proving.len() as f64,
        ),
        (
            "cuzk_device_memory_bytes",
            "gauge",
            "Memory of the device.",
            |d| d.memory_total as f64,
        ),
        (
            "cuzk_device_memory_free_bytes",
            "gauge",
            "Memory of the device that is free.",
            |d| d.memory_free as f64,
        ),
    ];
    for (name, kind, help, field) in fields {
        page.family(name, kind, help);
        for (index, device) in devices.iter().enumerate() {
            let labels = [("device", &*index.to_string()), ("name", &*device.name)];
            page.sample(name, &labels, field(device));
        }
    }
}

fn histogram(page: &mut Page, kind: &str, times: &Histogram) {
    let mut below = 0;
    for (bound, count) in BUCKETS.iter().zip(times.counts) {
        below += count;
        let labels = [("kind", kind), ("le", &*bound.to_string())];
        page.sample("cuzk_job_seconds_bucket", &labels, below);
    }
    page.sample(
        "cuzk_job_seconds_bucket",
        &[("kind", kind), ("le", "+Inf")],
        times.count,
    );
    page.sample("cuzk_job_seconds_sum", &[("kind", kind)], times.sum);
    page.sample("cuzk_job_seconds_count", &[("kind", kind)], times.count);
}

/// The text so far.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            let text = text
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let open = if i == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{text}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    fn value(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_in_prometheus_format() {
        let mut page = Page::default();
        page.value("a", "gauge", "A.", 1.5);
        page.sample("b", &[("x", "q\"\\\n"), ("y", "2")], 3);
        assert_eq!(
            page.0,
            "# HELP a A.\n# TYPE a gauge\na 1.5\nb{x=\"q\\\"\\\\\\n\",y=\"2\"} 3\n"
        );
    }

    #[test]
    fn buckets_are_cumulated() {
        let mut times = Histogram::default();
        times.counts[1] = 2;
        times.counts[3] = 1;
        times.count = 4;
        let mut page = Page::default();
        histogram(&mut page, "K", &times);
        for line in [
            "cuzk_job_seconds_bucket{kind=\"K\",le=\"0.1\"} 0",
            "cuzk_job_seconds_bucket{kind=\"K\",le=\"0.5\"} 2",
            "cuzk_job_seconds_bucket{kind=\"K\",le=\"7200\"} 3",
            "cuzk_job_seconds_bucket{kind=\"K\",le=\"+Inf\"} 4",
            "cuzk_job_seconds_count{kind=\"K\"} 4",
        ] {
            assert!(
                page.0.lines().any(|l| l == line),
                "{line} not in\n{}",
                page.0
            );
        }
    }
}
