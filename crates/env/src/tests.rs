//! The same operations on the real and the in-memory file system give the same answers.

use crate::file_system::{DirectIo, FileSystem, OpenRead, OpenWrite, WriteFile};
use crate::memory::MemoryFs;
use crate::posix::PosixFs;
use crate::random::{Random, SeededRandom};
use outcrop_base::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory removed with its contents when dropped.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        let path = std::env::temp_dir().join(format!("outcrop-env-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Appends random pieces to a file, syncing now and then, and checks what can be read back.
fn write_and_read_back(fs: &dyn FileSystem, dir: &Path, options: OpenWrite, seed: u64) {
    let io = options.io;
    let path = dir.join(format!("file-{seed}"));
    let file = fs.create(&path, OpenWrite { bytes_per_sync: 1 << 16, ..options }).unwrap();
    append_and_read_back(fs, file, options, seed);
    if options.ahead.is_some() {
        let reused = dir.join(format!("reused-{seed}"));
        let file = fs.reuse(&path, &reused, options).unwrap();
        append_and_read_back(fs, file, options, seed + 1000);
        fs.rename(&reused, &path).unwrap();
    }
    let reader = fs.open_read(&path, OpenRead { io, ..OpenRead::default() }).unwrap();
    let mut past = [0; 10];
    let short = reader.read_exact_at(reader.size() - 5, &mut past).unwrap_err();
    assert_eq!(short.kind(), ErrorKind::Corruption);
    assert!(short.to_string().contains("truncated"), "{short}");
}

fn append_and_read_back(fs: &dyn FileSystem, mut file: Box<dyn WriteFile>, options: OpenWrite, seed: u64) {
    let random = SeededRandom::new(seed);
    let path = file.path().to_path_buf();
    let io = options.io;
    let mut expected = Vec::new();
    for _ in 0..150 {
        // Mostly short, sometimes longer than the space that is made ahead at a time.
        let most = [10, 500, 20_000, 200_000][(random.next_u64() % 16).saturating_sub(12) as usize];
        let len = (random.next_u64() % most) as usize;
        let piece: Vec<u8> = (0..len).map(|i| (i as u64 ^ random.next_u64()) as u8).collect();
        let mark = &[0xEE; 11][..(random.next_u64() % 12) as usize];
        file.append_marked(&piece, mark).unwrap();
        expected.extend_from_slice(&piece);
        assert_eq!(file.len(), expected.len() as u64);
        if options.ahead.is_some() {
            let reader = fs.open_read(&path, OpenRead::default()).unwrap();
            let mut back = vec![0; len + mark.len()];
            reader.read_exact_at((expected.len() - len) as u64, &mut back).unwrap();
            assert_eq!(back, [&piece, mark].concat(), "unsynced, seed {seed}");
        }
        if random.next_u64().is_multiple_of(8) {
            file.sync().unwrap();
            let reader = fs.open_read(&path, OpenRead::default()).unwrap();
            let mut back = vec![0; expected.len()];
            reader.read_exact_at(0, &mut back).unwrap();
            assert_eq!(back, expected, "after sync, seed {seed}");
        }
    }
    file.sync().unwrap();
    file.close().unwrap();
    assert_eq!(fs.read_all(&path).unwrap(), expected, "seed {seed}");
    assert_eq!(fs.file_size(&path).unwrap(), expected.len() as u64);
    let reader = fs.open_read(&path, OpenRead { io, ..OpenRead::default() }).unwrap();
    for _ in 0..50 {
        let offset = random.next_u64() % (expected.len() as u64 + 100);
        let mut buf = vec![0; (random.next_u64() % 9000) as usize];
        let got = reader.read_at(offset, &mut buf).unwrap();
        let start = (offset as usize).min(expected.len());
        let end = (start + buf.len()).min(expected.len());
        assert_eq!(&buf[..got], &expected[start..end], "offset {offset}, seed {seed}");
    }
}

#[test]
fn files_read_back_what_was_appended() {
    let dir = TempDir::new("files");
    let memory = MemoryFs::new();
    memory.create_dir_all(Path::new("/m")).unwrap();
    let kinds = [(0, None), (4096, None), (1 << 20, None), (0, Some(5)), (0, Some(9))];
    for (seed, (buffer_size, ahead)) in (1..).zip(kinds) {
        let options = OpenWrite { buffer_size, ahead, ..OpenWrite::default() };
        write_and_read_back(&PosixFs, &dir.0, options, seed);
        write_and_read_back(&memory, Path::new("/m"), options, seed);
    }
}

/// A file that is written past the page cache; `None`: the file system of the tests has no such files.
fn create_direct(path: &Path) -> Option<Box<dyn WriteFile>> {
    let created = PosixFs.create(path, OpenWrite { io: DirectIo::Direct, ..OpenWrite::default() });
    created
        .inspect_err(|error| {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            eprintln!("skipped: {error}");
        })
        .ok()
}

#[test]
fn direct_files_read_back_what_was_appended() {
    let dir = TempDir::new("direct");
    if create_direct(&dir.0.join("probe")).is_none() {
        return;
    }
    for seed in 10..14 {
        let options = OpenWrite { io: DirectIo::Direct, ..OpenWrite::default() };
        write_and_read_back(&PosixFs, &dir.0, options, seed);
    }
}

/// A loss of power may undo a cut that comes after the sync, and may keep the padding of a block that is written again after it.
#[test]
fn a_synced_direct_file_has_its_length_and_closing_leaves_it() {
    let dir = TempDir::new("direct_len");
    let path = dir.0.join("file");
    let Some(mut file) = create_direct(&path) else { return };
    let mut expected = Vec::new();
    for (number, len) in [1525, 1, 4096 - 1526, 4096, 0, 100_000].into_iter().enumerate() {
        expected.resize(expected.len() + len, number as u8);
        file.append(&expected[expected.len() - len..]).unwrap();
        if number % 2 == 0 { file.sync() } else { file.sync_all() }.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), expected, "after {number}");
    }
    // Another's change shows that nothing is written after it.
    expected[0] ^= 1;
    let last = expected.len() - 1;
    expected[last] ^= 1;
    std::fs::write(&path, &expected).unwrap();
    file.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn directories_and_names_behave_alike() {
    let dir = TempDir::new("names");
    let memory = MemoryFs::new();
    let systems: [(&dyn FileSystem, PathBuf); 2] =
        [(&PosixFs, dir.0.clone()), (&memory, PathBuf::from("/names"))];
    for (fs, root) in systems {
        let sub = root.join("a/b");
        fs.create_dir_all(&sub).unwrap();
        fs.create_dir_all(&sub).unwrap();
        fs.replace(&sub.join("CURRENT"), &sub.join("1.dbtmp"), b"one").unwrap();
        fs.replace(&sub.join("CURRENT"), &sub.join("2.dbtmp"), b"two").unwrap();
        assert_eq!(fs.read_all(&sub.join("CURRENT")).unwrap(), b"two");
        fs.hard_link(&sub.join("CURRENT"), &sub.join("link")).unwrap();
        fs.remove_file(&sub.join("CURRENT")).unwrap();
        assert_eq!(fs.read_all(&sub.join("link")).unwrap(), b"two");
        assert_eq!(fs.list(&sub).unwrap(), ["link"]);
        assert!(fs.open_read(&sub.join("CURRENT"), OpenRead::default()).err().unwrap().is_missing_file());
        assert!(fs.create(&root.join("missing/file"), OpenWrite::default()).err().unwrap().is_missing_file());
        assert!(fs.remove_dir(&sub).is_err());
        fs.remove_file(&sub.join("link")).unwrap();
        fs.remove_dir(&sub).unwrap();
        assert!(!fs.exists(&sub).unwrap());
    }
}

/// Runs `work` in a forked child; true if it ends there as it should.
#[cfg(not(miri))]
fn succeeds_forked(work: impl FnOnce()) -> bool {
    // SAFETY: the child runs `work` alone, on locks that only this test uses, and leaves without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(outcome.is_err())) };
    }
    let mut status = -1;
    // SAFETY: the child just made, and a status to write to.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    waited == child && status == 0
}

