//! What one proof at a time uses on a device: a stream, tables, working memory.

use std::sync::Arc;

use cuzk_kernels::runtime::{Arena, Runtime, RuntimeError};

use super::ntt::TransformError;
use super::parts::{HostArrays, PartedQuotient};
use super::plan::Plan;
use super::quotient::Quotient;
use super::{parts, quotient};

/// A stream with tables and memory that stay from one proof to the next.
pub struct Lane {
    runtime: Arc<dyn Runtime>,
    tables: Option<Tables>,
    arena: Option<Arena>,
    host: HostArrays,
}

/// The tables of the quotient's transforms.
pub enum Tables {
    /// All arrays lie on the device.
    Whole(Box<Quotient>),
    /// Arrays in host memory.
    Parted(Box<PartedQuotient>),
}

impl Tables {
    fn new(runtime: &Arc<dyn Runtime>, log2: u32, rows: u32) -> Result<Self, TransformError> {
        Ok(match rows {
            0 => Tables::Whole(Box::new(Quotient::new(runtime, log2)?)),
            rows => Tables::Parted(Box::new(PartedQuotient::new(runtime, log2, rows)?)),
        })
    }

    fn bytes(&self) -> u64 {
        match self.size() {
            (log2, 0) => quotient::table_bytes(log2),
            (log2, rows) => parts::table_bytes(log2, rows),
        }
    }

    /// Binary logarithms of the domain's size and of the number of parts.
    fn size(&self) -> (u32, u32) {
        match self {
            Tables::Whole(quotient) => (quotient.log2(), 0),
            Tables::Parted(quotient) => quotient.size(),
        }
    }
}

impl Lane {
    /// A lane on a new stream of the device.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(device: &Arc<dyn Runtime>) -> Result<Self, RuntimeError> {
        Ok(Lane {
            runtime: device.fork()?,
            tables: None,
            arena: None,
            host: HostArrays::default(),
        })
    }

    /// The stream.
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Device memory that the lane holds.
    pub fn bytes(&self) -> u64 {
        self.arena_bytes() + self.tables.as_ref().map_or(0, Tables::bytes)
    }

    fn arena_bytes(&self) -> u64 {
        self.arena.as_ref().map_or(0, Arena::size)
    }

    /// Makes tables and working memory ready for a plan; what serves is kept.
    ///
    /// # Errors
    /// When the device fails or has no room.
    pub fn prepare(&mut self, plan: &Plan, log2: u32) -> Result<(), TransformError> {
        let size = (log2, plan.h.rows);
        if self
            .tables
            .as_ref()
            .is_none_or(|tables| tables.size() != size)
        {
            self.tables = None;
            self.tables = Some(Tables::new(&self.runtime, log2, plan.h.rows)?);
        }
        if plan.h.rows == 0 {
            self.host = HostArrays::default();
        }
        let (needed, most) = (plan.arena_bytes, plan.most_arena_bytes());
        if !(needed..=most).contains(&self.arena_bytes()) {
            self.arena = None;
            // The next witness may need a little more.
            let bytes = (needed + needed / 16).min(most);
            self.arena = Some(Arena::new(&self.runtime, bytes)?);
        }
        Ok(())
    }

    /// Tables, working memory, and the arrays in host memory.
    ///
    /// # Errors
    /// When the lane was not prepared.
    pub fn parts(&mut self) -> Result<(&Tables, &mut Arena, &mut HostArrays), RuntimeError> {
        match (&self.tables, &mut self.arena) {
            (Some(tables), Some(arena)) => Ok((tables, arena, &mut self.host)),
            _ => Err(RuntimeError::device("lane", "it was not prepared")),
        }
    }
}
