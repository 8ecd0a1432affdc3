//! Accepted jobs and finished results on disk: what survives the end of the process, however it comes.
//!
//! The folder holds `journal.redb` with the records, `inputs/` with one file for each unfinished job,
//! and `ballast`, whose room is given up when the disk is full and a result has to be written. A job is
//! accepted once its input and its record are synced; a result is told to clients once it is
//! synced.

#![expect(
    clippy::result_large_err,
    reason = "closures return the store's own error"
)]

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::{
    Database, DatabaseError, Durability, ReadableTable as _, TableDefinition, WriteTransaction,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{JobId, JobResult, JournalError, PartitionProof, Priority};

const JOBS: TableDefinition<u64, &[u8]> = TableDefinition::new("jobs");
const RESULTS: TableDefinition<u64, &[u8]> = TableDefinition::new("results");
const PARTITIONS: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("partitions");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// The version of the records.
const VERSION: u64 = 1;
/// The store's cache; its default is sized for databases that are read a lot.
const CACHE: usize = 8 << 20;
/// Bytes of the ballast.
const BALLAST: u64 = 4 << 20;

/// A request's digest.
pub(crate) type Digest = [u8; 32];

/// An accepted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub job: JobId,
    pub request_id: Option<String>,
    pub digest: Digest,
    pub circuit: String,
    pub priority: Priority,
    /// Milliseconds of the machine's clock.
    pub accepted: u64,
    pub deadline: Option<u64>,
    pub input_bytes: u64,
}

/// A finished job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultRecord {
    pub result: JobResult,
    pub digest: Digest,
    /// Milliseconds of the machine's clock.
    pub finished: u64,
}

/// What a journal held when it was opened.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub jobs: BTreeMap<u64, JobRecord>,
    pub partitions: BTreeMap<u64, BTreeMap<usize, PartitionProof>>,
    pub results: BTreeMap<u64, ResultRecord>,
}

/// An open journal.
pub(crate) struct Journal {
    dir: PathBuf,
    path: PathBuf,
    reserve: u64,
    /// Absent after the store failed; the next use opens it again.
    database: Mutex<Option<Database>>,
}

impl Journal {
    /// Opens the journal in `dir`, or makes one; `reserve` bytes of the disk stay free.
    pub fn open(dir: &Path, reserve: u64) -> Result<(Self, Recovered), JournalError> {
        let inputs = dir.join("inputs");
        fs::create_dir_all(&inputs).map_err(io_error(&inputs))?;
        let journal = Self {
            dir: dir.to_owned(),
            path: dir.join("journal.redb"),
            reserve,
            database: Mutex::default(),
        };
        journal.check_version()?;
        let recovered = journal.read()?;
        journal.remove_strays(&recovered)?;
        journal.write_ballast();
        Ok((journal, recovered))
    }

    /// Where a job's input is.
    pub fn input_path(&self, job: &JobId) -> PathBuf {
        self.dir.join("inputs").join(job.as_str())
    }

    /// Writes a job's input and syncs it.
    pub fn write_input(&self, job: &JobId, bytes: &[u8]) -> Result<PathBuf, JournalError> {
        self.check_space(bytes.len() as u64)?;
        let path = self.input_path(job);
        let folder = self.dir.join("inputs");
        let written = tempfile::NamedTempFile::new_in(&folder).and_then(|mut file| {
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            fs::File::open(&folder)?.sync_all()
        });
        written.map_err(io_error(&path))?;
        Ok(path)
    }

