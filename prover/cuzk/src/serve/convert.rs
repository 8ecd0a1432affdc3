//! Between the contract's messages and the engine's types.

use crate::rpc::{self, await_proof_response};
use cuzk_engine::{JobResult, JobState, JobTimes, PreloadError, Priority, Submission, SubmitError};
use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest};
use std::time::Duration;
use tonic::Status;

/// The engine's submission for a client's request. Only its form is checked here; the engine looks at
/// the vanilla proofs.
pub fn submission(request: rpc::SubmitProofRequest) -> Result<Submission, Status> {
    let kind = kind(request.proof_kind)?;
    let priority = priority(request.priority)?;
    Ok(Submission {
        request_id: Some(request.request_id).filter(|id| !id.is_empty()),
        request: ProofRequest {
            kind,
            sector_size: request.sector_size,
            registered_proof: request.registered_proof,
            miner_id: request.miner_id,
            sector_number: request.sector_number,
            vanilla_proof: request.vanilla_proof,
            vanilla_proofs: request.vanilla_proofs,
            randomness: request.randomness,
            partition_index: request.partition_index,
            comm_r_old: request.comm_r_old,
            comm_r_new: request.comm_r_new,
            comm_d_new: request.comm_d_new,
        },
        priority,
        deadline: None,
    })
}

fn kind(number: i32) -> Result<ProofKind, Status> {
    Ok(match rpc::ProofKind::try_from(number) {
        Ok(rpc::ProofKind::PorepSealCommit) => ProofKind::Porep,
        Ok(rpc::ProofKind::SnapDealsUpdate) => ProofKind::Update,
        Ok(rpc::ProofKind::WindowPostPartition) => ProofKind::Window,
        Ok(rpc::ProofKind::WinningPost) => ProofKind::Winning,
        Ok(rpc::ProofKind::Unspecified) | Err(_) => {
            return Err(Status::invalid_argument(format!(
                "proof_kind: expected 1 (POREP_SEAL_COMMIT) to 4 (WINNING_POST), found {number}"
            )));
        }
    })
}

/// The contract's name of a kind.
pub fn kind_name(kind: ProofKind) -> &'static str {
    match kind {
        ProofKind::Porep => rpc::ProofKind::PorepSealCommit,
        ProofKind::Update => rpc::ProofKind::SnapDealsUpdate,
        ProofKind::Window => rpc::ProofKind::WindowPostPartition,
        ProofKind::Winning => rpc::ProofKind::WinningPost,
    }
    .as_str_name()
}

fn priority(number: i32) -> Result<Option<Priority>, Status> {
    Ok(match rpc::Priority::try_from(number) {
        Ok(rpc::Priority::Unspecified) => None,
        Ok(rpc::Priority::Low) => Some(Priority::Low),
        Ok(rpc::Priority::Normal) => Some(Priority::Normal),
        Ok(rpc::Priority::High) => Some(Priority::High),
        Ok(rpc::Priority::Critical) => Some(Priority::Critical),
        Err(_) => {
            return Err(Status::invalid_argument(format!(
                "priority: expected 0 (by kind) to 4 (CRITICAL), found {number}"
            )));
        }
    })
}

/// The circuit that a client names.
pub fn circuit(name: &str) -> Result<CircuitId, Status> {
    name.parse()
        .map_err(|error| Status::invalid_argument(format!("circuit_id: {error}")))
}

/// How a refused submission is answered.
pub fn refused(error: &SubmitError) -> Status {
    let message = error.to_string();
    match error {
        SubmitError::Conflict { .. } => Status::already_exists(message),
        SubmitError::Invalid(_) | SubmitError::RequestId { .. } => {
            Status::invalid_argument(message)
        }
        SubmitError::QueueFull { .. }
        | SubmitError::QueueBytes { .. }
        | SubmitError::DiskFull(_) => Status::resource_exhausted(message),
        SubmitError::NeverFits { .. } | SubmitError::Parameters { .. } => {
            Status::failed_precondition(message)
        }
        SubmitError::Draining => Status::unavailable(message),
        _ => Status::internal(message),
    }
}

