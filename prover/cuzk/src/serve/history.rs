//! What happened lately: the engine's events as a timeline of stages, and how long jobs took.

use cuzk_engine::{Event, EventKind, JobId, JobState, Stage};
use cuzk_filecoin::{CircuitId, ProofKind};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Finished stages kept for the timeline.
const SPANS: usize = 2000;
/// Ended jobs kept for the page.
const ENDED: usize = 100;
/// Upper bounds of the job time histogram, in seconds.
pub const BUCKETS: [f64; 12] = [
    0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1800.0, 7200.0,
];

/// One stage of a job or of a partition, over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The job.
    pub job: String,
    /// The partition; none for stages of the whole job.
    pub partition: Option<usize>,
    /// What was done.
    pub stage: &'static str,
    /// Where: an index into the status' devices.
    pub device: Option<usize>,
    /// Milliseconds since 1970.
    pub begin: u64,
    /// Milliseconds since 1970.
    pub end: u64,
}

/// A job that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ended {
    /// The job.
    pub job: String,
    /// Its circuit.
    pub circuit: String,
    /// How it ended.
    pub state: &'static str,
    /// Milliseconds since 1970.
    pub accepted: u64,
    /// Milliseconds since 1970.
    pub ended: u64,
}

/// How long completed jobs of one kind took.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Jobs up to each bound of [`BUCKETS`], cumulated when printed.
    pub counts: [u64; BUCKETS.len()],
    /// All jobs.
    pub count: u64,
    /// Their seconds.
    pub sum: f64,
}

/// The recorder. Its memory is bounded whatever the engine does.
#[derive(Default)]
pub struct History(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    open: HashMap<JobId, Open>,
    spans: VecDeque<Span>,
    ended: VecDeque<Ended>,
    times: HashMap<&'static str, Histogram>,
}

/// A job that has not ended.
struct Open {
    circuit: CircuitId,
    accepted: SystemTime,
    /// What the job (none) and its partitions are at.
    stages: HashMap<Option<usize>, (Stage, SystemTime, Option<usize>)>,
}

impl History {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A recorder may lose an entry, but not its process.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an event.
    pub fn record(&self, event: &Event) {
        let mut inner = self.inner();
        match &event.kind {
            EventKind::Accepted { job, circuit } => {
                let open = Open {
                    circuit: *circuit,
                    accepted: event.at,
                    stages: HashMap::new(),
                };
                inner.open.insert(job.clone(), open);
            }
            EventKind::Job { job, stage } => inner.enter(job, None, *stage, None, event.at),
            EventKind::Partition {
                job,
                partition,
                stage,
                device,
            } => inner.enter(job, Some(*partition), *stage, *device, event.at),
            EventKind::Finished { job, state } => inner.finish(job, *state, event.at),
            _ => {}
        }
    }

    /// Forgets the jobs that are under way, for events about them were missed.
    pub fn missed_events(&self) {
        self.inner().open.clear();
    }

    /// The finished stages, oldest first.
    pub fn spans(&self) -> Vec<Span> {
        self.inner().spans.iter().cloned().collect()
    }

    /// The jobs that ended lately, oldest first.
    pub fn ended(&self) -> Vec<Ended> {
        self.inner().ended.iter().cloned().collect()
    }

    /// How long completed jobs of a kind took.
    pub fn times(&self, kind: ProofKind) -> Histogram {
        self.inner()
            .times
            .get(super::convert::kind_name(kind))
            .cloned()
            .unwrap_or_default()
    }
}

impl Inner {
    fn enter(
        &mut self,
        job: &JobId,
        partition: Option<usize>,
        stage: Stage,
        device: Option<usize>,
        at: SystemTime,
    ) {
        let Some(open) = self.open.get_mut(job) else {
            return;
        };
        let before = open.stages.insert(partition, (stage, at, device));
        if let Some(before) = before {
            self.close(job, partition, before, at);
        }
    }

