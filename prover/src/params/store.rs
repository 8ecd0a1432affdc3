//! Writing parameter and key files so that a cut-off run leaves nothing that passes for one.

use std::{
    fs::{File, Permissions},
    io::{self, BufWriter, Write},
    path::Path,
};

use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use super::{
    ParamsError, PointFault, Points, io_error,
    point::{BLOCK, Encoded, Place},
};
use crate::VerifyingKey;

/// Blocks that are encoded together before they are written.
const BLOCKS_PER_WRITE: usize = 64;

/// Runs `fill` on a temporary file beside `path`, syncs it and renames it to `path`.
pub(crate) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ParamsError> {
    let file = path.display().to_string();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let temporary = temporary_file(folder).map_err(|source| io_error(&file, "create", source))?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary);
    fill(&mut out).map_err(|source| io_error(&file, "write", source))?;
    let temporary = out
        .into_inner()
        .map_err(|e| io_error(&file, "write", e.into_error()))?;
    temporary
        .as_file()
        .sync_all()
        .map_err(|source| io_error(&file, "sync", source))?;
    temporary
        .persist(path)
        .map_err(|e| io_error(&file, "rename", e.error))?;
    sync_folder(folder).map_err(|source| io_error(&file, "sync the folder of", source))
}

/// A temporary file with the rights that an ordinary new file gets.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".partial-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
    }
    #[cfg(not(unix))]
    builder.tempfile_in(folder)
}

/// Makes the rename last through a power cut.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// A count as it stands in a file. `offset` is where it would stand.
pub(crate) fn count(
    file: &str,
    what: &'static str,
    offset: usize,
    count: usize,
) -> Result<[u8; 4], ParamsError> {
    u32::try_from(count)
        .map(u32::to_be_bytes)
        .map_err(|_| ParamsError::Count {
            file: file.to_owned(),
            what,
            offset: offset as u64,
            expected: "a number of 32 bits".to_owned(),
            found: count as u64,
        })
}

/// Refuses points at infinity, which no file may hold.
pub(crate) fn check_finite<P: Encoded + PrimeCurveAffine>(
    points: &[P],
    place: Place<'_>,
) -> Result<(), ParamsError> {
    match points
        .par_iter()
        .position_first(|point| bool::from(point.is_identity()))
    {
        None => Ok(()),
        Some(index) => Err(place.fault::<P>(index, PointFault::Identity)),
    }
}

/// Writes a whole parameter file into `out`.
pub(super) fn write_all(out: &mut dyn Write, key: &[u8], points: &Points) -> io::Result<()> {
    out.write_all(key)?;
    write_section(out, &points.h)?;
    write_section(out, &points.l)?;
    write_section(out, &points.a)?;
    write_section(out, &points.b_g1)?;
    write_section(out, &points.b_g2)
}

/// Writes the count and the points of a section; points are encoded in parallel.
fn write_section<P: Encoded>(out: &mut dyn Write, points: &[P]) -> io::Result<()> {
    let count = u32::try_from(points.len()).map_err(io::Error::other)?;
    out.write_all(&count.to_be_bytes())?;
    for run in points.chunks(BLOCK * BLOCKS_PER_WRITE) {
        let blocks: Vec<Vec<u8>> = run
            .par_chunks(BLOCK)
            .map(|block| {
                let mut bytes = Vec::with_capacity(block.len() * P::BYTES);
                block.iter().for_each(|point| point.encode(&mut bytes));
                bytes
            })
            .collect();
        for block in blocks {
            out.write_all(&block)?;
        }
    }
    Ok(())
}

/// Checks that parameters can be written: counts of 32 bits, no point at infinity.
pub(super) fn prepare(
    file: &str,
    vk: &VerifyingKey,
    points: &Points,
) -> Result<Vec<u8>, ParamsError> {
    let place = |what| Place {
        file,
        what,
        offset: 0,
    };
    for (what, len) in [
        ("h", points.h.len()),
        ("l", points.l.len()),
        ("a", points.a.len()),
    ] {
        count(file, what, 0, len)?;
    }
    count(file, "b_g1", 0, points.b_g1.len())?;
    check_finite(&points.h, place("h"))?;
    check_finite(&points.l, place("l"))?;
    check_finite(&points.a, place("a"))?;
    check_finite(&points.b_g1, place("b_g1"))?;
    check_finite(&points.b_g2, place("b_g2"))?;
    vk.encode(file)
}
