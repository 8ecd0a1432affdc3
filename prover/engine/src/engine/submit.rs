//! Accepting jobs: identity, limits, the journal, and only then the queue.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

use cuzk_filecoin::CircuitId;

use super::shared::{Completion, Input, Known, Live, Shared, State, millis};
use crate::{
    Executor, Footprint, JobId, JobState, JournalError, Priority, Submission, SubmitError,
    Submitted,
    journal::{Digest, JobRecord},
    scheduler::{NewJob, REQUEST_FACTOR},
};

/// The longest request id.
const LONGEST_ID: usize = 1024;

/// A submission with everything that is derived from it.
struct Candidate {
    request_id: Option<String>,
    digest: Digest,
    circuit: CircuitId,
    level: Priority,
    deadline: Option<Duration>,
    input: Input,
    bytes: u64,
    accepted: SystemTime,
}

impl<E: Executor> Shared<E> {
    pub fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        let request_id = submission.request_id.filter(|id| !id.is_empty());
        if let Some(found) = request_id
            .as_ref()
            .map(String::len)
            .filter(|&n| n > LONGEST_ID)
        {
            let limit = LONGEST_ID;
            return Err(SubmitError::RequestId { found, limit });
        }
        let circuit = self.executor.identify(&submission.request)?;
        let encoded = submission.request.to_json()?;
        let level = submission.priority.unwrap_or(Priority::of(circuit.kind));
        let mut candidate = Candidate {
            request_id,
            digest: digest(&encoded),
            circuit,
            level,
            deadline: submission.deadline,
            input: Input::Memory(Arc::new(submission.request)),
            bytes: encoded.len() as u64,
            accepted: SystemTime::now(),
        };
        if let Some(joined) = self.admit(&self.lock(), &candidate)? {
            return Ok(joined);
        }
        let footprint = self.fit(circuit, candidate.bytes)?;
        let job = self.name();
        if let Some(journal) = &self.journal {
            let path = journal.write_input(&job, &encoded).map_err(refusal)?;
            candidate.input = Input::File(path);
        }
        drop(encoded);
        let accepted = self.accept(&job, candidate, footprint);
        let new = matches!(&accepted, Ok(submitted) if !submitted.joined);
        if let (Some(journal), false) = (&self.journal, new) {
            journal.remove_input(&job);
        }
        accepted
    }

    /// Refuses a job, or joins it to one that is known; none if it is new and may come in.
    fn admit(
        &self,
        state: &State<E>,
        candidate: &Candidate,
    ) -> Result<Option<Submitted>, SubmitError> {
        let id = candidate.request_id.as_ref();
        if let Some((id, known)) = id.and_then(|id| state.requests.get_key_value(id)) {
            let result = state.results.peek(&known.job);
            // What brought no proof may be tried again, even with another request.
            if result.is_none_or(|result| result.state == JobState::Completed) {
                if known.digest != candidate.digest {
                    return Err(SubmitError::Conflict {
                        request_id: id.clone(),
                        job: known.job.clone(),
                    });
                }
                let live = state.live.get(&known.job);
                return Ok(Some(Submitted {
                    job: known.job.clone(),
                    queue_position: live.map_or(0, |live| state.scheduler.position(live.key)),
                    device: self.only_device.clone(),
                    joined: true,
                }));
            }
        }
        if state.draining {
            return Err(SubmitError::Draining);
        }
        let jobs = state.live.len();
        if jobs >= self.queue.jobs {
            return Err(SubmitError::QueueFull {
                jobs,
                limit: self.queue.jobs,
            });
        }
        let (bytes, queued) = (candidate.bytes, state.scheduler.queued_bytes());
        if queued.saturating_add(bytes) > self.queue.bytes {
            return Err(SubmitError::QueueBytes {
                bytes,
                queued,
                limit: self.queue.bytes,
            });
        }
        Ok(None)
    }

    /// What the job's circuit takes, if there can ever be enough memory for it.
    pub fn fit(&self, circuit: CircuitId, bytes: u64) -> Result<Footprint, SubmitError> {
        let footprint = match self.executor.footprint(circuit) {
            Ok(footprint) => footprint,
            Err(message) => return Err(SubmitError::Parameters { circuit, message }),
        };
        let Footprint {
            parameters,
            partition,
            ..
        } = footprint;
        let request = bytes.saturating_mul(REQUEST_FACTOR);
        let needed = parameters.saturating_add(partition).saturating_add(request);
        let limit = self.memory.limit();
        if needed > limit {
            return Err(SubmitError::NeverFits {
                circuit,
                needed,
                parameters,
                partition,
                request,
                limit,
            });
        }
        Ok(footprint)
    }

    /// A new job's name.
    fn name(&self) -> JobId {
        let mut state = self.lock();
        state.next_key += 1;
        JobId(format!("{:016x}-{}", self.instance, state.next_key))
    }

    /// Writes the job to the journal and puts it into the queue.
    fn accept(
        &self,
        job: &JobId,
        candidate: Candidate,
        footprint: Footprint,
    ) -> Result<Submitted, SubmitError> {
        let accepting = self
            .accepting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = {
            let mut state = self.lock();
            if let Some(joined) = self.admit(&state, &candidate)? {
                return Ok(joined);
            }
            state.next_key += 1;
            state.next_key
        };
        if let Some(journal) = &self.journal {
            let record = candidate.record(job);
            journal.accept(key, &record).map_err(refusal)?;
        }
        let mut state = self.lock();
        if let Some(id) = &candidate.request_id {
            let known = Known {
                job: job.clone(),
                digest: candidate.digest,
            };
            state.requests.insert(id.clone(), known);
        }
        let live = Live {
            key,
            digest: candidate.digest,
            completion: Arc::new(Completion::default()),
        };
        state.live.insert(job.clone(), live);
        let now = self.now();
        let new = candidate.into_new_job(job, now);
        state.scheduler.submit(key, new, footprint, now);
        let queue_position = state.scheduler.position(key);
        drop(self.settle(state));
        drop(accepting);
        self.work.notify_all();
        Ok(Submitted {
            job: job.clone(),
            queue_position,
            device: self.only_device.clone(),
            joined: false,
        })
    }
}

