//! Device time in the timeline: events around pieces of work, read when all is done.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use cuzk_kernels::runtime::{Mark, Runtime, RuntimeError};

use crate::timeline::{DEVICE_TRACK, Span, SpanId, Timeline};

/// Measures on one stream.
pub struct Clock {
    runtime: Arc<dyn Runtime>,
    timeline: Timeline,
    /// The stream's begin, and when that was.
    origin: (Mark, Duration),
    pieces: RefCell<Vec<Piece>>,
}

struct Piece {
    parent: SpanId,
    name: &'static str,
    from: Mark,
    to: Mark,
}

impl Clock {
    /// A clock that starts now, when the stream has nothing to do.
    ///
    /// # Errors
    /// When the device fails.
    pub fn start(runtime: &Arc<dyn Runtime>, timeline: &Timeline) -> Result<Self, RuntimeError> {
        let mark = runtime.mark()?;
        runtime.synchronize()?;
        Ok(Clock {
            runtime: runtime.clone(),
            timeline: timeline.clone(),
            origin: (mark, timeline.elapsed()),
            pieces: RefCell::default(),
        })
    }

    /// Runs `work`, whose commands on the device become a part of `parent`.
    ///
    /// # Errors
    /// Those of `work`, and when the device fails.
    pub fn time<T, E: From<RuntimeError>>(
        &self,
        parent: &Span,
        name: &'static str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let from = self.runtime.mark()?;
        let outcome = work()?;
        let to = self.runtime.mark()?;
        self.pieces.borrow_mut().push(Piece {
            parent: parent.id(),
            name,
            from,
            to,
        });
        Ok(outcome)
    }

    /// Adds all that was measured to the timeline.
    ///
    /// # Errors
    /// When the device fails.
    pub fn finish(self) -> Result<(), RuntimeError> {
        let (mark, origin) = &self.origin;
        for piece in self.pieces.take() {
            let start = *origin + self.runtime.elapsed(mark, &piece.from)?;
            let spent = self.runtime.elapsed(&piece.from, &piece.to)?;
            self.timeline
                .record(Some(piece.parent), piece.name, DEVICE_TRACK, start, spent);
        }
        Ok(())
    }
}
