//! Recorded blocks, each distinct one stored once.

use super::items::{Item, Items};
use std::collections::HashMap;

/// A block: its words and the counts that decide how it is stored in the end.
pub(super) struct Block {
    /// The items, in the block's own coordinates.
    pub words: Box<[u32]>,
    /// Private variables that belong to the block.
    pub aux: u32,
    /// Number of outside references.
    pub outside: u32,
    /// Rows, those of blocks inside included.
    pub rows: u64,
    /// Terms of A and B (and C where it is recorded), those of blocks inside included.
    pub terms: u64,
}

impl Block {
    pub fn items(&self) -> Items<'_> {
        Items(&self.words)
    }
}

/// All distinct blocks. A block comes after all blocks that it contains.
#[derive(Default)]
pub(super) struct Blocks {
    list: Vec<Block>,
    /// Blocks by the hash of their contents; contents are always compared as a whole.
    by_hash: HashMap<u64, Vec<u32>>,
}

impl Blocks {
    pub fn list(&self) -> &[Block] {
        &self.list
    }

    /// Rows and terms of a word stream, those of the blocks inside included.
    pub fn count(&self, words: &[u32]) -> (u64, u64) {
        Items(words).fold((0, 0), |(rows, terms), item| match item {
            Item::Row { a, b, c, .. } => {
                (rows + 1, terms + (a.len() + b.len() + c.len()) as u64 / 2)
            }
            Item::Child { block, .. } => {
                let block = &self.list[block as usize];
                (rows + block.rows, terms + block.terms)
            }
        })
    }

    /// The number of the block with these contents, new or known.
    pub fn intern(&mut self, words: &[u32], aux: u32, outside: u32) -> u32 {
        let hash = hash(words, aux);
        let same = |&id: &u32| {
            let block: &Block = &self.list[id as usize];
            block.aux == aux && *block.words == *words
        };
        let known = self.by_hash.get(&hash);
        if let Some(id) = known.and_then(|ids| ids.iter().copied().find(|id| same(id))) {
            return id;
        }
        let (rows, terms) = self.count(words);
        let id = self.list.len() as u32;
        self.list.push(Block {
            words: words.into(),
            aux,
            outside,
            rows,
            terms,
        });
        self.by_hash.entry(hash).or_default().push(id);
        id
    }
}

fn hash(words: &[u32], aux: u32) -> u64 {
    let mut state = u64::from(aux) << 32 | words.len() as u64;
    for pair in words.chunks(2) {
        let low = u64::from(pair[0]);
        let word = pair.get(1).map_or(low, |&high| low | u64::from(high) << 32);
        state = (state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 32;
    }
    state
}
