//! What can go wrong while a sector is fabricated.

use std::path::PathBuf;

/// Why a sector could not be fabricated, checked or written.
#[derive(Debug, thiserror::Error)]
pub enum FabricateError {
    /// A tree type of storage-proofs does not fit the number of leaves.
    #[error("a tree of type {tree} cannot have {leaves} leaves")]
    TreeShape {
        /// The number of leaves that were wanted.
        leaves: u64,
        /// storage-proofs' name of the tree type.
        tree: String,
    },
    /// A number of nodes or bands that must be a power of two is none, or is larger than the tree.
    #[error("expected a power of two within the size of the tree, found {value}")]
    NotAPowerOfTwo {
        /// The number.
        value: u64,
    },
    /// A node of the tree would cut an octal digit of the leaf index in two.
    #[error("children of 2^{bits} a node do not align with octal digits at height {height}")]
    SplitDigit {
        /// The height of the children, in bits above the leaves.
        height: u32,
        /// The binary logarithm of the number of children.
        bits: u32,
    },
    /// A leaf lies outside the tree.
    #[error("leaf {index} is outside a tree of {leaves} leaves")]
    LeafOutOfRange {
        /// The index of the leaf.
        index: u64,
        /// The number of leaves.
        leaves: u64,
    },
    /// A leaf was asked for that a sparse tree was not built for.
    #[error("leaf {index} is not among the leaves that the sparse tree was built for")]
    LeafNotBuilt {
        /// The index of the leaf.
        index: u64,
    },
    /// A sparse tree needs at least one leaf.
    #[error("a sparse tree needs at least one leaf")]
    NothingToOpen,
    /// An option has a value that makes no proof.
    #[error("option {option}: expected {expected}, found {found}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// storage-proofs or filecoin-proofs refused a step.
    #[error("{step}: {message}")]
    StorageProofs {
        /// What was being done.
        step: &'static str,
        /// What the library said.
        message: String,
    },
    /// A C1 document could not be written or read as JSON.
    #[error("C1 JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A vanilla proof could not be written or read as bincode.
    #[error("vanilla proof: {0}")]
    Bincode(#[from] bincode::Error),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl FabricateError {
    /// Names the step in which storage-proofs gave up; its errors are shown with all their causes.
    pub(super) fn in_step<E: std::fmt::Display>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |error| FabricateError::StorageProofs {
            step,
            message: format!("{error:#}"),
        }
    }
}
