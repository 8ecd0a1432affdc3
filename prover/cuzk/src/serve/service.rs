//! The gRPC service over the engine.

use super::interest::Interest;
use super::{Shared, convert, deadline, metrics};
use crate::rpc;
use crate::rpc::await_proof_response::Status as Ended;
use crate::rpc::proving_engine_server::ProvingEngine;
use cuzk_engine::{JobId, Submission, SubmitError, Submitted, Tier, Waited};
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Response, Status};

/// The service.
pub struct Service {
    shared: Arc<Shared>,
}

type Answer<T> = Result<Response<T>, Status>;

impl Service {
    /// Over an engine.
    pub fn new(shared: Arc<Shared>) -> Self {
        Service { shared }
    }

    /// Submits on a thread that may block: parsing and journaling take their time. `then` runs there,
    /// too, so that it runs even when the caller goes meanwhile.
    async fn submit<T: Send + 'static>(
        &self,
        request: rpc::SubmitProofRequest,
        then: impl FnOnce(Arc<Shared>, Submitted) -> T + Send + 'static,
    ) -> Result<T, Status> {
        if self.shared.is_draining() {
            return Err(convert::refused(&SubmitError::Draining));
        }
        let submission = convert::submission(request)?;
        let shared = self.shared.clone();
        self.blocking(move || {
            let submitted = submit_on(&shared, submission)?;
            Ok(then(shared, submitted))
        })
        .await?
    }

    /// Runs what may block apart from the threads that serve connections.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| Status::internal(format!("the daemon failed: {error}")))
    }

    /// Waits for a job, at most for `limit`, and no longer than the daemon runs.
    async fn wait(&self, job: &JobId, limit: Option<Duration>) -> Result<Waited, Status> {
        let mut stop = self.shared.stop.subscribe();
        tokio::select! {
            waited = self.shared.engine.wait(job, limit) => Ok(waited),
            _ = stop.wait_for(|stopping| *stopping) => Err(Status::unavailable(
                "the daemon stops; the job is in its journal and goes on at the next start",
            )),
        }
    }
}

fn submit_on(shared: &Shared, submission: Submission) -> Result<Submitted, Status> {
    shared
        .engine
        .submit(submission)
        .map_err(|error| convert::refused(&error))
}

fn answer(job: &JobId, waited: &Waited) -> rpc::AwaitProofResponse {
    match waited {
        Waited::Unknown => convert::without_result(job.to_string(), Ended::Unknown),
        Waited::Timeout => convert::without_result(job.to_string(), Ended::Timeout),
        Waited::Done(result) => convert::result(result),
    }
}

/// The number of jobs or bytes that fits the contract's field.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[tonic::async_trait]
impl ProvingEngine for Service {
    async fn submit_proof(
        &self,
        request: Request<rpc::SubmitProofRequest>,
    ) -> Answer<rpc::SubmitProofResponse> {
        let submitted = self
            .submit(request.into_inner(), |shared, submitted| {
                shared.interests.keep(&submitted.job);
                submitted
            })
            .await?;
        Ok(Response::new(rpc::SubmitProofResponse {
            job_id: submitted.job.to_string(),
            queue_position: submitted.queue_position,
            assigned_gpu: submitted.device.unwrap_or_default(),
        }))
    }

    async fn await_proof(
        &self,
        request: Request<rpc::AwaitProofRequest>,
    ) -> Answer<rpc::AwaitProofResponse> {
        let timeout = deadline::of(request.metadata());
        let request = request.into_inner();
        let job = JobId::new(request.job_id);
        let limit = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
        let waited = deadline::within(timeout, self.wait(&job, limit)).await?;
        Ok(Response::new(answer(&job, &waited)))
    }

    async fn prove(&self, request: Request<rpc::ProveRequest>) -> Answer<rpc::ProveResponse> {
        let timeout = deadline::of(request.metadata());
        let submit = request
            .into_inner()
            .submit
            .ok_or_else(|| Status::invalid_argument("submit: missing"))?;
        // From here on the job is cancelled when this future is dropped: the client's deadline has
        // passed, or its stream or connection has ended.
        let (job, interest) = self
            .submit(submit, |shared, submitted| {
                let interest = Interest::new(shared, &submitted);
                (submitted.job, interest)
            })
            .await?;
        let waited = deadline::within(timeout, self.wait(&job, None)).await?;
        interest.settled();
        Ok(Response::new(rpc::ProveResponse {
            result: Some(answer(&job, &waited)),
        }))
    }