impl Candidate {
    fn record(&self, job: &JobId) -> JobRecord {
        let deadline = self
            .deadline
            .and_then(|after| self.accepted.checked_add(after));
        JobRecord {
            job: job.clone(),
            request_id: self.request_id.clone(),
            digest: self.digest,
            circuit: self.circuit.to_string(),
            priority: self.level,
            accepted: millis(self.accepted),
            deadline: deadline.map(millis),
            input_bytes: self.bytes,
        }
    }

    fn into_new_job<E: Executor>(self, job: &JobId, now: Duration) -> NewJob<super::shared::Of<E>> {
        NewJob {
            name: job.clone(),
            request_id: self.request_id,
            circuit: self.circuit,
            level: self.level,
            input: self.input,
            input_bytes: self.bytes,
            accepted: self.accepted,
            deadline: self.deadline.and_then(|after| now.checked_add(after)),
            restored: BTreeMap::new(),
        }
    }
}

/// What tells requests apart.
fn digest(encoded: &[u8]) -> Digest {
    let hash = blake2b_simd::Params::new().hash_length(32).hash(encoded);
    let mut digest = Digest::default();
    digest.copy_from_slice(hash.as_bytes());
    digest
}

fn refusal(error: JournalError) -> SubmitError {
    if error.is_disk_full() {
        SubmitError::DiskFull(error)
    } else {
        SubmitError::Journal(error)
    }
}

/// The bytes of an input that was written to a file.
pub(super) fn read_input(path: &Path) -> Result<cuzk_filecoin::ProofRequest, String> {
    let bytes =
        std::fs::read(path).map_err(|error| format!("the input {}: {error}", path.display()))?;
    cuzk_filecoin::ProofRequest::from_json(&bytes).map_err(|error| error.to_string())
}