    /// Removes a job's input. One that stays is removed when the journal is next opened.
    pub fn remove_input(&self, job: &JobId) {
        let path = self.input_path(job);
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "an input stays behind");
        }
    }

    /// Records an accepted job.
    pub fn accept(&self, key: u64, record: &JobRecord) -> Result<(), JournalError> {
        let bytes = self.encode("jobs", key, record)?;
        self.write(Durability::Immediate, |transaction| {
            let mut jobs = transaction.open_table(JOBS)?;
            jobs.insert(key, bytes.as_slice())?;
            Ok(())
        })
    }

    /// Records a partition's proof; it may be lost when the machine stops, not when the process does.
    pub fn checkpoint(
        &self,
        key: u64,
        partition: usize,
        proof: &PartitionProof,
    ) -> Result<(), JournalError> {
        self.write(Durability::Eventual, |transaction| {
            if transaction.open_table(JOBS)?.get(key)?.is_some() {
                let mut partitions = transaction.open_table(PARTITIONS)?;
                partitions.insert((key, partition as u32), proof.as_slice())?;
            }
            Ok(())
        })
    }

    /// Records a result in the place of its job. When the disk is full, the ballast makes room.
    pub fn finish(&self, key: u64, record: &ResultRecord) -> Result<(), JournalError> {
        let bytes = self.encode("results", key, record)?;
        let write = || {
            self.write(Durability::Immediate, |transaction| {
                transaction.open_table(JOBS)?.remove(key)?;
                let mut results = transaction.open_table(RESULTS)?;
                results.insert(key, bytes.as_slice())?;
                let mut partitions = transaction.open_table(PARTITIONS)?;
                partitions.retain_in((key, 0)..=(key, u32::MAX), |_, _| false)?;
                Ok(())
            })
        };
        let written = match write() {
            Err(error) if error.is_disk_full() => {
                // There may be none any more.
                let _ = fs::remove_file(self.dir.join("ballast"));
                write()
            }
            other => other,
        };
        if written.is_ok() {
            self.remove_input(&record.result.job);
        }
        written
    }

    /// Removes results.
    pub fn forget(&self, keys: &[u64]) -> Result<(), JournalError> {
        self.write(Durability::Eventual, |transaction| {
            let mut results = transaction.open_table(RESULTS)?;
            for key in keys {
                results.remove(key)?;
            }
            Ok(())
        })
    }

    /// Refuses `bytes` more when the reserve would be touched.
    fn check_space(&self, bytes: u64) -> Result<(), JournalError> {
        let stat = rustix::fs::statvfs(&self.dir)
            .map_err(|error| io_error(&self.dir)(io::Error::from(error)))?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let needed = bytes.saturating_add(self.reserve);
        if free < needed {
            let path = self.dir.clone();
            return Err(JournalError::NoSpace { path, free, needed });
        }
        self.write_ballast();
        Ok(())
    }

    /// Sets room aside, if it is not.
    fn write_ballast(&self) {
        let path = self.dir.join("ballast");
        if fs::metadata(&path).is_ok_and(|found| found.len() == BALLAST) {
            return;
        }
        // Zeros might be stored as a hole, which takes no room.
        let bytes: Vec<u8> = (0..BALLAST).map(|i| (i % 251) as u8).collect();
        if let Err(error) = fs::write(&path, bytes) {
            tracing::warn!(path = %path.display(), %error, "no room can be set aside");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        durability: Durability,
        change: impl Fn(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), JournalError> {
        self.with(|database| {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(durability);
            change(&transaction)?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// Uses the store, which is opened where it is not.
    fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, JournalError> {
        let mut guard = self.lock();
        let database = match guard.take() {
            Some(database) => database,
            None => self.open_database()?,
        };
        match work(&database) {
            Ok(value) => {
                *guard = Some(database);
                Ok(value)
            }
            // After a failure the store wants to be opened again.
            Err(error) => Err(self.store_error(&error)),
        }
    }

    fn open_database(&self) -> Result<Database, JournalError> {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE);
        builder.create(&self.path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => JournalError::Busy {
                path: self.path.clone(),
            },
            other => self.store_error(&other.into()),
        })
    }

    fn store_error(&self, error: &redb::Error) -> JournalError {
        let full = matches!(error, redb::Error::Io(source) if is_full(source));
        JournalError::Store {
            path: self.path.clone(),
            message: error.to_string(),
            full,
        }
    }

    fn check_version(&self) -> Result<(), JournalError> {
        let found = self.with(|database| {
            let transaction = database.begin_write()?;
            transaction.open_table(JOBS)?;
            transaction.open_table(RESULTS)?;
            transaction.open_table(PARTITIONS)?;
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("version")?.map(|version| version.value());
            if found.is_none() {
                meta.insert("version", VERSION)?;
            }
            drop(meta);
            transaction.commit()?;
            Ok(found)
        })?;
        match found {
            None | Some(VERSION) => Ok(()),
            Some(other) => Err(JournalError::Store {
                path: self.path.clone(),
                message: format!("version {other}, expected {VERSION}"),
                full: false,
            }),
        }
    }

    fn read(&self) -> Result<Recovered, JournalError> {
        let raw = self.with(|database| {
            let transaction = database.begin_read()?;
            let list =
                |table: TableDefinition<u64, &[u8]>| -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
                    let table = transaction.open_table(table)?;
                    let mut rows = Vec::new();
                    for row in table.iter()? {
                        let (key, value) = row?;
                        rows.push((key.value(), value.value().to_vec()));
                    }
                    Ok(rows)
                };
            let table = transaction.open_table(PARTITIONS)?;
            let mut proofs = Vec::new();
            for row in table.iter()? {
                let (key, value) = row?;
                proofs.push((key.value(), value.value().to_vec()));
            }
            Ok((list(JOBS)?, list(RESULTS)?, proofs))
        })?;
        let (jobs, results, proofs) = raw;
        let mut recovered = Recovered::default();
        for (key, bytes) in jobs {
            let record = self.decode("jobs", key, &bytes)?;
            recovered.jobs.insert(key, record);
        }
        for (key, bytes) in results {
            let record = self.decode("results", key, &bytes)?;
            recovered.results.insert(key, record);
        }
        for ((key, partition), bytes) in proofs {
            if let Ok(proof) = PartitionProof::try_from(bytes.as_slice()) {
                let proofs = recovered.partitions.entry(key).or_default();
                proofs.insert(partition as usize, proof);
            }
        }
        Ok(recovered)
    }

    /// Removes inputs that belong to no job.
    fn remove_strays(&self, recovered: &Recovered) -> Result<(), JournalError> {
        let known: HashSet<&str> = recovered.jobs.values().map(|r| r.job.as_str()).collect();
        let folder = self.dir.join("inputs");
        for entry in fs::read_dir(&folder).map_err(io_error(&folder))? {
            let path = entry.map_err(io_error(&folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| known.contains(name)) {
                fs::remove_file(&path).map_err(io_error(&path))?;
            }
        }
        Ok(())
    }

    fn encode<T: Serialize>(
        &self,
        table: &'static str,
        record: u64,
        value: &T,
    ) -> Result<Vec<u8>, JournalError> {
        bincode::serialize(value).map_err(|error| self.record_error(table, record, &error))
    }

    fn decode<T: DeserializeOwned>(
        &self,
        table: &'static str,
        record: u64,
        bytes: &[u8],
    ) -> Result<T, JournalError> {
        bincode::deserialize(bytes).map_err(|error| self.record_error(table, record, &error))
    }

    fn record_error(
        &self,
        table: &'static str,
        record: u64,
        error: &bincode::Error,
    ) -> JournalError {
        JournalError::Record {
            path: self.path.clone(),
            table,
            record,
            message: error.to_string(),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> JournalError + '_ {
    move |source| JournalError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobState, JobTimes};

    fn record(name: &str) -> JobRecord {
        JobRecord {
            job: JobId::new(name),
            request_id: Some(format!("request-{name}")),
            digest: [7; 32],
            circuit: "porep-2k".to_owned(),
            priority: Priority::Normal,
            accepted: 1,
            deadline: None,
            input_bytes: 3,
        }
    }

    fn result(name: &str) -> ResultRecord {
        ResultRecord {
            result: JobResult {
                job: JobId::new(name),
                request_id: None,
                circuit: "porep-2k".to_owned(),
                state: JobState::Completed,
                proof: vec![1; 192],
                message: String::new(),
                times: JobTimes::default(),
            },
            digest: [7; 32],
            finished: 2,
        }
    }

    #[test]
    fn jobs_partitions_and_results_are_there_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, recovered) = Journal::open(dir.path(), 0).unwrap();
        assert!(recovered.jobs.is_empty() && recovered.results.is_empty());
        for (key, name) in [(1, "a"), (2, "b")] {
            journal.write_input(&JobId::new(name), b"xyz").unwrap();
            journal.accept(key, &record(name)).unwrap();
            journal.checkpoint(key, 4, &[key as u8; 192]).unwrap();
        }
        journal.write_input(&JobId::new("stray"), b"xyz").unwrap();
        journal.finish(1, &result("a")).unwrap();
        journal.checkpoint(1, 5, &[9; 192]).unwrap();
        drop(journal);

        let (journal, recovered) = Journal::open(dir.path(), 0).unwrap();
        assert_eq!(recovered.jobs, BTreeMap::from([(2, record("b"))]));
        assert_eq!(recovered.results, BTreeMap::from([(1, result("a"))]));
        let proofs = BTreeMap::from([(2, BTreeMap::from([(4, [2; 192])]))]);
        assert_eq!(recovered.partitions, proofs);
        let inputs = fs::read_dir(dir.path().join("inputs")).unwrap();
        let inputs: Vec<_> = inputs.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(inputs, ["b"]);
        journal.forget(&[1]).unwrap();
        drop(journal);
        let (_, recovered) = Journal::open(dir.path(), 0).unwrap();
        assert!(recovered.results.is_empty());
    }

    #[test]
    fn a_journal_is_used_by_one_engine_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Journal::open(dir.path(), 0).unwrap();
        let second = Journal::open(dir.path(), 0).map(|_| ());
        assert!(
            matches!(second, Err(JournalError::Busy { .. })),
            "{second:?}"
        );
        drop(first);
        Journal::open(dir.path(), 0).map(|_| ()).unwrap();
    }

    #[test]
    fn inputs_that_would_fill_the_disk_are_refused_with_the_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(dir.path(), u64::MAX / 2).unwrap();
        let error = journal.write_input(&JobId::new("a"), b"xyz").unwrap_err();
        assert!(error.is_disk_full(), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("4611686018427387906 needed") || text.contains("needed"),
            "{text}"
        );
        journal.finish(1, &result("a")).unwrap();
    }

    #[test]
    fn a_damaged_record_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(dir.path(), 0).unwrap();
        let spoil = |transaction: &WriteTransaction| {
            transaction.open_table(JOBS)?.insert(5, &b"\xff\xff"[..])?;
            Ok(())
        };
        journal.write(Durability::Immediate, spoil).unwrap();
        drop(journal);
        let error = Journal::open(dir.path(), 0).map(|_| ()).unwrap_err();
        assert!(
            error.to_string().contains("record 5 of table jobs"),
            "{error}"
        );
    }
}