    async fn cancel_proof(
        &self,
        request: Request<rpc::CancelProofRequest>,
    ) -> Answer<rpc::CancelProofResponse> {
        let job = JobId::new(request.into_inner().job_id);
        let shared = self.shared.clone();
        let name = job.clone();
        let outcome = self
            .blocking(move || shared.engine.cancel(&name))
            .await?
            .ok_or_else(|| {
                Status::not_found(format!(
                    "no job {:?}: it never was, or its result has expired",
                    job.as_str()
                ))
            })?;
        Ok(Response::new(rpc::CancelProofResponse {
            was_running: outcome.was_running,
        }))
    }

    async fn get_status(
        &self,
        _request: Request<rpc::GetStatusRequest>,
    ) -> Answer<rpc::GetStatusResponse> {
        let status = self.shared.engine.status();
        let gpus = status
            .devices
            .iter()
            .filter_map(|device| {
                let current = device.proving.first();
                Some(rpc::GpuStatus {
                    ordinal: count(device.ordinal?),
                    name: device.name.clone(),
                    vram_total_bytes: device.memory_total,
                    vram_free_bytes: device.memory_free,
                    current_job_id: current.map(|c| c.0.to_string()).unwrap_or_default(),
                    current_proof_kind: current
                        .map(|c| convert::kind_name(c.1).to_owned())
                        .unwrap_or_default(),
                })
            })
            .collect();
        let loaded_srs = status
            .parameters
            .iter()
            .map(|parameters| rpc::SrsStatus {
                circuit_id: parameters.circuit.to_string(),
                tier: match parameters.tier {
                    Tier::Hot => rpc::srs_status::Tier::Hot,
                    Tier::Warm => rpc::srs_status::Tier::Warm,
                    Tier::Cold => rpc::srs_status::Tier::Cold,
                } as i32,
                size_bytes: parameters.bytes,
                ref_count: parameters.users,
            })
            .collect();
        let queues = status
            .queues
            .iter()
            .map(|queue| rpc::QueueStatus {
                proof_kind: convert::kind_name(queue.kind).to_owned(),
                pending: queue.pending,
                in_progress: queue.in_progress,
            })
            .collect();
        Ok(Response::new(rpc::GetStatusResponse {
            gpus,
            loaded_srs,
            queues,
            total_proofs_completed: status.totals.completed,
            total_proofs_failed: status.totals.failed,
            uptime_seconds: status.uptime.as_secs(),
            pinned_memory_bytes: status.host_memory.used,
            pinned_memory_limit_bytes: status.host_memory.limit,
        }))
    }

    async fn get_metrics(
        &self,
        _request: Request<rpc::GetMetricsRequest>,
    ) -> Answer<rpc::GetMetricsResponse> {
        Ok(Response::new(rpc::GetMetricsResponse {
            prometheus_text: metrics::text(&self.shared),
        }))
    }

    async fn preload_srs(
        &self,
        request: Request<rpc::PreloadSrsRequest>,
    ) -> Answer<rpc::PreloadSrsResponse> {
        let circuit = convert::circuit(&request.into_inner().circuit_id)?;
        let loaded = self.shared.engine.preload(circuit).await;
        let loaded = loaded.map_err(|error| convert::not_loaded(&error))?;
        Ok(Response::new(rpc::PreloadSrsResponse {
            already_loaded: loaded.already_loaded,
            load_time_ms: convert::milliseconds(loaded.load_time),
        }))
    }

    async fn evict_srs(
        &self,
        request: Request<rpc::EvictSrsRequest>,
    ) -> Answer<rpc::EvictSrsResponse> {
        let circuit = convert::circuit(&request.into_inner().circuit_id)?;
        let shared = self.shared.clone();
        let evicted = self.blocking(move || shared.engine.evict(circuit)).await?;
        Ok(Response::new(rpc::EvictSrsResponse {
            was_loaded: evicted.was_loaded,
            freed_bytes: evicted.freed_bytes,
        }))
    }
}
