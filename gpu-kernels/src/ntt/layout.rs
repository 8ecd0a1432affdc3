//! Where a pass's rows and columns lie: in the array, in the tile, and in the tables of twiddle factors.

/// The columns of one pass, the same for all blocks: shapes as binary logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Elements of a tile: four a thread.
    pub tile: u32,
    /// M, the rows.
    pub stages: u32,
    /// D, the distance between rows in the array and the number of columns of a block.
    pub distance: u32,
    /// K, the columns that the near table covers; K = D without far table.
    pub near: u32,
}

impl Columns {
    /// Columns in a tile.
    #[inline(always)]
    pub fn columns(self) -> u32 {
        self.tile - self.stages
    }

    /// The columns are contiguous in the array and follow each other.
    #[inline(always)]
    pub fn contiguous(self) -> bool {
        self.distance == 0
    }

    /// Entries of the near table: (c₀, f) for c₀ < K, or f alone where the columns are contiguous.
    #[inline(always)]
    pub fn near_len(self) -> u32 {
        1 << (self.near + self.stages)
    }

    /// Entries of the far table: (c₁, f) for c₁ < D/K.
    #[inline(always)]
    pub fn far_len(self) -> u32 {
        1 << (self.distance - self.near + self.stages)
    }

    /// c₀ and the row of an entry of the near table: tile by tile, and in a tile the jth element of each
    /// thread before the next; entry = row where the columns are contiguous.
    pub fn near_entry(self, entry: u32) -> (u32, u32) {
        if self.contiguous() {
            return (0, entry);
        }
        let (tile, in_tile) = (entry >> self.tile, entry & ((1 << self.tile) - 1));
        let (j, thread) = (
            in_tile >> (self.tile - 2),
            in_tile & ((1 << (self.tile - 2)) - 1),
        );
        let (group, column) = self.thread_place(thread);
        ((tile << self.columns()) + column, 4 * group + j)
    }

    /// c₁ and the row of an entry of the far table.
    pub fn far_entry(self, entry: u32) -> (u32, u32) {
        let in_column = entry & ((1 << self.stages) - 1);
        let (j, group) = (
            in_column >> (self.stages - 2),
            in_column & ((1 << (self.stages - 2)) - 1),
        );
        (entry >> self.stages, 4 * group + j)
    }

    /// Which of the M/4 groups of four rows a thread works on, and the column in the tile. Neighbouring
    /// threads touch neighbouring memory.
    #[inline(always)]
    pub fn thread_place(self, thread: u32) -> (u32, u32) {
        if self.contiguous() {
            let groups = self.stages - 2;
            (thread & ((1 << groups) - 1), thread >> groups)
        } else {
            let columns = self.columns();
            (thread >> columns, thread & ((1 << columns) - 1))
        }
    }

    /// Position in shared memory. Quarter-warps read and write eight 16-byte words whose positions differ
    /// by 1, 4 or pairs by 8: mixing higher bits into the low three spreads each of these over all banks.
    #[inline(always)]
    pub fn slot(self, row: u32, column: u32) -> u32 {
        let slot = if self.contiguous() {
            (column << self.stages) + row
        } else {
            (row << self.columns()) + column
        };
        let high = slot >> 3;
        slot ^ ((high ^ (high << 1)) & 7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_of_a_tile_is_used_once_and_quarter_warps_meet_no_bank_conflict() {
        for tile in super::super::TILES_LOG2 {
            for stages in 4..=tile {
                for distance in [0, 12] {
                    let columns = Columns {
                        tile,
                        stages,
                        distance,
                        near: 0,
                    };
                    let mut seen = vec![false; 1 << tile];
                    for row in 0..1 << stages {
                        for column in 0..1 << columns.columns() {
                            let slot = columns.slot(row, column) as usize;
                            assert!(!std::mem::replace(&mut seen[slot], true));
                        }
                    }
                    for log2_h in 0..stages - 1 {
                        for first in (0..1u32 << (tile - 2)).step_by(8) {
                            let mut banks = 0u32;
                            for thread in first..first + 8 {
                                let (group, column) = columns.thread_place(thread);
                                let low = group & ((1 << log2_h) - 1);
                                let row = ((group >> log2_h) << (log2_h + 2)) + low;
                                banks |= 1 << (columns.slot(row, column) & 7);
                            }
                            assert_eq!(banks, 0xff, "{columns:?}, {log2_h}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_tables_cover_every_column_and_row_once() {
        for (distance, near) in [(0, 0), (5, 5), (6, 4)] {
            let columns = Columns {
                tile: 8,
                stages: 6,
                distance,
                near,
            };
            let mut near_seen: Vec<_> = (0..columns.near_len())
                .map(|entry| columns.near_entry(entry))
                .collect();
            near_seen.sort_unstable();
            let all =
                |columns: u32| (0..1u32 << columns).flat_map(|c| (0..64).map(move |r| (c, r)));
            assert!(near_seen.into_iter().eq(all(near)));
            let mut far_seen: Vec<_> = (0..columns.far_len())
                .map(|entry| columns.far_entry(entry))
                .collect();
            far_seen.sort_unstable();
            assert!(far_seen.into_iter().eq(all(distance - near)));
        }
    }
}
