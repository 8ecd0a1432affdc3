//! Memory budgets: bytes are reserved before they are used and given back when the reservation is dropped.

use std::{
    fs,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{Budget, MemoryStatus};

/// A budget of bytes that reservations share. Clones are one budget.
///
/// ```
/// use cuzk_engine::memory::Pool;
///
/// let pool = Pool::new(100);
/// let held = pool.try_reserve(80);
/// assert!(held.is_some() && pool.try_reserve(21).is_none());
/// drop(held);
/// assert!(pool.try_reserve(100).is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: u64,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    peak: u64,
    departing: u64,
}

/// Bytes of a [`Pool`] that are taken until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<Inner>,
    bytes: u64,
    departing: bool,
}

impl Pool {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let inner = Inner {
            limit,
            state: Mutex::default(),
            freed: Condvar::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The most bytes that may be reserved together.
    pub fn limit(&self) -> u64 {
        self.inner.limit
    }

    /// Bytes that are not reserved.
    pub fn free(&self) -> u64 {
        self.inner.limit - self.inner.lock().used
    }

    /// Bytes that are not reserved, or that somebody is about to give back.
    pub fn free_soon(&self) -> u64 {
        let state = self.inner.lock();
        self.inner.limit - state.used + state.departing
    }

    /// What is reserved, the limit, and the most that ever was reserved.
    pub fn status(&self) -> MemoryStatus {
        let state = self.inner.lock();
        MemoryStatus {
            used: state.used,
            limit: self.inner.limit,
            peak: state.peak,
        }
    }

    /// Reserves bytes if they are free.
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        let mut state = self.inner.lock();
        self.take(&mut state, bytes)
    }

    /// Reserves bytes, and waits until they are free, at most for `limit`. None when they are not
    /// free in time, and at once when they can never be.
    pub fn reserve(&self, bytes: u64, limit: Duration) -> Option<Reservation> {
        if bytes > self.inner.limit {
            return None;
        }
        let until = Instant::now() + limit;
        let mut state = self.inner.lock();
        loop {
            if let Some(reservation) = self.take(&mut state, bytes) {
                return Some(reservation);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.inner.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn take(&self, state: &mut State, bytes: u64) -> Option<Reservation> {
        let used = state.used.checked_add(bytes)?;
        if used > self.inner.limit {
            return None;
        }
        state.used = used;
        state.peak = state.peak.max(used);
        Some(Reservation {
            pool: Arc::clone(&self.inner),
            bytes,
            departing: false,
        })
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// The bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Announces that it is about to be dropped: see [`Pool::free_soon`].
    pub fn depart(&mut self) {
        if !self.departing {
            self.departing = true;
            self.pool.lock().departing += self.bytes;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.used -= self.bytes;
        if self.departing {
            state.departing -= self.bytes;
        }
        drop(state);
        self.pool.freed.notify_all();
    }
}

/// The bytes that a budget for host memory stands for: for [`Budget::Auto`] four fifths of what the
/// machine has and the process's control groups (versions 1 and 2) allow.
pub fn host_limit(budget: Budget) -> u64 {
    match budget {
        Budget::Bytes(bytes) => bytes,
        Budget::Auto => granted_memory() / 5 * 4,
    }
}

/// The bytes of one device's memory that a budget stands for.
pub fn device_limit(budget: Budget, memory: u64) -> u64 {
    match budget {
        Budget::Bytes(bytes) => bytes.min(memory),
        Budget::Auto => memory / 10 * 9,
    }
}

/// The machine's memory, or less where a control group allows less. Where nothing can be read, 8 GiB.
fn granted_memory() -> u64 {
    let read = |path: &str| fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| mem_total(&text));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups)
        .into_iter()
        .filter_map(|path| read(&path)?.trim().parse::<u64>().ok());
    machine.into_iter().chain(limits).min().unwrap_or(8 << 30)
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The files that may limit the process's memory, by its `/proc/self/cgroup`: each of its groups' and
/// their parents'. In a container the group's own path is not visible and its mount is the root.
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = path.trim_end_matches('/');
        loop {
            files.push(format!("{mount}{group}/{file}"));
            match group.rsplit_once('/') {
                Some((parent, _)) => group = parent,
                None => break,
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_never_exceed_the_limit_and_come_back_when_dropped() {
        let pool = Pool::new(10);
        let (a, b) = (pool.try_reserve(4), pool.try_reserve(6));
        assert!(a.is_some() && b.is_some());
        assert!(pool.try_reserve(1).is_none());
        drop(a);
        assert_eq!(pool.free(), 4);
        assert!(pool.try_reserve(u64::MAX).is_none());
        drop(b);
        let expected = MemoryStatus {
            used: 0,
            limit: 10,
            peak: 10,
        };
        assert_eq!(pool.status(), expected);
    }

    #[test]
    fn a_blocked_reservation_is_served_when_another_is_dropped() {
        let pool = Pool::new(10);
        let held = pool.try_reserve(8);
        let other = pool.clone();
        let waiter = std::thread::spawn(move || other.reserve(5, Duration::from_secs(30)));
        std::thread::sleep(Duration::from_millis(20));
        drop(held);
        assert_eq!(waiter.join().unwrap().unwrap().bytes(), 5);
        assert!(pool.reserve(11, Duration::from_secs(30)).is_none());
    }

    #[test]
    fn announced_departures_count_as_free_soon() {
        let pool = Pool::new(10);
        let mut held = pool.try_reserve(7).unwrap();
        held.depart();
        held.depart();
        assert_eq!((pool.free(), pool.free_soon()), (3, 10));
        drop(held);
        assert_eq!((pool.free(), pool.free_soon()), (10, 10));
    }

    #[test]
    fn limits_are_read_from_both_versions_of_control_groups() {
        assert_eq!(mem_total("MemFree: 1 kB\nMemTotal:  2 kB\n"), Some(2048));
        assert_eq!(
            limit_files("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            limit_files("5:cpu:/x\n4:blkio,memory:/x\n0::/\n"),
            [
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert!(host_limit(Budget::Auto) > 0);
    }
}
