//! The flat tables of a compiled circuit, as they lie in memory, in files and on devices.

use super::map::MappedFile;
use bytemuck::{Pod, Zeroable};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A stretch of rows, stored once and used by all its [`Instance`]s.
///
/// Its rows are `row_ends[rows_start..][..rows]`. Row `i` has the A terms from the end of row
/// `i − 1` (0 for the first) to `row_ends[i][0]`, counted from `a_start`; B likewise. A term's
/// variable is 0 for the constant one, `1 + k` for the instance's outside reference `k`, and
/// `1 + outside + j` for private variable `aux_base + j`. A term's coefficient is
/// `coefficients[page + id]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Template {
    /// First entry of the template in the row ends.
    pub rows_start: u64,
    /// First term of the template in the A terms.
    pub a_start: u64,
    /// First term of the template in the B terms.
    pub b_start: u64,
    /// Number of rows.
    pub rows: u32,
    /// Number of private variables that the template's own stretch allocates.
    pub aux: u32,
    /// Number of outside references of each instance.
    pub outside: u32,
    /// First entry of the template's page in the coefficient table.
    pub page: u32,
}

/// One use of a template. Instances are stored in the order of their rows and leave no gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Instance {
    /// Number of the template.
    pub template: u32,
    /// First constraint of the instance.
    pub first_row: u32,
    /// First private variable of the instance.
    pub aux_base: u32,
    /// First entry of the instance in the outside references.
    pub outside_start: u32,
}

/// Marks an outside reference that is an input: `INPUT | i` is input `i`, anything below is a
/// private variable.
pub const INPUT: u32 = 1 << 31;

/// The terms of one side of all templates: two arrays of equal length.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    pub variables: Section<u32>,
    pub coefficients: Section<u16>,
}

/// All tables but the coefficients.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub templates: Section<Template>,
    pub row_ends: Section<[u32; 2]>,
    pub a: Terms,
    pub b: Terms,
    /// Terms of C of all templates in the order of their rows; empty where C is not recorded.
    pub c: Terms,
    /// For each row of each template the end of its terms in `c`; empty where C is not recorded.
    pub c_ends: Section<u32>,
    pub instances: Section<Instance>,
    pub outside: Section<u32>,
}

impl Template {
    /// Number of variables that the template's terms can name.
    pub(super) fn variables(&self) -> u64 {
        1 + u64::from(self.outside) + u64::from(self.aux)
    }
}

impl Tables {
    /// Row ends of a template.
    pub fn row_ends(&self, template: &Template) -> &[[u32; 2]] {
        let start = template.rows_start as usize;
        &self.row_ends[start..start + template.rows as usize]
    }

    /// Whether C is recorded, too.
    pub fn has_c(&self) -> bool {
        self.c_ends.len() == self.row_ends.len()
    }

    /// Ends of the C terms of a template's rows, and where the first row's terms start.
    pub fn c_ends(&self, template: &Template) -> (usize, &[u32]) {
        let start = template.rows_start as usize;
        let before = start.checked_sub(1).map_or(0, |row| self.c_ends[row]);
        let ends = &self.c_ends[start..start + template.rows as usize];
        (before as usize, ends)
    }

    /// Outside references of an instance.
    pub fn outside(&self, instance: &Instance, template: &Template) -> &[u32] {
        let start = instance.outside_start as usize;
        &self.outside[start..start + template.outside as usize]
    }
}

/// An opened file; all its tables are views into it.
pub(super) type FileBytes = Arc<MappedFile>;

/// An array of its own or one that lies in an opened file.
#[derive(Clone, Debug)]
pub(super) enum Section<T> {
    Owned(Vec<T>),
    InFile {
        file: FileBytes,
        bytes: Range<usize>,
    },
}

impl<T> Default for Section<T> {
    fn default() -> Self {
        Section::Owned(Vec::new())
    }
}

impl<T: Pod> Section<T> {
    /// The array at `bytes` of `file`, if the range lies inside, is aligned and holds whole
    /// elements.
    pub fn in_file(file: &FileBytes, bytes: Range<usize>) -> Option<Self> {
        let slice = file.get(bytes.clone())?;
        bytemuck::try_cast_slice::<u8, T>(slice).ok()?;
        Some(Section::InFile {
            file: file.clone(),
            bytes,
        })
    }
}

impl<T: Pod> Deref for Section<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Section::Owned(values) => values,
            Section::InFile { file, bytes } => bytemuck::cast_slice(&file[bytes.clone()]),
        }
    }
}

impl<T> From<Vec<T>> for Section<T> {
    fn from(values: Vec<T>) -> Self {
        Section::Owned(values)
    }
}
