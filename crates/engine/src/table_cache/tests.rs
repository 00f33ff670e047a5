//! The table cache, without a database.

use super::*;
use crate::testing::parts::{DIR, Parts, plain_options};
use outcrop_base::{CfId, ErrorKind};
use outcrop_env::faulty::EMFILE;

/// `count` tables in L0, all closed.
fn tables(max_open_files: i32, count: usize) -> (Parts, TableCache, Vec<Arc<TableFile>>) {
    let parts = Parts::new();
    for i in 0..count {
        parts.put(&format!("{i:03}"), "v");
        parts.flush();
    }
    let options = DbOptions { max_open_files, ..DbOptions::default() };
    let cache = TableCache::new(parts.ctx.env.fs.clone(), Path::new(DIR), &options);
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    // As a MANIFEST gives them: nothing is open.
    let files = version.levels[0].files.iter().map(|file| {
        let mut closed =
            TableFile::new(file.number, file.size, file.smallest.to_vec(), file.largest.to_vec());
        (closed.smallest_seq, closed.largest_seq) = (file.smallest_seq, file.largest_seq);
        Arc::new(closed)
    });
    let files = files.collect();
    (parts, cache, files)
}

#[test]
fn without_a_limit_a_table_is_opened_once_and_stays() {
    let (parts, cache, files) = tables(-1, 1);
    let cf = parts.cf(CfId::DEFAULT);
    assert!(files[0].runtime.table.get().is_none());
    let first = Arc::clone(&cache.open(&cf, &files[0]).unwrap());
    assert!(
        matches!(cache.open(&cf, &files[0]).unwrap(), TableRef::Held(table) if Arc::ptr_eq(table, &first))
    );
    parts.faults().fail_opens(1, EMFILE);
    cache.open(&cf, &files[0]).unwrap();
    assert_eq!(parts.faults().opens_to_fail(), 1, "the file was not opened again");
}

#[test]
fn with_a_limit_the_tables_used_last_stay_open() {
    // One table for each of 16 shards, which take numbers by turns.
    let (parts, cache, files) = tables(0, 20);
    let cf = parts.cf(CfId::DEFAULT);
    let opened = |file: &Arc<TableFile>| Arc::clone(&cache.open(&cf, file).unwrap());
    let first = opened(&files[0]);
    assert!(Arc::ptr_eq(&first, &opened(&files[0])), "found again");
    assert!(files[0].runtime.table.get().is_none(), "its metadata does not hold it");
    let same_shard = files.iter().skip(1).find(|file| file.number.0 % 16 == files[0].number.0 % 16);
    let Some(other) = same_shard else { panic!("of 20 tables two are in one shard") };
    opened(other);
    assert!(!Arc::ptr_eq(&first, &opened(&files[0])), "it was closed for the other");
}

#[test]
fn a_table_that_is_removed_is_closed() {
    let (parts, cache, files) = tables(1000, 1);
    let cf = parts.cf(CfId::DEFAULT);
    let first = Arc::downgrade(&cache.open(&cf, &files[0]).unwrap());
    assert!(first.upgrade().is_some(), "kept open");
    cache.remove(files[0].number);
    assert!(first.upgrade().is_none());
    cache.remove(files[0].number);
}

#[test]
fn a_file_of_another_size_than_the_manifest_says_is_corruption_and_names_it() {
    let (parts, cache, files) = tables(-1, 1);
    let file = &files[0];
    let wrong = TableFile::new(file.number, file.size + 1, file.smallest.to_vec(), file.largest.to_vec());
    let error = cache.open(&parts.cf(CfId::DEFAULT), &wrong).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&file.path(cache.dir()).display().to_string()), "{error}");
}

#[test]
fn a_file_that_cannot_be_opened_now_can_be_later() {
    let (parts, cache, files) = tables(-1, 1);
    parts.faults().fail_opens(1, EMFILE);
    assert_eq!(cache.open(&parts.cf(CfId::DEFAULT), &files[0]).err().unwrap().kind(), ErrorKind::IoError);
    cache.open(&parts.cf(CfId::DEFAULT), &files[0]).unwrap();
}

#[test]
fn a_missing_file_is_an_error_that_says_so() {
    let (parts, cache, files) = tables(-1, 1);
    parts.ctx.env.fs.remove_file(&files[0].path(cache.dir())).unwrap();
    assert!(cache.open(&parts.cf(CfId::DEFAULT), &files[0]).err().unwrap().is_missing_file());
}

#[test]
fn range_tombstones_outlive_the_open_table() {
    let (parts, cache, _) = tables(0, 1);
    parts.write(|batch| batch.delete_range_id(CfId::DEFAULT, b"a", b"c")).unwrap();
    parts.flush();
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    let newest = &version.levels[0].files[0];
    let found = cache.range_tombstones(&parts.cf(CfId::DEFAULT), newest).unwrap().unwrap();
    assert_eq!(found.iter().count(), 1);
    let oldest = &version.levels[0].files[1];
    assert!(cache.range_tombstones(&parts.cf(CfId::DEFAULT), oldest).unwrap().is_none());
}

#[test]
fn reading_a_table_back_gives_each_entry_and_finds_damage() {
    let (parts, cache, files) = tables(-1, 1);
    let cf = parts.cf(CfId::DEFAULT);
    let table = cache.open(&cf, &files[0]).unwrap();
    let mut count = 0;
    read_back(&table, |_, _| count += 1).unwrap();
    assert_eq!(count, 1);
    warm(&table).unwrap();
    parts.fs.memory().flip_byte(&files[0].path(cache.dir()), 3, 1);
    assert_eq!(read_back(&table, |_, _| ()).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_blob_file_is_opened_once() {
    let options =
        outcrop_options::ColumnFamilyOptions { enable_blob_files: true, min_blob_size: 1, ..plain_options() };
    let parts = Parts::of(options);
    parts.put("a", "value");
    parts.flush();
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    let blob = &version.blob_files.values().next().unwrap().file;
    let cf = parts.cf(CfId::DEFAULT);
    let first = Arc::clone(parts.ctx.tables.open_blob_file(&cf, blob).unwrap());
    parts.faults().fail_opens(1, EMFILE);
    assert!(Arc::ptr_eq(&first, parts.ctx.tables.open_blob_file(&cf, blob).unwrap()));
}

#[test]
fn tiers_say_which_indexes_stay_pinned() {
    let holds = |tiers: &str, pin_l0: bool, from_flush: bool| {
        let mut options = outcrop_options::BlockBasedTableOptions {
            pin_l0_filter_and_index_blocks_in_cache: pin_l0,
            ..Default::default()
        };
        let rows = outcrop_options::kept::TABLE_KEPT;
        assert!(options.kept.set(rows, "metadata_cache_options", tiers).unwrap());
        super::holds_blocks(&options, from_flush)
    };
    for from_flush in [false, true] {
        assert_eq!(holds("{unpartitioned_pinning=kFallback;}", true, from_flush), from_flush);
        assert!(!holds("{partition_pinning=kFallback;}", false, from_flush));
        assert!(holds("{unpartitioned_pinning=kAll;}", false, from_flush));
        assert!(holds("{partition_pinning=kAll;}", false, from_flush));
        assert_eq!(holds("{unpartitioned_pinning=kFlushedAndSimilar;}", false, from_flush), from_flush);
        assert!(!holds("{unpartitioned_pinning=kNone;partition_pinning=kNone;}", true, from_flush));
    }
}