    fn close(
        &mut self,
        job: &JobId,
        partition: Option<usize>,
        (stage, begin, device): (Stage, SystemTime, Option<usize>),
        end: SystemTime,
    ) {
        // Proved partitions only wait for the others.
        if stage == Stage::Proved {
            return;
        }
        if self.spans.len() == SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(Span {
            job: job.to_string(),
            partition,
            stage: stage.name(),
            device,
            begin: unix_milliseconds(begin),
            end: unix_milliseconds(end),
        });
    }

    fn finish(&mut self, job: &JobId, state: JobState, at: SystemTime) {
        let Some(open) = self.open.remove(job) else {
            return;
        };
        for (partition, stage) in open.stages {
            self.close(job, partition, stage, at);
        }
        if state == JobState::Completed {
            // A clock that jumped back makes a time of zero.
            let seconds = at
                .duration_since(open.accepted)
                .unwrap_or_default()
                .as_secs_f64();
            self.times
                .entry(super::convert::kind_name(open.circuit.kind))
                .or_default()
                .add(seconds);
        }
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended {
            job: job.to_string(),
            circuit: open.circuit.to_string(),
            state: state_name(state),
            accepted: unix_milliseconds(open.accepted),
            ended: unix_milliseconds(at),
        });
    }
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.sum += seconds;
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.counts[bucket] += 1;
        }
    }
}

/// The state in one word.
pub fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Completed => "completed",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

/// Milliseconds since 1970; 0 before.
pub fn unix_milliseconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, super::convert::milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64, kind: EventKind) -> Event {
        Event {
            at: UNIX_EPOCH + Duration::from_secs(seconds),
            kind,
        }
    }

    fn run_job(history: &History, name: &str, state: JobState) {
        let job = JobId::new(name);
        let circuit: CircuitId = "winning-2k".parse().unwrap();
        let partition = |stage, device| EventKind::Partition {
            job: job.clone(),
            partition: 0,
            stage,
            device,
        };
        let stages = [
            EventKind::Accepted {
                job: job.clone(),
                circuit,
            },
            EventKind::Job {
                job: job.clone(),
                stage: Stage::Parse,
            },
            partition(Stage::Synthesis, None),
            partition(Stage::Prove, Some(1)),
            partition(Stage::Proved, Some(1)),
            EventKind::Finished {
                job: job.clone(),
                state,
            },
        ];
        for (second, kind) in (10..).zip(stages) {
            history.record(&at(second, kind));
        }
    }

    #[test]
    fn stages_become_spans_and_jobs_become_times() {
        let history = History::default();
        run_job(&history, "j", JobState::Completed);
        let spans = history.spans();
        let mut seen: Vec<_> = spans
            .iter()
            .map(|s| (s.stage, s.partition, s.device, s.begin, s.end))
            .collect();
        seen.sort();
        assert_eq!(
            seen,
            [
                ("parse", None, None, 11_000, 15_000),
                ("prove", Some(0), Some(1), 13_000, 14_000),
                ("synthesis", Some(0), None, 12_000, 13_000),
            ]
        );
        let ended = history.ended();
        assert_eq!(
            (ended[0].state, ended[0].accepted, ended[0].ended),
            ("completed", 10_000, 15_000)
        );
        let times = history.times(ProofKind::Winning);
        assert_eq!((times.count, times.sum), (1, 5.0));
        assert_eq!(times.counts.iter().sum::<u64>(), 1);
        assert_eq!(history.times(ProofKind::Porep).count, 0);
    }

    #[test]
    fn memory_is_bounded_and_failures_have_no_time() {
        let history = History::default();
        for i in 0..SPANS {
            run_job(&history, &format!("j{i}"), JobState::Failed);
        }
        assert_eq!(history.spans().len(), SPANS);
        assert_eq!(history.ended().len(), ENDED);
        assert!(history.inner().open.is_empty());
        assert_eq!(history.times(ProofKind::Winning).count, 0);
        // Events about jobs that are not known are passed over.
        history.record(&at(
            1,
            EventKind::Finished {
                job: JobId::new("other"),
                state: JobState::Completed,
            },
        ));
        history.missed_events();
    }
}
