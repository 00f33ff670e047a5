//! The scrubber: what it reads, what it finds in damaged files, and to whom it tells that.

use crate::harness::{creating, until};
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FAST: ScrubOptions = ScrubOptions { bytes_per_second: 1 << 40, period: Duration::from_secs(100_000) };

/// Damage, and files that could not be read.
#[derive(Default)]
struct Heard(Mutex<Vec<DamageInfo>>, Mutex<Vec<DamageInfo>>);

impl EventListener for Heard {
    fn damage_found(&self, db: &Arc<Db>, damage: &DamageInfo) {
        // It may read: no lock is held.
        let _ = db.live_files();
        self.0.lock().unwrap().push(damage.clone());
    }

    fn unreadable_file_found(&self, db: &Arc<Db>, file: &DamageInfo) {
        let _ = db.live_files();
        self.1.lock().unwrap().push(file.clone());
    }
}

impl Heard {
    fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().unwrap().iter().map(|damage| damage.path.clone()).collect()
    }
}

/// Blob files too, and tables of many blocks.
fn builder(fs: &MemoryFs, heard: &Arc<Heard>) -> DbBuilder {
    let family = ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 500,
        disable_auto_compactions: true,
        ..ColumnFamilyOptions::default()
    };
    Db::builder("/db")
        .env(Env { fs: Arc::new(fs.clone()), ..Env::memory() })
        .options(creating())
        .default_column_family(family)
        .listener(heard.clone())
}

/// Tables with keys of their own, and one blob file each.
fn fill(db: &Db, tables: u32) {
    for table in 0..tables {
        for row in 0..500 {
            db.put(
                format!("{table}-{row:04}"),
                format!("{row}").repeat(if row % 10 == 0 { 300 } else { 30 }),
            )
            .unwrap();
        }
        db.flush().unwrap();
    }
}

/// Waits until every file had its turn.
fn wait(db: &Db, turns: u64) -> ScrubProgress {
    loop {
        let progress = db.scrub_progress();
        if progress.files_verified + progress.damaged_files + progress.failed_files >= turns {
            return progress;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn damage(fs: &MemoryFs, path: &Path, at: usize) {
    let mut bytes = fs.read_all(path).unwrap();
    bytes[at] ^= 4;
    let mut file = fs.create(path, OpenWrite::default()).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
}

#[test]
fn every_file_is_read_and_a_whole_database_has_no_findings() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let limiter = Arc::new(RateLimiter::new(RateLimiterOptions {
        bytes_per_second: 1 << 40,
        mode: RateLimiterMode::All,
        ..RateLimiterOptions::default()
    }));
    let objects = DbObjects { rate_limiter: Some(limiter.clone()), ..DbObjects::default() };
    let db = builder(&fs, &heard).objects(objects).open().unwrap();
    fill(&db, 3);
    assert_eq!(db.scrub_progress(), ScrubProgress::default(), "it is off");
    let before = limiter.bytes_through(IoPriority::Low);
    db.set_scrub(Some(FAST)).unwrap();
    let progress = wait(&db, 6);
    assert_eq!((progress.files_verified, progress.damaged_files, progress.failed_files), (6, 0, 0));
    let data: u64 = db
        .properties_of_tables_cf(db.default_column_family(), None)
        .unwrap()
        .values()
        .map(|table| table.data_size)
        .sum();
    assert!(progress.bytes_verified > data, "{progress:?}, tables alone have {data}");
    assert_eq!(
        limiter.bytes_through(IoPriority::Low) - before,
        progress.bytes_verified,
        "it asked for all it read"
    );
    assert!(heard.paths().is_empty());
    let text = db.metrics();
    assert!(text.contains("\noutcrop_scrubbed_files_total 6\n"), "{text}");
    assert!(text.contains(&format!("\noutcrop_scrubbed_bytes_total {}\n", progress.bytes_verified)));
}

#[test]
fn damage_is_told_with_file_and_range_and_the_rest_is_read() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let db = builder(&fs, &heard).open().unwrap();
    fill(&db, 4);
    let files = db.live_files();
    let table = files.iter().find(|file| file.smallest_key == b"1-0000").unwrap();
    // In its second block; and in the first record of the blob file of another.
    damage(&fs, &Path::new("/db").join(&table.name), 5000);
    let mut blobs: Vec<String> = fs.list(Path::new("/db")).unwrap();
    blobs.retain(|name| name.ends_with(".blob"));
    blobs.sort();
    let blob = Path::new("/db").join(&blobs[2]);
    damage(&fs, &blob, 200);
    db.set_scrub(Some(FAST)).unwrap();
    let progress = wait(&db, 8);
    assert_eq!((progress.files_verified, progress.damaged_files, progress.failed_files), (6, 2, 0));
    let told = heard.0.lock().unwrap().clone();
    let of = |path: &Path| told.iter().find(|damage| damage.path == path).cloned();
    let of_table = of(&Path::new("/db").join(&table.name)).expect("the table is told");
    assert_eq!(of_table.range, Some((b"1-0000".to_vec(), b"1-0499".to_vec())));
    assert_eq!((of_table.level, of_table.number, &*of_table.cf_name), (Some(0), table.number, "default"));
    let text = of_table.error.to_string();
    assert!(of_table.error.kind() == ErrorKind::Corruption && text.contains(&table.name), "{text}");
    let of_blob = of(&blob).expect("the blob file is told");
    assert_eq!((of_blob.level, of_blob.range), (None, None));
    assert!(of_blob.error.to_string().contains(&blobs[2]), "{}", of_blob.error);
    assert_eq!(told.len(), 2);
    let log = String::from_utf8(fs.read_all(Path::new("/db/LOG")).unwrap()).unwrap();
    assert!(log.contains(&format!("scrub: damage in /db/{}", table.name)), "{log}");
    assert!(db.metrics().contains("\noutcrop_scrub_damaged_files_total 2\n"));
    // It stops nothing.
    db.put("2-0000", "x").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("3-0001").unwrap().as_deref(), Some("1".repeat(30).as_bytes()));
}

