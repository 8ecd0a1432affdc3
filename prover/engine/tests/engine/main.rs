//! The engine with its threads, its journal and, in the end, real proofs.

mod filecoin;
mod jobs;
mod journal;
mod load;
mod mock;
