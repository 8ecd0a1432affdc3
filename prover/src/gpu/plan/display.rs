//! A plan in words and numbers.

use std::fmt;

use super::{BaseSet, Plan};

/// Bytes with a unit.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            n if n >= 1 << 30 => write!(f, "{:.2} GiB", bytes / f64::from(1 << 30)),
            n if n >= 1 << 20 => write!(f, "{:.1} MiB", bytes / f64::from(1 << 20)),
            n => write!(f, "{:.1} KiB", n as f64 / 1024.0),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |what: &str, text: String| writeln!(f, "{what:<20} {text}");
        line(
            "device memory",
            format!(
                "{} of {} allowed",
                Size(self.bytes()),
                Size(self.room.bytes)
            ),
        )?;
        for set in BaseSet::ALL {
            let place = if self.resident.contains(set) {
                "stays on the device"
            } else {
                "streamed"
            };
            let size = Size(set.bytes(&self.counts));
            line(&format!("  {}", set.name()), format!("{size}, {place}"))?;
        }
        if self.circuit_bytes > 0 {
            line(
                "  circuit",
                format!("{}, stays on the device", Size(self.circuit_bytes)),
            )?;
        }
        let lanes = self.lanes;
        line("  tables", format!("{lanes} × {}", Size(self.table_bytes)))?;
        line(
            "  working memory",
            format!("{lanes} × {}", Size(self.arena_bytes)),
        )?;
        let log2 = self.counts.domain_log2();
        let n = self.counts.h as u64 + 1;
        let domain = match self.h.rows {
            0 => format!("2^{log2}, three arrays of {} on the device", Size(32 * n)),
            rows => format!(
                "2^{log2}, three arrays of {} in host memory, {} parts, strips of 2^{} columns",
                Size(32 * n),
                1 << rows,
                self.h.columns.ilog2()
            ),
        };
        line("domain", domain)?;
        line(
            "sum over h",
            format!(
                "{} × {} points, windows of {} bits, {}",
                self.h.pieces,
                self.h.piece,
                self.h.bits,
                Size(self.h.arena_bytes)
            ),
        )?;
        line(
            "private variables",
            format!(
                "{} × {} variables, windows of {} bits, {}",
                self.variables.chunks,
                self.variables.piece,
                self.variables.bits,
                Size(self.variables.arena_bytes)
            ),
        )?;
        line("streamed", format!("{} a proof", Size(self.streamed_bytes)))?;
        write!(
            f,
            "{:<20} {:.3} s a proof on the device, {} at once",
            "expected", self.seconds, self.lanes
        )
    }
}
