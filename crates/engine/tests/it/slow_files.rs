//! A file system on which chosen calls wait until a test releases them: the operations that wait for a slow device, and those that must not.

use crate::harness::{creating, descriptor};
use crate::wrapped_files::passed_on;
use outcrop::options::ColumnFamilyOptions;
use outcrop::*;
use outcrop_env::file_system::{FileLock, ReadFile, WriteFile};
use outcrop_env::memory::MemoryFs;
use outcrop_env::{FileSystem, OpenRead, OpenWrite};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The call that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Sync,
    Append,
}

/// While closed, calls of one kind to files whose names contain a text wait.
#[derive(Default)]
struct Gate {
    closed: Mutex<Option<(Call, &'static str)>>,
    changed: Condvar,
    /// Receives a message for each call that waits.
    waiting: Mutex<Option<Sender<()>>>,
}

impl Gate {
    fn close(&self, call: Call, name: &'static str) -> Receiver<()> {
        let (sender, receiver) = channel();
        *self.waiting.lock().unwrap() = Some(sender);
        *self.closed.lock().unwrap() = Some((call, name));
        receiver
    }

    fn open(&self) {
        *self.closed.lock().unwrap() = None;
        self.changed.notify_all();
    }

    fn pass(&self, call: Call, path: &Path) {
        let mut closed = self.closed.lock().unwrap();
        while closed.is_some_and(|(kind, name)| kind == call && path.to_string_lossy().contains(name)) {
            if let Some(sender) = self.waiting.lock().unwrap().take() {
                sender.send(()).unwrap();
            }
            closed = self.changed.wait(closed).unwrap();
        }
    }
}

#[derive(Clone, Default)]
struct GatedFs {
    inner: MemoryFs,
    gate: Arc<Gate>,
}

struct GatedFile {
    inner: Box<dyn WriteFile>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl WriteFile for GatedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.gate.pass(Call::Append, &self.path);
        self.inner.append(bytes)
    }

    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        self.gate.pass(Call::Append, &self.path);
        self.inner.append_marked(bytes, end)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.gate.pass(Call::Sync, &self.path);
        self.inner.sync()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }
}

impl GatedFs {
    fn gated(&self, path: &Path, inner: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        Box::new(GatedFile { inner, path: path.to_path_buf(), gate: self.gate.clone() })
    }
}

impl FileSystem for GatedFs {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        self.inner.open_read(path, options)
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        Ok(self.gated(path, self.inner.create(path, options)?))
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        Ok(self.gated(path, self.inner.reuse(old, path, options)?))
    }

    passed_on!();
}

/// Nothing here takes as long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `work` on a thread and fails if it does not end; gives the thread.
fn must_end(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel::<()>();
    let thread = std::thread::spawn(move || {
        work();
        drop(done);
    });
    let outcome = ended.recv_timeout(PATIENCE);
    assert_ne!(outcome, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "{what} waits");
    thread.join().unwrap();
}

fn open(fs: &GatedFs, options: &ColumnFamilyOptions) -> Arc<Db> {
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let families = vec![descriptor("default", options), descriptor("side", options)];
    Arc::new(Db::builder("/db").options(creating()).env(env).column_families(families).open().unwrap())
}

fn families(db: &Db) -> Vec<ColumnFamilyHandle> {
    db.column_families()
}

fn put(db: &Db, cf: &ColumnFamilyHandle, key: &str) {
    db.put_cf(cf, key.as_bytes(), b"v").unwrap();
}

#[test]
fn a_slow_sync_of_a_closed_wal_holds_up_nobody_who_does_not_sync() {
    let fs = GatedFs::default();
    let db = open(&fs, &ColumnFamilyOptions::default());
    let [main, side] = families(&db).try_into().unwrap_or_else(|_| panic!("two"));
    put(&db, &main, "a");
    put(&db, &side, "a");
    // The flush of one of several column families syncs the WALs that are closed.
    let waits = fs.gate.close(Call::Sync, ".log");
    let flushing = {
        let (db, main) = (db.clone(), main.clone());
        std::thread::spawn(move || db.flush_cfs(&[main], Wait::UntilDone).unwrap())
    };
    waits.recv().unwrap();
    let (held, main_then, side_then) = (db.clone(), main.clone(), side.clone());
    must_end("a writer or reader", move || {
        put(&held, &main_then, "b");
        // A new WAL: the one before is closed, unsynced.
        held.flush_cfs(std::slice::from_ref(&side_then), Wait::No).unwrap();
        put(&held, &side_then, "b");
        let all = ReadOptions::default();
        assert!(held.get_cf_with(&side_then, b"b", &all).unwrap().is_some());
        assert!(held.cursor_cf_with(&main_then, &all).is_ok());
        assert!(held.property_cf(&main_then, "rocksdb.stats").is_some());
        held.disable_file_deletions();
        assert!(held.get_cf_with(&main_then, b"b", &all).unwrap().is_some());
    });
    // The search for obsolete WALs goes on, too.
    let held = db.clone();
    must_end("a purge", move || held.enable_file_deletions());
    fs.gate.open();
    flushing.join().unwrap();
    db.flush_cfs(&[side], Wait::UntilDone).unwrap();
}

#[test]
fn a_slow_log_file_holds_up_nobody() {
    let fs = GatedFs::default();
    let options = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    let db = open(&fs, &options);
    let [main, side] = families(&db).try_into().unwrap_or_else(|_| panic!("two"));
    for _ in 0..2 {
        put(&db, &main, "a");
        db.flush_cf(&main).unwrap();
    }
    let (table, _) = fs
        .inner
        .files()
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|extension| extension == "sst"))
        .unwrap();
    fs.inner.flip_byte(&table, 3, 0xFF);
    // The compaction fails, and says so in LOG.
    let waits = fs.gate.close(Call::Append, "LOG");
    let compacting = {
        let (db, main) = (db.clone(), main.clone());
        std::thread::spawn(move || {
            db.compact_range_cf_with(&main, None, None, &BottommostLevelCompaction::Force.into()).unwrap_err()
        })
    };
    waits.recv().unwrap();
    let held = db.clone();
    must_end("a reader or who asks for properties", move || {
        let all = ReadOptions::default();
        assert!(held.get_cf_with(&side, b"a", &all).unwrap().is_none());
        assert!(held.property_cf(&main, "rocksdb.num-files-at-level0").is_some());
        drop(held.background_error());
        drop(held.live_files());
    });
    fs.gate.open();
    assert_eq!(compacting.join().unwrap().kind(), ErrorKind::Corruption);
    assert_eq!(db.background_error().unwrap().kind(), ErrorKind::Corruption);
}
