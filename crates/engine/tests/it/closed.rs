//! A database that was closed while its handle lives: the directory may be another's, and is left alone.

use crate::harness::creating;
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use outcrop_options::kept::DB_KEPT;
use std::path::Path;
use std::sync::Arc;

/// Calls that would change the directory, each with the error's kind or none.
fn change_everything(db: &Db, other: &ColumnFamilyHandle) -> Vec<(&'static str, Option<ErrorKind>)> {
    let cf = db.default_column_family();
    let kind = |result: Result<()>| result.err().map(|error| error.kind());
    vec![
        ("put", kind(db.put("k", "2"))),
        ("flush", kind(db.flush())),
        ("compact_range", kind(db.compact_range(None, None))),
        ("delete_files_in_ranges", kind(db.delete_files_in_ranges(&[(None, None)], RangeEnd::Inclusive))),
        ("set_options", kind(db.set_options_cf(cf, &[("write_buffer_size", "1000000")]))),
        ("set_db_options", kind(db.set_db_options(&[("max_background_jobs", "3")]))),
        ("create_column_family", kind(db.create_column_family("new").map(drop))),
        ("drop_column_family", kind(db.drop_column_family(other))),
        ("create_checkpoint", kind(db.create_checkpoint("/copy"))),
        ("ingest", kind(db.ingest_external_files(&["/files/out.sst"]))),
        ("sync_wal", kind(db.sync_wal())),
        ("flush_wal", kind(db.flush_wal())),
        ("resume", kind(db.resume())),
    ]
}

/// Names and sizes of all files but LOG.
fn files(env: &Env) -> Vec<(String, u64)> {
    let mut names = env.fs.list("/db".as_ref()).unwrap();
    names.retain(|name| !name.starts_with("LOG"));
    names.sort();
    let size = |name: &String| env.fs.file_size(&Path::new("/db").join(name)).unwrap();
    names.into_iter().map(|name| (name.clone(), size(&name))).collect()
}

#[test]
fn a_closed_handle_changes_nothing_in_the_directory() {
    let env = Env::memory();
    let open =
        || Db::builder("/db").options(creating()).env(env.clone()).create_missing_column_families(true);
    let family = || ColumnFamilyDescriptor::new("other");
    env.fs.create_dir_all("/files".as_ref()).unwrap();
    let mut writer = SstFileWriter::create("/files/out.sst", &env, &family()).unwrap();
    writer.put(b"z", b"1").unwrap();
    writer.finish().unwrap();
    for unflushed in [false, true] {
        let first = open().column_family(family()).open().unwrap();
        let other = first.column_family("other").unwrap();
        first.put_cf(&other, "k", "1").unwrap();
        for value in ["0", "1"] {
            first.put("k", value).unwrap();
            first.flush().unwrap();
        }
        if unflushed {
            first.put("u", "1").unwrap();
        }
        let close = WaitForCompactOptions { close_db: true, ..WaitForCompactOptions::default() };
        first.wait_for_compact(&close).unwrap();
        let second = open().column_family(family()).open().unwrap();
        second.put("k", "of the second").unwrap();
        let before = files(&env);
        for (call, error) in change_everything(&first, &other) {
            assert_eq!(error, Some(ErrorKind::ShutdownInProgress), "{call}");
        }
        first.disable_file_deletions();
        first.enable_file_deletions();
        drop((other, first));
        assert_eq!(files(&env), before);
        second.flush().unwrap();
        drop(second);
        let third = open().column_family(family()).open().unwrap();
        assert_eq!(third.get("k").unwrap().as_deref(), Some(&b"of the second"[..]));
        assert_eq!(third.get("u").unwrap().is_some(), unflushed);
    }
}

#[test]
fn a_manifest_that_was_damaged_is_written_anew_at_the_end_if_options_say_so() {
    for verifies in [true, false] {
        let fs = MemoryFs::new();
        let open = |verifies: bool| {
            let mut options = creating();
            options.kept.set(DB_KEPT, "verify_manifest_content_on_close", &verifies.to_string()).unwrap();
            Db::builder("/db").env(Env { fs: Arc::new(fs.clone()), ..Env::memory() }).options(options).open()
        };
        let db = open(verifies).unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        let names = fs.list(Path::new("/db")).unwrap();
        let manifest = names.into_iter().find(|name| name.starts_with("MANIFEST")).expect("there is one");
        let path = Path::new("/db").join(manifest);
        let mut bytes = fs.read_all(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let mut writer = fs.create(&path, OpenWrite::default()).unwrap();
        writer.append(&bytes).unwrap();
        writer.close().unwrap();
        db.close().unwrap();
        match open(false) {
            Ok(db) => assert_eq!((verifies, db.get("a").unwrap().as_deref()), (true, Some(&b"1"[..]))),
            Err(error) => assert_eq!((verifies, error.kind()), (false, ErrorKind::Corruption)),
        }
    }
}