#[test]
fn a_table_cut_short_and_one_that_is_gone_are_told_apart() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let db = builder(&fs, &heard).open().unwrap();
    fill(&db, 3);
    let names: Vec<PathBuf> = db.live_files().iter().map(|file| Path::new("/db").join(&file.name)).collect();
    let bytes = fs.read_all(&names[0]).unwrap();
    let mut file = fs.create(&names[0], OpenWrite::default()).unwrap();
    file.append(&bytes[..bytes.len() - 1]).unwrap();
    file.close().unwrap();
    fs.remove_file(&names[1]).unwrap();
    db.set_scrub(Some(FAST)).unwrap();
    loop {
        let progress = db.scrub_progress();
        if progress.files_verified == 4 && progress.damaged_files + progress.failed_files == 2 {
            assert_eq!((progress.damaged_files, progress.failed_files), (1, 1));
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(heard.paths(), [names[0].clone()]);
    let text = heard.0.lock().unwrap()[0].error.to_string();
    assert!(text.contains("the MANIFEST says"), "{text}");
    // Told after the figures are.
    until("the file that is gone is told", || !heard.1.lock().unwrap().is_empty());
    let unreadable = heard.1.lock().unwrap();
    assert_eq!(unreadable.iter().map(|file| &file.path).collect::<Vec<_>>(), [&names[1]]);
    assert_ne!(unreadable[0].error.kind(), ErrorKind::Corruption);
}

#[test]
fn it_begins_with_the_opening_and_is_changed_while_it_runs() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let again = ScrubOptions { period: Duration::from_nanos(1), ..FAST };
    let db = builder(&fs, &heard).scrub(again).open().unwrap();
    assert_eq!(db.scrub_options(), Some(again));
    fill(&db, 1);
    // At an empty database it looks again after some seconds; what is set is at once.
    db.set_scrub(Some(again)).unwrap();
    wait(&db, 6);
    db.set_scrub(None).unwrap();
    assert_eq!(db.scrub_options(), None);
    // A step that was under way may end; then none begins.
    let mut last = db.scrub_progress();
    loop {
        db.compact_range(None, None).unwrap();
        let now = db.scrub_progress();
        if now == last {
            break;
        }
        last = now;
    }
    let refused = db.set_scrub(Some(ScrubOptions { bytes_per_second: 0, ..FAST })).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let refused =
        builder(&fs, &heard).scrub(ScrubOptions { bytes_per_second: 0, ..FAST }).open().err().unwrap();
    assert!(refused.to_string().contains("bytes_per_second"), "{refused}");
    db.close().unwrap();
    let read_only = builder(&fs, &heard).open_read_only().unwrap();
    assert_eq!(read_only.set_scrub(Some(FAST)).unwrap_err().kind(), ErrorKind::NotSupported);
}
