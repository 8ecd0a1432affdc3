//! Results that are kept for clients: bounded by count, age and bytes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::{JobId, JobResult, KeptResults};

/// Bytes that a result takes beside its proof and its texts.
const OVERHEAD: u64 = 512;

/// The results, by job.
pub(crate) struct Results {
    limits: KeptResults,
    kept: HashMap<JobId, Kept>,
    /// Which go first: fetched ones, then the oldest.
    order: BTreeSet<(bool, u64, JobId)>,
    /// When they go at the latest, on the engine's clock.
    expiry: BTreeSet<(Duration, JobId)>,
    bytes: u64,
}

struct Kept {
    key: u64,
    result: Arc<JobResult>,
    expires: Duration,
    fetched: bool,
}

impl Results {
    pub fn new(limits: KeptResults) -> Self {
        Self {
            limits,
            kept: HashMap::new(),
            order: BTreeSet::new(),
            expiry: BTreeSet::new(),
            bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// A job's result, which its client thereby has.
    pub fn fetch(&mut self, job: &JobId) -> Option<Arc<JobResult>> {
        let kept = self.kept.get_mut(job)?;
        if !kept.fetched {
            kept.fetched = true;
            self.order.remove(&(true, kept.key, job.clone()));
            self.order.insert((false, kept.key, job.clone()));
        }
        Some(Arc::clone(&kept.result))
    }

    /// A job's result, for others than its client.
    pub fn peek(&self, job: &JobId) -> Option<&Arc<JobResult>> {
        self.kept.get(job).map(|kept| &kept.result)
    }

    /// Keeps a result that has been there for `age`.
    pub fn keep(&mut self, key: u64, result: Arc<JobResult>, age: Duration, now: Duration) {
        let job = result.job.clone();
        let expires = now + self.limits.age.saturating_sub(age);
        self.bytes += bytes(&result);
        self.order.insert((true, key, job.clone()));
        self.expiry.insert((expires, job.clone()));
        let kept = Kept {
            key,
            result,
            expires,
            fetched: false,
        };
        self.kept.insert(job, kept);
    }

    /// Removes what is too much or too old.
    pub fn prune(&mut self, now: Duration) -> Vec<(u64, Arc<JobResult>)> {
        let mut gone = Vec::new();
        while let Some((expires, job)) = self.expiry.first() {
            if *expires > now {
                break;
            }
            let job = job.clone();
            gone.extend(self.remove(&job));
        }
        while self.kept.len() > self.limits.count || self.bytes > self.limits.bytes {
            let Some((_, _, job)) = self.order.first() else {
                break;
            };
            let job = job.clone();
            gone.extend(self.remove(&job));
        }
        gone
    }

    fn remove(&mut self, job: &JobId) -> Option<(u64, Arc<JobResult>)> {
        let kept = self.kept.remove(job)?;
        self.order.remove(&(!kept.fetched, kept.key, job.clone()));
        self.expiry.remove(&(kept.expires, job.clone()));
        self.bytes -= bytes(&kept.result);
        Some((kept.key, kept.result))
    }
}

fn bytes(result: &JobResult) -> u64 {
    let request = result.request_id.as_ref().map_or(0, String::len);
    OVERHEAD + (result.proof.len() + result.message.len() + request) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobState, JobTimes};

    fn result(name: &str) -> Arc<JobResult> {
        Arc::new(JobResult {
            job: JobId::new(name),
            request_id: None,
            circuit: String::new(),
            state: JobState::Completed,
            proof: vec![0; 192],
            message: String::new(),
            times: JobTimes::default(),
        })
    }

    fn names(gone: &[(u64, Arc<JobResult>)]) -> Vec<&str> {
        gone.iter().map(|(_, r)| r.job.as_str()).collect()
    }

    fn limits(count: usize, bytes: u64) -> KeptResults {
        KeptResults {
            count,
            age: Duration::from_secs(10),
            bytes,
        }
    }

    #[test]
    fn fetched_results_go_before_those_that_nobody_has_seen() {
        let mut results = Results::new(limits(2, u64::MAX));
        for (key, name) in [(1, "a"), (2, "b"), (3, "c")] {
            results.keep(key, result(name), Duration::ZERO, Duration::ZERO);
        }
        assert!(results.fetch(&JobId::new("b")).is_some());
        assert_eq!(names(&results.prune(Duration::ZERO)), ["b"]);
        results.keep(4, result("d"), Duration::ZERO, Duration::ZERO);
        assert_eq!(names(&results.prune(Duration::ZERO)), ["a"]);
        assert!(results.fetch(&JobId::new("a")).is_none());
        assert_eq!(results.len(), 2);
    }

    #[test]
    fn results_go_when_they_are_too_old_or_too_large_together() {
        let mut results = Results::new(limits(100, 3 * (512 + 192)));
        results.keep(1, result("a"), Duration::from_secs(9), Duration::ZERO);
        results.keep(2, result("b"), Duration::ZERO, Duration::ZERO);
        assert!(results.prune(Duration::ZERO).is_empty());
        assert_eq!(names(&results.prune(Duration::from_secs(1))), ["a"]);
        for (key, name) in [(3, "c"), (4, "d"), (5, "e")] {
            results.keep(key, result(name), Duration::ZERO, Duration::from_secs(5));
        }
        assert_eq!(names(&results.prune(Duration::from_secs(5))), ["b"]);
        assert_eq!(
            names(&results.prune(Duration::from_secs(15))),
            ["c", "d", "e"]
        );
        assert_eq!((results.len(), results.bytes), (0, 0));
    }
}
