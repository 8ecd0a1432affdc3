//! Parameters that go to their file while they are made.

use super::{
    SetupError,
    sections::{EmitError, Multiples, Part, Progress, Sections, Sink},
};
use crate::params::{point::Encoded, store};
use blstrs::{G1Affine, G2Affine};
use rayon::prelude::*;
use std::{
    io::{self, Write},
    path::Path,
};

/// Points that one task encodes.
const RUN: usize = 1 << 12;

/// Writes the file; it appears under its name when complete.
pub(super) fn write(
    path: &Path,
    sections: &Sections<'_>,
    multiples: &mut dyn Multiples,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), SetupError> {
    let key = sections
        .verifying_key()
        .encode(&path.display().to_string())?;
    // An error of the computation goes past the file's own errors.
    let mut failure = None;
    let written = store::replace(path, |out| {
        out.write_all(&key)?;
        let mut writer = Writer { out };
        match sections.emit(multiples, &mut writer, progress) {
            Ok(()) => Ok(()),
            Err(EmitError::Sink(error)) => Err(error),
            Err(EmitError::Setup(error)) => {
                let stopped = io::Error::other(error.to_string());
                failure = Some(error);
                Err(stopped)
            }
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(written?),
    }
}

struct Writer<'a> {
    out: &'a mut dyn Write,
}

impl Writer<'_> {
    fn points<P: Encoded>(&mut self, points: &[P]) -> io::Result<()> {
        let encoded: Vec<Vec<u8>> = points
            .par_chunks(RUN)
            .map(|run| {
                let mut bytes = Vec::with_capacity(run.len() * P::BYTES);
                run.iter().for_each(|point| point.encode(&mut bytes));
                bytes
            })
            .collect();
        encoded
            .iter()
            .try_for_each(|bytes| self.out.write_all(bytes))
    }
}

impl Sink for Writer<'_> {
    fn begin(&mut self, part: Part, count: usize) -> io::Result<()> {
        let count = u32::try_from(count).map_err(|_| {
            io::Error::other(format!(
                "{count} points in section {part:?}; the format's counts have 32 bits"
            ))
        })?;
        self.out.write_all(&count.to_be_bytes())
    }

    fn g1(&mut self, points: Vec<G1Affine>) -> io::Result<()> {
        self.points(&points)
    }

    fn g2(&mut self, points: Vec<G2Affine>) -> io::Result<()> {
        self.points(&points)
    }
}
