//! Tables of a database that is opened: on how many threads, and which error is told.

use crate::harness::creating;
use outcrop::*;
use outcrop_env::memory::MemoryFs;
use outcrop_env::threads::{JoinHandle, SystemThreads, Task, Threads};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TABLES: u32 = 100;

/// Counts threads that open tables.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Threads for Counted {
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        self.0.fetch_add(usize::from(name == "outcrop:open"), Ordering::Relaxed);
        SystemThreads.spawn(name, task)
    }

    fn parallelism(&self) -> usize {
        SystemThreads.parallelism()
    }
}

fn env(fs: &MemoryFs) -> (Env, Arc<Counted>) {
    let threads = Arc::new(Counted::default());
    (Env { threads: threads.clone(), ..Env::with_file_system(Arc::new(fs.clone())) }, threads)
}

fn open(env: &Env, max_file_opening_threads: &str) -> Result<Db> {
    let mut options = creating();
    options.kept.set(outcrop_options::kept::DB_KEPT, "max_file_opening_threads", max_file_opening_threads)?;
    let family = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    let default = ColumnFamilyDescriptor::new("default").with_options(family);
    Db::builder("/db").options(options).env(env.clone()).column_family(default).open()
}

/// A file system with a database of many tables, and their paths.
fn filled() -> (MemoryFs, Vec<std::path::PathBuf>) {
    let fs = MemoryFs::default();
    let db = open(&env(&fs).0, "16").unwrap();
    for row in 0..TABLES {
        db.put(row.to_be_bytes(), "value").unwrap();
        db.flush().unwrap();
    }
    let mut paths: Vec<_> =
        db.live_files().iter().map(|file| Path::new("/db").join(file.name.trim_start_matches('/'))).collect();
    paths.sort();
    (fs, paths)
}

#[test]
fn many_tables_are_opened_by_as_many_threads_as_may_be() {
    let (fs, _) = filled();
    for (most, expected) in [("1", 0), ("4", 3), ("16", 5), ("-1", 0)] {
        let (env, threads) = env(&fs);
        let db = open(&env, most).unwrap();
        assert_eq!(threads.0.load(Ordering::Relaxed), expected, "beside the caller's, of {most}");
        for row in 0..TABLES {
            assert_eq!(db.get(row.to_be_bytes()).unwrap().as_deref(), Some(&b"value"[..]));
        }
    }
}

#[test]
fn the_error_told_is_that_of_one_damaged_table_whoever_finds_it() {
    let (fs, paths) = filled();
    for damaged in [0, 50, paths.len() - 1] {
        let end = outcrop_env::FileSystem::file_size(&fs, &paths[damaged]).unwrap() as usize;
        // In the footer's magic number.
        fs.flip_byte(&paths[damaged], end - 1, 0xFF);
        for threads in ["1", "16"] {
            let error = open(&env(&fs).0, threads).err().expect("a damaged table");
            let name = paths[damaged].file_name().unwrap().to_str().unwrap();
            assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains(name), "{error}");
        }
        fs.flip_byte(&paths[damaged], end - 1, 0xFF);
    }
    assert!(open(&env(&fs).0, "16").is_ok());
}
