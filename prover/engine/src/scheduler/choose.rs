//! Whose turn it is: levels, ageing, and circuits that are at hand.

use std::time::Duration;

use super::{Key, Payloads, Ready, Residency, Scheduler};

/// Jobs of a level that are looked at for one that can be started.
const SCAN: usize = 64;

impl<P: Payloads> Scheduler<P> {
    /// The level that is longest overdue, if any is: one that has had work to be started for the ageing
    /// time, while none of its partitions was started and a higher level had work as well.
    pub(super) fn overdue(&self, now: Duration) -> Option<usize> {
        let busy = |level: &usize| !self.levels[*level].jobs.is_empty();
        let waited = |level: &usize| {
            let level = &self.levels[*level];
            now.saturating_sub(level.since.max(level.served))
        };
        let lower = (0..self.levels.len()).rev().filter(busy).skip(1);
        lower
            .filter(|level| waited(level) >= self.settings.ageing)
            .max_by_key(waited)
    }

    /// The levels with work to be started, in the order in which they are served: the overdue one,
    /// then from the highest to the lowest.
    pub(super) fn level_order(&self, overdue: Option<usize>) -> Vec<usize> {
        let busy = |level: &usize| !self.levels[*level].jobs.is_empty();
        let others = (0..self.levels.len()).rev().filter(busy);
        let others = others.filter(|level| Some(*level) != overdue);
        overdue.into_iter().chain(others).collect()
    }

    /// The first jobs of a level, oldest first. While the oldest would need parameters to be
    /// swapped, jobs whose parameters are at hand go before it, but not for longer than the ageing
    /// time and ten times what a swap costs.
    pub(super) fn job_order(&self, level: usize, now: Duration) -> Vec<Key> {
        let jobs = self.levels[level].jobs.iter();
        let mut keys: Vec<Key> = jobs.take(SCAN).copied().collect();
        let head = keys.first().and_then(|key| self.jobs.get(key));
        let Some(head) = head.filter(|head| self.needs_swap(head.circuit)) else {
            return keys;
        };
        let loads = self.circuits.values().map(|circuit| circuit.load_time);
        let swap = loads.max().unwrap_or_default();
        let patience = self.settings.ageing.max(10 * swap);
        let impatient = now.saturating_sub(head.submitted.max(self.last_load)) >= patience;
        let at_hand = |key: &Key| {
            let job = self.jobs.get(key);
            job.is_some_and(|job| !self.needs_swap(job.circuit))
        };
        if !impatient && keys.iter().any(at_hand) {
            keys.retain(at_hand);
        }
        keys
    }

    /// Whether parameters would have to go before those of this circuit can be loaded.
    fn needs_swap(&self, id: cuzk_filecoin::CircuitId) -> bool {
        let absent = self
            .circuits
            .get(&id)
            .is_none_or(|circuit| matches!(circuit.residency, Residency::Absent));
        absent && !self.fits_beside(id)
    }

    /// The ready partition that a device takes next: one that has waited for the ageing time, else by
    /// level, then one whose parameters the device holds, then the oldest job's.
    pub(super) fn choose_ready(&self, device: usize, now: Duration) -> Option<usize> {
        let hot = &self.devices.get(device)?.hot;
        let order = |ready: &Ready<P>| {
            let aged = now.saturating_sub(ready.since) >= self.settings.ageing;
            let level = if aged { 0 } else { 4 - ready.level as usize };
            let since = if aged { ready.since } else { Duration::ZERO };
            let cold = !aged && !hot.contains(&ready.circuit);
            (level, since, cold, ready.key, ready.partition)
        };
        let allowed = self.ready.iter().enumerate();
        let allowed = allowed.filter(|(_, ready)| self.may_take(device, ready.avoid));
        allowed
            .min_by_key(|(_, ready)| order(ready))
            .map(|(i, _)| i)
    }

    /// Whether a device may take a partition that failed on `avoid`: another device if there is one,
    /// else the fallback, else the same again.
    fn may_take(&self, device: usize, avoid: Option<usize>) -> bool {
        let fallback = |index: usize| self.devices[index].spec.fallback;
        let Some(avoid) = avoid else {
            return !fallback(device);
        };
        if device != avoid && !fallback(device) {
            return true;
        }
        let mut others = (0..self.devices.len()).filter(|&other| other != avoid);
        let another = others.clone().any(|other| !fallback(other));
        let any = others.any(fallback);
        !another && (device != avoid && fallback(device) || device == avoid && !any)
    }

    /// The fallback device, if it is where a partition that failed on `avoid` has to go.
    pub(super) fn fallback_after(&self, avoid: Option<usize>) -> Option<usize> {
        avoid?;
        let mut devices = 0..self.devices.len();
        devices.find(|&device| self.devices[device].spec.fallback && self.may_take(device, avoid))
    }
}
