//! Race detection: for every granule of memory, who touched it last and when.

/// When and by whom an access happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Linear index of the block in the grid.
    pub block: u32,
    /// Thread in its block.
    pub thread: u32,
    /// Barriers that the block has passed.
    pub barrier: u32,
    /// Warp barriers that the warp has passed.
    pub warp_barrier: u32,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain read.
    Load,
    /// Plain write.
    Store,
    /// Read by the relaxed policy.
    RelaxedLoad,
    /// Write by the relaxed policy.
    RelaxedStore,
    /// Atomic read-modify-write.
    Atomic,
}

impl Kind {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::RelaxedLoad => "relaxed load",
            Kind::RelaxedStore => "relaxed store",
            Kind::Atomic => "atomic",
        }
    }
    /// Whether the old value matters.
    pub fn reads(self) -> bool {
        matches!(self, Kind::Load | Kind::RelaxedLoad | Kind::Atomic)
    }
    /// Whether the value may change.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Store | Kind::RelaxedStore | Kind::Atomic)
    }
}

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// One thread.
    Thread {
        /// Linear index of its block.
        block: u32,
        /// Thread in the block.
        thread: u32,
    },
    /// Several threads of a block.
    Block {
        /// Linear index of the block.
        block: u32,
    },
    /// Threads of several blocks.
    Grid,
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Party::Thread { block, thread } => write!(f, "block {block} thread {thread}"),
            Party::Block { block } => write!(f, "several threads of block {block}"),
            Party::Grid => f.write_str("threads of several blocks"),
        }
    }
}

/// Who is behind the accesses that a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Reach {
    #[default]
    Nobody,
    Thread,
    Warp,
    Block,
    Grid,
}

/// The accesses of one kind that later accesses may still race with.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    reach: Reach,
    block: u32,
    thread: u32,
    barrier: u32,
    warp_barrier: u32,
}

impl Mark {
    fn of(now: &Now) -> Self {
        Self {
            reach: Reach::Thread,
            block: now.block,
            thread: now.thread,
            barrier: now.barrier,
            warp_barrier: now.warp_barrier,
        }
    }

    /// Whether something orders the marked accesses before `now`.
    fn ordered(&self, now: &Now) -> bool {
        match self.reach {
            Reach::Nobody => true,
            Reach::Grid => false,
            _ if self.block != now.block => false,
            _ if self.barrier != now.barrier => true,
            Reach::Block => false,
            Reach::Thread if self.thread == now.thread => true,
            _ => self.thread / 32 == now.thread / 32 && self.warp_barrier != now.warp_barrier,
        }
    }

    /// Adds an access to the mark; what is ordered before it is forgotten.
    fn add(&mut self, now: &Now) {
        if self.ordered(now) {
            *self = Self::of(now);
        } else if self.reach == Reach::Grid || self.block != now.block {
            self.reach = Reach::Grid;
        } else if self.reach == Reach::Block || self.thread / 32 != now.thread / 32 {
            self.reach = Reach::Block;
        } else {
            self.reach = Reach::Warp;
        }
    }

    fn party(&self) -> Party {
        match self.reach {
            Reach::Nobody | Reach::Thread => Party::Thread {
                block: self.block,
                thread: self.thread,
            },
            Reach::Warp | Reach::Block => Party::Block { block: self.block },
            Reach::Grid => Party::Grid,
        }
    }
}

/// History of one granule.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    loads: Mark,
    store: Mark,
    atomics: Mark,
    written: bool,
}

/// The granules of one buffer.
#[derive(Default)]
pub struct Shadow {
    cells: Vec<Cell>,
    granule: usize,
}

impl Shadow {
    /// History of `bytes` bytes in granules of `granule` bytes, empty.
    pub fn new(bytes: usize, granule: usize) -> Self {
        Self {
            cells: vec![Cell::default(); bytes.div_ceil(granule)],
            granule,
        }
    }

