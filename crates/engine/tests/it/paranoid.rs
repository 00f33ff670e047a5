//! `paranoid_file_checks`: a table whose bytes were damaged on their way to the disk fails the job that wrote it, and
//! nothing that the job read is given up for it.

use crate::harness::{Rows, creating, descriptor};
use crate::wrapped_files::passed_on;
use outcrop::*;
use outcrop_base::checksum::ChecksumType;
use outcrop_env::file_system::{FileLock, FileSystem, ReadFile, WriteFile};
use outcrop_env::memory::MemoryFs;
use outcrop_env::{OpenRead, OpenWrite};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No byte is damaged.
const SOUND: u64 = u64::MAX;

/// A [`MemoryFs`] in which one byte of each new table becomes another.
#[derive(Clone)]
struct DamagingFs {
    inner: MemoryFs,
    /// Which byte of the file.
    offset: Arc<AtomicU64>,
}

struct DamagedFile {
    inner: Box<dyn WriteFile>,
    offset: u64,
}

impl WriteFile for DamagedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut bytes = bytes.to_vec();
        let place = self.offset.checked_sub(self.inner.len()).and_then(|at| usize::try_from(at).ok());
        if let Some(byte) = place.and_then(|at| bytes.get_mut(at)) {
            *byte ^= 0x10;
        }
        self.inner.append(&bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.inner.sync()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }
}

impl FileSystem for DamagingFs {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        self.inner.open_read(path, options)
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        let inner = self.inner.create(path, options)?;
        let is_table = path.extension().is_some_and(|extension| extension == "sst");
        let offset = if is_table { self.offset.load(Ordering::Relaxed) } else { SOUND };
        Ok(Box::new(DamagedFile { inner, offset }))
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.inner.reuse(old, path, options)
    }

    passed_on!();
}

/// How a table comes to be.
#[derive(Clone, Copy, Debug)]
enum By {
    Flush,
    Compaction,
}

impl By {
    fn run(self, db: &Db) -> Result<()> {
        let cf = db.default_column_family();
        match self {
            By::Flush => db.flush_cf(cf),
            By::Compaction => {
                db.compact_range_cf_with(cf, None, None, &BottommostLevelCompaction::Force.into())
            }
        }
    }
}

struct Trial {
    fs: DamagingFs,
    options: ColumnFamilyOptions,
    db: Db,
    rows: Rows,
}

impl Trial {
    /// A database with rows that `by` will write to a table of some 4000 bytes of data; they are in memory or in two tables.
    fn new(by: By, checksum: ChecksumType, paranoid: bool) -> Trial {
        let fs = DamagingFs { inner: MemoryFs::new(), offset: Arc::new(AtomicU64::new(SOUND)) };
        let mut options = ColumnFamilyOptions {
            paranoid_file_checks: paranoid,
            compression: CompressionType::None,
            disable_auto_compactions: true,
            ..ColumnFamilyOptions::default()
        };
        options.table.checksum = checksum;
        let db = open(&fs, &options).unwrap();
        let mut rows = Rows::new();
        for i in 0..60u32 {
            let (key, value) = (format!("key{i:03}").into_bytes(), format!("{i:060}").into_bytes());
            db.put(&key, &value).unwrap();
            rows.insert(key, value);
            if i == 30 && matches!(by, By::Compaction) {
                By::Flush.run(&db).unwrap();
            }
        }
        if matches!(by, By::Compaction) {
            By::Flush.run(&db).unwrap();
        }
        Trial { fs, options, db, rows }
    }
}

fn open(fs: &DamagingFs, options: &ColumnFamilyOptions) -> Result<Db> {
    let env = Env::with_file_system(Arc::new(fs.clone()));
    Db::builder("/db").options(creating()).env(env).column_family(descriptor("default", options)).open()
}

/// The rows that a scan shows.
fn contents(db: &Db) -> Result<Rows> {
    let mut iter = db.cursor()?;
    let mut rows = Rows::new();
    iter.seek_to_first();
    while iter.valid() {
        rows.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().map(|()| rows)
}

#[test]
fn a_table_damaged_while_it_is_written_fails_its_job_and_loses_nothing() {
    // Without checksums the contents alone tell.
    for checksum in [ChecksumType::Xxh3, ChecksumType::None] {
        for by in [By::Flush, By::Compaction] {
            for offset in (0..3500).step_by(250) {
                let case = format!("{checksum:?}, {by:?}, byte {offset}");
                let trial = Trial::new(by, checksum, true);
                trial.fs.offset.store(offset, Ordering::Relaxed);
                let error = by.run(&trial.db).expect_err(&case);
                assert_eq!(error.kind(), ErrorKind::Corruption, "{case}: {error}");
                assert!(error.to_string().contains(".sst"), "{case}: the file is named: {error}");
                assert_eq!(contents(&trial.db).unwrap(), trial.rows, "{case}");
                let stopped = trial.db.put(b"more", b"").expect_err(&case);
                assert_eq!(stopped.kind(), ErrorKind::Corruption, "{case}: writes wait for a human");
                drop(trial.db);

                trial.fs.offset.store(SOUND, Ordering::Relaxed);
                let db = open(&trial.fs, &trial.options).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(contents(&db).unwrap(), trial.rows, "{case}");
                by.run(&db).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(contents(&db).unwrap(), trial.rows, "{case}");
            }
        }
    }
}

#[test]
fn without_the_check_such_a_table_is_found_when_it_is_read() {
    for by in [By::Flush, By::Compaction] {
        let trial = Trial::new(by, ChecksumType::Xxh3, false);
        trial.fs.offset.store(1000, Ordering::Relaxed);
        by.run(&trial.db).unwrap();
        let error = contents(&trial.db).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{by:?}: {error}");
    }
}
