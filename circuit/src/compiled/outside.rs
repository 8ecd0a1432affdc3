//! Numbers the variables outside a block in order of first use.

use super::items::{ONE, OUTSIDE};

/// A set of variables with their order of first use, cleared in constant time.
pub(super) struct OutsideMap {
    /// Open addressing: variable, generation, position.
    table: Vec<[u32; 3]>,
    generation: u32,
    list: Vec<u32>,
}

impl OutsideMap {
    pub fn new() -> Self {
        Self {
            table: vec![[0; 3]; 1024],
            generation: 0,
            list: Vec::new(),
        }
    }

    /// Forgets all variables.
    pub fn clear(&mut self) {
        self.list.clear();
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.table.fill([0; 3]);
            self.generation = 1;
        }
    }

    /// The variables in order of first use.
    pub fn list(&self) -> &[u32] {
        &self.list
    }

    /// The relative form of `variable` in a block whose private variables start at `base`.
    #[inline]
    pub fn relative(&mut self, variable: u32, base: u32) -> u32 {
        if variable & OUTSIDE == 0 && variable >= base {
            variable - base
        } else if variable == ONE {
            ONE
        } else {
            OUTSIDE | (self.position(variable) + 1)
        }
    }

    fn position(&mut self, variable: u32) -> u32 {
        let mask = self.table.len() - 1;
        let mut at = hash(variable) & mask;
        loop {
            let entry = &mut self.table[at];
            if entry[1] != self.generation {
                let position = self.list.len() as u32;
                *entry = [variable, self.generation, position];
                self.list.push(variable);
                if self.list.len() * 2 > self.table.len() {
                    self.grow();
                }
                return position;
            }
            if entry[0] == variable {
                return entry[2];
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let mask = self.table.len() * 4 - 1;
        self.table = vec![[0; 3]; mask + 1];
        self.generation = 1;
        for (position, &variable) in self.list.iter().enumerate() {
            let mut at = hash(variable) & mask;
            while self.table[at][1] == 1 {
                at = (at + 1) & mask;
            }
            self.table[at] = [variable, 1, position as u32];
        }
    }
}

#[inline]
fn hash(variable: u32) -> usize {
    (u64::from(variable).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_numbered_by_first_use_through_growth_and_clearing() {
        let mut map = OutsideMap::new();
        for round in 0..3 {
            map.clear();
            let variables: Vec<u32> = (0..5000).map(|i| i * 7919 % 10007 + round).collect();
            for (k, &variable) in variables.iter().enumerate() {
                let expected = OUTSIDE | (k as u32 + 1);
                assert_eq!(map.relative(variable, 20_000), expected);
                assert_eq!(
                    map.relative(variables[k / 2], 20_000) & !OUTSIDE,
                    k as u32 / 2 + 1
                );
            }
            assert_eq!(map.list(), variables);
        }
        assert_eq!(map.relative(ONE, 0), ONE);
        assert_eq!(map.relative(25_000, 20_000), 5000);
        let input = OUTSIDE | 3;
        assert_eq!(map.relative(input, 0), OUTSIDE | 5001);
    }
}