/// Set in a process that runs one test only.
#[cfg(not(miri))]
const ALONE: &str = "OUTCROP_ENV_ALONE";

/// True in a process that runs the test `name` only; otherwise runs it in one, and false: a child that is forked while another
/// thread allocates finds the allocator locked.
#[cfg(not(miri))]
fn is_alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1"])
        .env(ALONE, "1")
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
    false
}

#[cfg(not(miri))]
#[test]
fn a_forked_child_reads_with_threads_of_its_own() {
    use crate::pool::Pool;
    if !is_alone("tests::a_forked_child_reads_with_threads_of_its_own") {
        return;
    }
    let dir = TempDir::new("forked-reads");
    std::fs::write(dir.0.join("file"), [7; 100]).unwrap();
    let file = PosixFs.open_read(&dir.0.join("file"), OpenRead::default()).unwrap();
    let reads = |pool: &Pool| {
        let (bytes, result) = pool.read(file.clone(), 10, vec![0; 50]).recv().unwrap();
        result.unwrap();
        assert_eq!(bytes, [7; 50]);
    };
    let parents = Pool::get().unwrap();
    reads(parents);
    let ended = succeeds_forked(|| {
        let childs = Pool::get().unwrap();
        assert!(!std::sync::Arc::ptr_eq(parents, childs), "whose threads are not here");
        reads(childs);
        let ended = succeeds_forked(|| reads(Pool::get().unwrap()));
        assert!(ended, "the child's child");
    });
    assert!(ended, "the child");
    reads(parents);
}

