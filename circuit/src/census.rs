//! Which part of a circuit takes how much: counts by namespace.

use crate::Scalar;
use crate::stream::ConstraintVisitor;
use bellpepper_core::LinearCombination;
use ff::Field;
use std::collections::HashMap;

/// Namespaces below this many others are counted with the one around them.
const DEPTH: usize = 12;
/// Names beyond this many in one namespace are counted together, under [`REST`].
const MOST_CHILDREN: usize = 256;
/// The name of what exceeds [`MOST_CHILDREN`].
const REST: &str = "…";

/// A part of a circuit: everything under one namespace path, where names that differ only in their
/// numbers are one (`challenge 3` and `challenge 7` are `challenge #`). Counts include the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    /// The name of the innermost namespace, numbers as `#`; empty for the whole circuit.
    pub name: String,
    /// Namespaces of this path.
    pub occurrences: u64,
    /// Constraints.
    pub constraints: u64,
    /// Private variables.
    pub aux: u64,
    /// Coefficients other than zero in A, B and C.
    pub nonzeros: [u64; 3],
    /// The parts, those with the most constraints first. What belongs to none of them is the
    /// difference of the counts.
    pub parts: Vec<Component>,
}

/// The visitor that counts.
#[derive(Default)]
pub(crate) struct Census {
    nodes: Vec<Node>,
    /// The open namespaces, innermost last.
    open: Vec<usize>,
    /// Open namespaces that are too deep to be told apart.
    deeper: usize,
}

#[derive(Default)]
struct Node {
    counts: Component,
    children: HashMap<String, usize>,
}

impl Census {
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::default()],
            ..Self::default()
        }
    }

    /// The whole circuit.
    pub fn finish(mut self) -> Component {
        self.nodes[0].counts.occurrences = 1;
        // Children come after their parents.
        for id in (0..self.nodes.len()).rev() {
            let children = std::mem::take(&mut self.nodes[id].children);
            let parts = children.into_values();
            let parts: Vec<_> = parts
                .map(|child| std::mem::take(&mut self.nodes[child].counts))
                .collect();
            self.nodes[id].counts.adopt(parts);
        }
        self.nodes.swap_remove(0).counts
    }

    fn here(&mut self) -> &mut Component {
        let id = self.open.last().copied().unwrap_or(0);
        &mut self.nodes[id].counts
    }

    fn child(&mut self, name: String) -> usize {
        let parent = self.open.last().copied().unwrap_or(0);
        let children = &self.nodes[parent].children;
        if let Some(&id) = children.get(&name) {
            return id;
        }
        if children.len() >= MOST_CHILDREN && name != REST {
            return self.child(REST.to_owned());
        }
        let id = self.nodes.len();
        let mut node = Node::default();
        node.counts.name.clone_from(&name);
        self.nodes.push(node);
        self.nodes[parent].children.insert(name, id);
        id
    }
}

impl Component {
    fn adopt(&mut self, mut parts: Vec<Component>) {
        for part in &parts {
            self.constraints += part.constraints;
            self.aux += part.aux;
            for (sum, count) in self.nonzeros.iter_mut().zip(part.nonzeros) {
                *sum += count;
            }
        }
        parts.sort_by(|x, y| (y.constraints, &x.name).cmp(&(x.constraints, &y.name)));
        self.parts = parts;
    }
}

/// Each run of digits as `#`.
fn without_numbers(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_ascii_digit() {
            true if short.ends_with('#') => {}
            true => short.push('#'),
            false => short.push(c),
        }
    }
    short
}

impl ConstraintVisitor for Census {
    fn alloc_input(&mut self, _index: usize) {}

    fn alloc_aux(&mut self, _index: usize) {
        self.here().aux += 1;
    }

    fn row(
        &mut self,
        a: &LinearCombination<Scalar>,
        b: &LinearCombination<Scalar>,
        c: &LinearCombination<Scalar>,
    ) {
        let here = self.here();
        here.constraints += 1;
        for (count, lc) in here.nonzeros.iter_mut().zip([a, b, c]) {
            let nonzero = lc.iter().filter(|term| *term.1 != Scalar::ZERO);
            *count += nonzero.count() as u64;
        }
    }

    fn enter_named(&mut self, name: impl FnOnce() -> String) {
        if self.open.len() >= DEPTH {
            self.deeper += 1;
            return;
        }
        let id = self.child(without_numbers(&name()));
        self.nodes[id].counts.occurrences += 1;
        self.open.push(id);
    }

    fn leave(&mut self) {
        match self.deeper {
            0 => drop(self.open.pop()),
            _ => self.deeper -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::stream_circuit;
    use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};

    /// Two kinds of blocks, one in the other, with many names.
    struct Nested;

    impl Circuit<Scalar> for Nested {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            for outer in 0..3 {
                let mut cs = cs.namespace(|| format!("outer {outer}"));
                for inner in 0..10 {
                    let mut cs = cs.namespace(|| format!("inner {inner}.{outer}"));
                    let x = cs.alloc(|| "x", || Ok(Scalar::ONE))?;
                    cs.enforce(
                        || "square",
                        |lc| lc + x,
                        |lc| lc + x - CS::one(),
                        |lc| lc + x,
                    );
                }
                cs.enforce(|| "empty", |lc| lc, |lc| lc, |lc| lc);
            }
            for name in 0..300 {
                let letters: String = format!("{name}")
                    .chars()
                    .map(|c| (c as u8 + 49) as char)
                    .collect();
                cs.namespace(|| letters).alloc(|| "y", || Ok(Scalar::ONE))?;
            }
            Ok(())
        }
    }

    #[test]
    fn names_that_differ_in_numbers_alone_are_one_part_and_sums_include_parts() {
        let mut census = Census::new();
        stream_circuit(Nested, &mut census).unwrap();
        let whole = census.finish();
        assert_eq!((whole.constraints, whole.aux), (33, 330));
        assert_eq!(whole.nonzeros, [30, 60, 30]);
        let outer = &whole.parts[0];
        assert_eq!((outer.name.as_str(), outer.occurrences), ("outer #", 3));
        assert_eq!((outer.constraints, outer.aux), (33, 30));
        let inner = &outer.parts[0];
        assert_eq!((inner.name.as_str(), inner.occurrences), ("inner #.#", 30));
        assert_eq!((inner.constraints, inner.parts.len()), (30, 0));
        assert_eq!(whole.parts.len(), MOST_CHILDREN + 1);
        let rest = whole.parts.iter().find(|part| part.name == REST).unwrap();
        assert_eq!(rest.aux, 301 - MOST_CHILDREN as u64);
    }
}