/// How a failed preload is answered.
pub fn not_loaded(error: &PreloadError) -> Status {
    let message = error.to_string();
    match error {
        PreloadError::Draining => Status::unavailable(message),
        _ => Status::failed_precondition(message),
    }
}

/// The answer for a job that ended.
pub fn result(result: &JobResult) -> rpc::AwaitProofResponse {
    let JobTimes {
        queue_wait,
        srs_load,
        synthesis,
        gpu_compute,
        total,
    } = result.times;
    rpc::AwaitProofResponse {
        job_id: result.job.to_string(),
        status: match result.state {
            JobState::Completed => await_proof_response::Status::Completed,
            JobState::Failed => await_proof_response::Status::Failed,
            JobState::Cancelled => await_proof_response::Status::Cancelled,
        } as i32,
        proof: result.proof.clone(),
        error_message: result.message.clone(),
        queue_wait_ms: milliseconds(queue_wait),
        srs_load_ms: milliseconds(srs_load),
        synthesis_ms: milliseconds(synthesis),
        gpu_compute_ms: milliseconds(gpu_compute),
        total_ms: milliseconds(total),
    }
}

/// The answer for a job that has no result.
pub fn without_result(
    job_id: String,
    status: await_proof_response::Status,
) -> rpc::AwaitProofResponse {
    let error_message = match status {
        await_proof_response::Status::Timeout => "the job has not ended yet".to_owned(),
        _ => format!("no job {job_id:?}: it never was, or its result has expired"),
    };
    rpc::AwaitProofResponse {
        job_id,
        status: status as i32,
        error_message,
        ..Default::default()
    }
}

/// Whole milliseconds.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_reaches_the_engine() {
        let request = rpc::SubmitProofRequest {
            request_id: "window-1000-7".into(),
            proof_kind: 3,
            sector_size: 2048,
            registered_proof: 5,
            priority: 4,
            vanilla_proof: vec![1],
            vanilla_proofs: vec![vec![2], vec![3]],
            sector_number: 6,
            miner_id: 1000,
            randomness: vec![7; 32],
            partition_index: 8,
            comm_r_old: vec![9],
            comm_r_new: vec![10],
            comm_d_new: vec![11],
        };
        let submission = submission(request).unwrap();
        assert_eq!(submission.request_id.as_deref(), Some("window-1000-7"));
        assert_eq!(submission.priority, Some(Priority::Critical));
        let expected = ProofRequest {
            kind: ProofKind::Window,
            sector_size: 2048,
            registered_proof: 5,
            miner_id: 1000,
            sector_number: 6,
            vanilla_proof: vec![1],
            vanilla_proofs: vec![vec![2], vec![3]],
            randomness: vec![7; 32],
            partition_index: 8,
            comm_r_old: vec![9],
            comm_r_new: vec![10],
            comm_d_new: vec![11],
        };
        assert_eq!(submission.request, expected);
    }

    #[test]
    fn the_numbers_are_the_contracts() {
        let kinds = [
            (1, ProofKind::Porep, "POREP_SEAL_COMMIT"),
            (2, ProofKind::Update, "SNAP_DEALS_UPDATE"),
            (3, ProofKind::Window, "WINDOW_POST_PARTITION"),
            (4, ProofKind::Winning, "WINNING_POST"),
        ];
        for (number, expected, name) in kinds {
            assert_eq!(kind(number).unwrap(), expected);
            assert_eq!(kind_name(expected), name);
        }
        let priorities = [
            None,
            Some(Priority::Low),
            Some(Priority::Normal),
            Some(Priority::High),
            Some(Priority::Critical),
        ];
        for (number, expected) in (0..).zip(priorities) {
            assert_eq!(priority(number).unwrap(), expected);
        }
        for number in [-1, 0, 5, i32::MAX] {
            assert!(
                kind(number)
                    .unwrap_err()
                    .message()
                    .starts_with("proof_kind")
            );
        }
        for number in [-1, 5] {
            assert!(
                priority(number)
                    .unwrap_err()
                    .message()
                    .starts_with("priority")
            );
        }
    }

    #[test]
    fn empty_request_ids_are_none() {
        let request = rpc::SubmitProofRequest {
            proof_kind: 1,
            ..Default::default()
        };
        assert_eq!(submission(request).unwrap().request_id, None);
    }
}