#[cfg(not(miri))]
#[test]
fn what_a_forked_child_closes_stays_its_parents() {
    use crate::threads::{SystemThreads, Threads};
    if !is_alone("tests::what_a_forked_child_closes_stays_its_parents") {
        return;
    }
    let dir = TempDir::new("forked");
    let lock = PosixFs.lock(&dir.0.join("LOCK")).unwrap();
    let options = OpenWrite { ahead: Some(5), ..OpenWrite::default() };
    let mut file = PosixFs.create(&dir.0.join("log"), options).unwrap();
    file.append(&[1; 100]).unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let waits_soon = waits.clone();
    let task = move || {
        waits_soon.store(true, std::sync::atomic::Ordering::Release);
        let _ = stopped.recv();
    };
    let mut thread = Some(SystemThreads.spawn("parent's", Box::new(task)).unwrap());
    while !waits.load(std::sync::atomic::Ordering::Acquire) {
        std::thread::yield_now();
    }
    let space = std::fs::metadata(dir.0.join("log")).unwrap().len();
    let mut held = Some(lock);
    let ended = succeeds_forked(|| {
        thread.take().unwrap().join().unwrap();
        file.close().unwrap();
        drop(held.take());
    });
    assert!(ended, "the child");
    assert_eq!(std::fs::metadata(dir.0.join("log")).unwrap().len(), space, "the file is not cut");
    let other = std::fs::File::options().write(true).open(dir.0.join("LOCK")).unwrap();
    assert!(crate::sys::try_process_lock(&other).is_err(), "the lock is held");
    file.append(&[2; 100]).unwrap();
    file.close().unwrap();
    drop(stop);
    thread.take().unwrap().join().unwrap();
    assert_eq!(std::fs::read(dir.0.join("log")).unwrap(), [[1; 100], [2; 100]].concat());
}

/// Set in a process that tries to take a lock that another holds: the directory it is in.
const RIVAL: &str = "OUTCROP_ENV_LOCK_RIVAL";

/// Takes the lock if it is free, and while it holds it a file that nobody else may hold then. True if it was free.
fn hold_once(dir: &Path) -> bool {
    let Ok(lock) = PosixFs.lock(&dir.join("LOCK")) else { return false };
    let holder = dir.join("holder");
    if let Err(error) = std::fs::File::create_new(&holder) {
        std::fs::write(dir.join("stop"), b"").unwrap();
        panic!("two hold the lock: {error}");
    }
    std::thread::yield_now();
    std::fs::remove_file(&holder).unwrap();
    drop(lock);
    true
}

#[test]
fn child_that_wants_the_lock() {
    let Some(dir) = std::env::var_os(RIVAL).map(PathBuf::from) else { return };
    while !dir.join("stop").exists() {
        if hold_once(&dir) {
            std::fs::write(dir.join("held-by-child"), b"").unwrap();
        }
    }
}

