//! The recorder's word stream: rows and instances of recorded blocks, one after the other.
//!
//! A variable is one word. In the log of a recording it is absolute: private variable `j` is `j`,
//! input `i` is `OUTSIDE | i`. Inside a block it is relative: private variable `j` of the block is
//! `j` (counted from the block's first), the block's outside reference `k` is `OUTSIDE | k + 1`.
//! The constant one is `OUTSIDE` in both, so the words of the root block, whose outside
//! references are the inputs, read like those of any other block.

/// Marks variables that are not private variables of the block itself.
pub(super) const OUTSIDE: u32 = 1 << 31;
/// The constant one.
pub(super) const ONE: u32 = OUTSIDE;

const CHILD: u32 = 1;
/// Words of a row before its terms.
const ROW_HEAD: usize = 4;

/// One item of a word stream.
#[derive(Clone, Copy)]
pub(super) enum Item<'w> {
    /// A constraint. `cursor` is the number of private variables allocated before it; terms are
    /// pairs of variable and coefficient id. `c` is empty unless C is recorded.
    Row {
        cursor: u32,
        a: &'w [u32],
        b: &'w [u32],
        c: &'w [u32],
    },
    /// An instance of block `block` whose private variables start at `base`.
    Child {
        block: u32,
        base: u32,
        outside: &'w [u32],
    },
}

/// Starts a row with its numbers of terms still unknown; answers where it starts.
pub(super) fn begin_row(words: &mut Vec<u32>, cursor: u32) -> usize {
    words.extend_from_slice(&[0, 0, 0, cursor]);
    words.len() - ROW_HEAD
}

/// Ends the row that started at `start`, whose terms of A and B end at `a_end` and `b_end`.
pub(super) fn end_row(words: &mut [u32], start: usize, a_end: usize, b_end: usize) {
    let a_terms = (a_end - start - ROW_HEAD) / 2;
    words[start] = (a_terms as u32) << 1;
    words[start + 1] = ((b_end - a_end) / 2) as u32;
    words[start + 2] = ((words.len() - b_end) / 2) as u32;
}

/// The terms of a row, A's first, then B's, then C's.
pub(super) fn terms<'w>(
    a: &'w [u32],
    b: &'w [u32],
    c: &'w [u32],
) -> impl Iterator<Item = &'w [u32]> {
    let pairs = |side: &'w [u32]| side.chunks_exact(2);
    pairs(a).chain(pairs(b)).chain(pairs(c))
}

/// Appends an item, passing each variable through `map` and each base or cursor through `shift`.
pub(super) fn push_mapped(
    words: &mut Vec<u32>,
    item: Item<'_>,
    mut map: impl FnMut(u32) -> u32,
    shift: impl Fn(u32) -> u32,
) {
    match item {
        Item::Row { cursor, a, b, c } => {
            let [a_terms, b_terms, c_terms] = [a, b, c].map(|side| side.len() as u32 / 2);
            words.extend_from_slice(&[a_terms << 1, b_terms, c_terms, shift(cursor)]);
            for term in terms(a, b, c) {
                words.extend_from_slice(&[map(term[0]), term[1]]);
            }
        }
        Item::Child {
            block,
            base,
            outside,
        } => {
            words.extend_from_slice(&[block << 1 | CHILD, outside.len() as u32, shift(base)]);
            words.extend(outside.iter().map(|&variable| map(variable)));
        }
    }
}

/// The items of a word stream.
pub(super) struct Items<'w>(pub &'w [u32]);

impl<'w> Iterator for Items<'w> {
    type Item = Item<'w>;

    fn next(&mut self) -> Option<Item<'w>> {
        let (&[head, count, at], rest) = self.0.split_first_chunk::<3>()?;
        if head & CHILD == 1 {
            let (outside, rest) = rest.split_at_checked(count as usize)?;
            self.0 = rest;
            return Some(Item::Child {
                block: head >> 1,
                base: at,
                outside,
            });
        }
        let (&cursor, rest) = rest.split_first()?;
        let (a, rest) = rest.split_at_checked((head >> 1) as usize * 2)?;
        let (b, rest) = rest.split_at_checked(count as usize * 2)?;
        let (c, rest) = rest.split_at_checked(at as usize * 2)?;
        self.0 = rest;
        Some(Item::Row { cursor, a, b, c })
    }
}

/// Resolves a variable of a block in the coordinates of the block around it.
#[inline]
pub(super) fn resolve(variable: u32, base: u32, outside: &[u32]) -> u32 {
    if variable == ONE {
        ONE
    } else if variable & OUTSIDE == 0 {
        base + variable
    } else {
        // Outside references are counted from one.
        outside[(variable & !OUTSIDE) as usize - 1]
    }
}
