//! What the scheduler says about itself.

use std::time::Duration;

use cuzk_filecoin::ProofKind;

use super::{Job, Key, Payloads, Residency, Scheduler};
use crate::{
    DeviceStatus, EngineStatus, ParametersStatus, PartitionStatus, QueueStatus, RunningJob, Stage,
};

impl<P: Payloads> Scheduler<P> {
    /// Everything that the scheduler knows; the rest is left at its default.
    pub fn report(&self, now: Duration) -> EngineStatus {
        let started = self.jobs.values().filter(|job| job.started.is_some());
        EngineStatus {
            devices: (0..self.devices.len())
                .map(|device| self.device_report(device, now))
                .collect(),
            parameters: self.parameters_report(),
            queues: self.queues_report(),
            running: started.map(|job| self.job_report(job, now)).collect(),
            totals: self.totals,
            host_memory: self.memory.status(),
            queued_bytes: self.queued_bytes,
            ..EngineStatus::default()
        }
    }

    fn device_report(&self, index: usize, now: Duration) -> DeviceStatus {
        let device = &self.devices[index];
        let of = |(_, key, partition): &(u64, Key, usize)| {
            let job = self.jobs.get(key)?;
            Some((job.name.clone(), job.circuit.kind, *partition))
        };
        let held: u64 = device
            .hot
            .iter()
            .filter_map(|id| self.circuits.get(id))
            .map(|circuit| circuit.footprint.device_parameters)
            .sum();
        let current = if device.proving.is_empty() {
            Duration::ZERO
        } else {
            now.saturating_sub(device.busy_since)
        };
        DeviceStatus {
            ordinal: device.spec.ordinal,
            name: device.spec.name.clone(),
            fallback: device.spec.fallback,
            memory_total: device.spec.memory,
            memory_free: device.spec.memory.saturating_sub(held),
            proving: device.proving.iter().filter_map(of).collect(),
            proved: device.proved,
            failed: device.failed,
            busy: device.busy + current,
        }
    }

    fn parameters_report(&self) -> Vec<ParametersStatus> {
        let circuits = self.circuits.iter();
        circuits
            .map(|(&id, circuit)| ParametersStatus {
                circuit: id,
                tier: self.tier(id),
                bytes: circuit.footprint.parameters,
                users: circuit.users,
                compiled: matches!(
                    &circuit.residency,
                    Residency::Loaded { loaded, .. } if loaded.compiled
                ),
            })
            .collect()
    }

    fn queues_report(&self) -> Vec<QueueStatus> {
        let mut queues = ProofKind::ALL.map(|kind| QueueStatus {
            kind,
            pending: 0,
            in_progress: 0,
        });
        for job in self.jobs.values() {
            let queue = &mut queues[job.circuit.kind as usize];
            if job.started.is_some() {
                queue.in_progress += 1;
            } else {
                queue.pending += 1;
            }
        }
        queues.to_vec()
    }

    fn job_report(&self, job: &Job<P>, now: Duration) -> RunningJob {
        let partitions = job.partitions().iter().enumerate();
        RunningJob {
            job: job.name.clone(),
            request_id: job.request_id.clone(),
            circuit: job.circuit,
            priority: job.level,
            accepted: job.accepted,
            running: now.saturating_sub(job.started.unwrap_or(now)),
            partitions: partitions
                .map(|(k, partition)| PartitionStatus {
                    stage: partition.stage,
                    since: now.saturating_sub(partition.since),
                    device: partition.device,
                    attempts: job.troubles.get(&k).map_or(0, |trouble| trouble.attempts)
                        + u32::from(
                            partition.device.is_some()
                                && matches!(partition.stage, Stage::Prove | Stage::Proved),
                        ),
                    synthesis: partition.synthesis,
                    prove: partition.prove,
                })
                .collect(),
        }
    }
}