#[cfg(not(miri))]
#[test]
fn one_holds_a_lock_that_threads_and_processes_want() {
    let dir = TempDir::new("rivals");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::child_that_wants_the_lock", "--test-threads=1"])
        .env(RIVAL, &dir.0)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let threads = std::thread::scope(|scope| {
        let take_turns = || {
            let mut held = 0;
            let enough = |held| held >= 500 && dir.0.join("held-by-child").exists();
            while !enough(held) && !dir.0.join("stop").exists() {
                held += usize::from(hold_once(&dir.0));
            }
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(take_turns)).collect();
        threads.into_iter().map(|thread| thread.join().is_ok()).collect::<Vec<_>>()
    });
    std::fs::write(dir.0.join("stop"), b"").unwrap();
    assert!(child.wait().unwrap().success() && threads == [true; 3], "the lock was held twice: {threads:?}");
}

/// A backup that copies the directory opens and closes the lock file too.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_stays_when_its_file_is_opened_and_closed_elsewhere_in_the_process() {
    let dir = TempDir::new("read-lock");
    let path = dir.0.join("LOCK");
    let _held = PosixFs.lock(&path).unwrap();
    drop(std::fs::read(&path).unwrap());
    let other = std::fs::File::options().write(true).open(&path).unwrap();
    // As RocksDB takes it: a lock of the process, which a lock of the open file excludes.
    let refused = crate::sys::try_process_lock(&other).unwrap_err();
    assert!(matches!(refused.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)), "{refused}");
}

#[test]
fn a_lock_is_held_under_every_name_of_its_file() {
    let dir = TempDir::new("lock-names");
    let path = dir.0.join("LOCK");
    let held = PosixFs.lock(&path).unwrap();
    std::fs::hard_link(&path, dir.0.join("LOCK2")).unwrap();
    assert!(PosixFs.lock(&dir.0.join("LOCK2")).is_err());
    drop(held);
    PosixFs.lock(&dir.0.join("LOCK2")).unwrap();
}

#[test]
fn a_lock_held_by_this_process_is_refused_with_its_path() {
    let dir = TempDir::new("lock");
    let path = dir.0.join("LOCK");
    let held = PosixFs.lock(&path).unwrap();
    let error = PosixFs.lock(&path).err().unwrap();
    assert!(error.to_string().contains("LOCK") && error.to_string().contains("this process"), "{error}");
    drop(held);
    PosixFs.lock(&path).unwrap();
}

/// The mappings of this process that are of `path`, deleted or not.
#[cfg(target_os = "linux")]
fn mappings_of(path: &Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(path.to_str().unwrap())).count()
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_mapped_file_reads_as_any_other() {
    use crate::file_system::Access;
    let dir = TempDir::new("mapped");
    let random = SeededRandom::new(11);
    for len in [0usize, 1, 4095, 4096, 4097, 100_000] {
        for access in [Access::Random, Access::Sequential] {
            let path = dir.0.join(format!("file-{len}"));
            std::fs::write(&path, (0..len).map(|at| (at * 31 + at / 251) as u8).collect::<Vec<_>>()).unwrap();
            let plain = PosixFs.open_read(&path, OpenRead { access, ..OpenRead::default() }).unwrap();
            let mapped =
                PosixFs.open_read(&path, OpenRead { access, mapped: true, ..OpenRead::default() }).unwrap();
            // There is nothing to map of an empty file.
            assert_eq!((mappings_of(&path), mapped.descriptor().is_none()), (usize::from(len > 0), len > 0));
            assert_eq!((mapped.size(), mapped.path()), (len as u64, &*path));
            // A file that was removed stays readable.
            std::fs::remove_file(&path).unwrap();
            for _ in 0..200 {
                let offset = random.next_u64() % (len as u64 + 10);
                let wanted = (random.next_u64() % 9000) as usize;
                mapped.prefetch(offset, wanted);
                let (mut a, mut b) = (vec![0; wanted], vec![0; wanted]);
                let read = mapped.read_at(offset, &mut a).unwrap();
                assert_eq!((read, &a), (plain.read_at(offset, &mut b).unwrap(), &b));
                let exact = mapped.read_exact_at(offset, &mut a).map_err(|error| error.to_string());
                assert_eq!(exact, plain.read_exact_at(offset, &mut b).map_err(|error| error.to_string()));
            }
            if len > 0 {
                assert_eq!(mapped.read_at(u64::MAX, &mut [0; 9]).unwrap(), 0);
                mapped.prefetch(u64::MAX, usize::MAX);
            }
            drop(mapped);
            assert_eq!(mappings_of(&path), 0);
        }
    }
}