    /// Whether there is no history yet, not even an empty one.
    pub fn is_absent(&self) -> bool {
        self.granule == 0
    }

    /// Bytes in a granule.
    pub fn granule(&self) -> usize {
        self.granule
    }

    /// Goes on with granules of one byte.
    pub fn refine(&mut self) {
        self.cells = self
            .cells
            .iter()
            .flat_map(|cell| std::iter::repeat_n(*cell, self.granule))
            .collect();
        self.granule = 1;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.cells.fill(Cell::default());
    }

    /// Whether all of the range was written since the last `clear`.
    pub fn written(&self, offset: usize, bytes: usize) -> bool {
        let last = (offset + bytes - 1) / self.granule;
        self.cells[offset / self.granule..=last]
            .iter()
            .all(|cell| cell.written)
    }

    /// Records an access; the error is the party that it races with.
    pub fn access(
        &mut self,
        offset: usize,
        bytes: usize,
        kind: Kind,
        now: &Now,
    ) -> Result<(), Party> {
        let last = (offset + bytes - 1) / self.granule;
        for cell in &mut self.cells[offset / self.granule..=last] {
            let rivals = match kind {
                Kind::Load => [&cell.store, &cell.atomics, &Mark::default()],
                Kind::Store => [&cell.store, &cell.atomics, &cell.loads],
                _ => [&cell.store, &cell.loads, &Mark::default()],
            };
            for rival in rivals {
                if !rival.ordered(now) {
                    return Err(rival.party());
                }
            }
            match kind {
                Kind::Load => cell.loads.add(now),
                Kind::Store => cell.store = Mark::of(now),
                _ => cell.atomics.add(now),
            }
            cell.written |= kind.writes();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(block: u32, thread: u32, barrier: u32, warp_barrier: u32) -> Now {
        Now {
            block,
            thread,
            barrier,
            warp_barrier,
        }
    }

    #[test]
    fn barriers_order_threads_of_a_block_and_nothing_orders_blocks() {
        let mut shadow = Shadow::new(8, 4);
        assert_eq!(shadow.access(0, 4, Kind::Store, &at(0, 0, 0, 0)), Ok(()));
        assert_eq!(shadow.access(0, 4, Kind::Load, &at(0, 0, 0, 0)), Ok(()));
        let other = Party::Thread {
            block: 0,
            thread: 0,
        };
        assert_eq!(shadow.access(0, 4, Kind::Load, &at(0, 1, 0, 0)), Err(other));
        assert_eq!(shadow.access(0, 4, Kind::Load, &at(0, 40, 1, 0)), Ok(()));
        assert_eq!(shadow.access(4, 4, Kind::Load, &at(1, 0, 7, 0)), Ok(()));
        assert_eq!(shadow.access(0, 4, Kind::Load, &at(1, 0, 7, 0)), Err(other));
    }

    #[test]
    fn warp_barriers_order_lanes_of_that_warp_only() {
        let mut shadow = Shadow::new(4, 4);
        shadow.access(0, 4, Kind::Load, &at(0, 0, 0, 0)).unwrap();
        shadow.access(0, 4, Kind::Load, &at(0, 1, 0, 0)).unwrap();
        assert_eq!(shadow.access(0, 4, Kind::Store, &at(0, 2, 0, 1)), Ok(()));
        shadow.access(0, 4, Kind::Load, &at(0, 2, 1, 1)).unwrap();
        shadow.access(0, 4, Kind::Load, &at(0, 33, 1, 0)).unwrap();
        assert!(shadow.access(0, 4, Kind::Store, &at(0, 2, 1, 2)).is_err());
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let mut shadow = Shadow::new(4, 4);
        shadow.access(0, 4, Kind::Atomic, &at(0, 0, 0, 0)).unwrap();
        shadow.access(0, 4, Kind::Atomic, &at(5, 9, 0, 0)).unwrap();
        assert_eq!(
            shadow.access(0, 4, Kind::Load, &at(0, 0, 1, 0)),
            Err(Party::Grid)
        );
    }
}
