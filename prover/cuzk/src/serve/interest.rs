//! Who still wants a job: one that only `Prove` calls asked for is cancelled when the last of them ends early.

use super::Shared;
use cuzk_engine::{JobId, Submitted};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The `Prove` calls that wait now, by job.
#[derive(Default)]
pub struct Interests(Mutex<HashMap<JobId, Calls>>);

struct Calls {
    waiting: usize,
    /// Somebody will come for the result on another way.
    kept: bool,
}

impl Interests {
    fn calls(&self) -> MutexGuard<'_, HashMap<JobId, Calls>> {
        // A count is right whatever a panicking thread was about to do next.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a job was submitted by itself: its client will ask for the result.
    pub fn keep(&self, job: &JobId) {
        if let Some(calls) = self.calls().get_mut(job) {
            calls.kept = true;
        }
    }
}

/// One `Prove` call's interest in its job. Dropped before [`Interest::settled`], it was given up.
pub struct Interest {
    shared: Arc<Shared>,
    job: JobId,
    settled: bool,
}

impl Interest {
    /// Of a call whose job was submitted just now.
    pub fn new(shared: Arc<Shared>, submitted: &Submitted) -> Self {
        let job = submitted.job.clone();
        let mut calls = shared.interests.calls();
        calls
            .entry(job.clone())
            .or_insert(Calls {
                waiting: 0,
                // It was known although no call waits for it.
                kept: submitted.joined,
            })
            .waiting += 1;
        drop(calls);
        Interest {
            shared,
            job,
            settled: false,
        }
    }

    /// The call has its answer.
    pub fn settled(mut self) {
        self.settled = true;
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let mut calls = self.shared.interests.calls();
        let Some(entry) = calls.get_mut(&self.job) else {
            return;
        };
        entry.waiting -= 1;
        let last = entry.waiting == 0;
        let wanted = entry.kept;
        if last {
            calls.remove(&self.job);
        }
        drop(calls);
        // When the daemon stops, connections end although their clients still want the result.
        if last && !wanted && !self.settled && !self.shared.is_stopping() {
            let (shared, job) = (self.shared.clone(), self.job.clone());
            self.shared.runtime.spawn_blocking(move || {
                tracing::info!("{job}: cancelled, its caller has gone");
                shared.engine.cancel(&job);
            });
        }
    }
}
