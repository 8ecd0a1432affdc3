//! Processor time, peak memory and hardware counters of this process.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use serde::Serialize;
use std::time::Duration;

/// What the hardware counted in all threads; none where the system does not give a counter.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Branches mispredicted.
    pub branch_misses: Option<u64>,
    /// Misses of the last cache level.
    pub cache_misses: Option<u64>,
}

/// Counters that run from [`Counters::start`] on, in this thread and in threads it starts.
pub struct Counters([Option<Counter>; 3]);

impl Counters {
    /// Starts whatever counters the system gives.
    pub fn start() -> Self {
        let events = [
            Hardware::INSTRUCTIONS,
            Hardware::BRANCH_MISSES,
            Hardware::CACHE_MISSES,
        ];
        Counters(events.map(|event| {
            let mut counter = Builder::new(event).inherit(true).build().ok()?;
            counter.enable().ok()?;
            Some(counter)
        }))
    }

    /// What was counted so far.
    pub fn read(&mut self) -> Counts {
        let [instructions, branch_misses, cache_misses] = self
            .0
            .each_mut()
            .map(|counter| counter.as_mut().and_then(|c| c.read().ok()));
        Counts {
            instructions,
            branch_misses,
            cache_misses,
        }
    }
}

/// Processor time of all threads of this process so far.
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clock exists on every Linux.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    if status != 0 {
        return Duration::ZERO;
    }
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

/// Memory that the process has resident, in bytes, as the system tells it.
pub fn resident() -> Option<u64> {
    status("VmRSS:")
}

/// The most memory that the process ever had resident, in bytes, as the system tells it.
pub fn peak_resident() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with(field))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
