//! Point lookups over a view, without a database.

use super::*;
use crate::read::multi_get::multi_get;
use crate::testing::parts::{Parts, plain_options};
use outcrop_base::keys::{internal_key, split};
use outcrop_base::{CfId, ErrorKind};
use outcrop_manifest::{FileNumber, TableMeta, VersionEdit};
use outcrop_options::ColumnFamilyOptions;
use std::sync::Arc;

/// Runs `read` on a view of all there is.
fn viewed<T>(parts: &Parts, read: impl FnOnce(&ReadView<'_>) -> T) -> T {
    let cf = parts.cf(CfId::DEFAULT);
    let sources = cf.superversion.load();
    let (tables, seq) = (&*parts.ctx.tables, parts.versions.visible_seq());
    read(&ReadView {
        tables,
        cf: &cf,
        sources: &sources,
        seq,
        options: crate::read::options::ReadOptions::by_default(),
        counting: outcrop_monitor::Counting::OFF,
        watch: outcrop_monitor::Watch::OFF,
    })
}

#[test]
fn the_newest_source_that_knows_the_key_decides() {
    let parts = Parts::new();
    ["a", "b", "c"].into_iter().for_each(|key| parts.put(key, "table"));
    parts.flush();
    parts.put("b", "sealed");
    parts.seal(&[CfId::DEFAULT]);
    parts.delete("c");
    assert_eq!(parts.get("a"), Some("table".into()));
    assert_eq!(parts.get("b"), Some("sealed".into()));
    assert_eq!(parts.get("c"), None);
    assert_eq!(parts.get("d"), None);
}

#[test]
fn a_view_taken_before_a_write_does_not_see_it() {
    let parts = Parts::new();
    parts.put("a", "1");
    let cf = parts.cf(CfId::DEFAULT);
    let sources = cf.superversion.load_full();
    let before = parts.versions.visible_seq();
    parts.put("a", "2");
    parts.flush();
    let view = ReadView {
        tables: &parts.ctx.tables,
        cf: &cf,
        sources: &sources,
        seq: before,
        options: crate::read::options::ReadOptions::by_default(),
        counting: outcrop_monitor::Counting::OFF,
        watch: outcrop_monitor::Watch::OFF,
    };
    assert_eq!(&*get(&view, b"a").unwrap().unwrap(), b"1");
}

#[test]
fn many_keys_are_found_as_one_by_one() {
    let parts = Parts::new();
    for i in 0..300 {
        parts.put(&format!("{i:03}"), &format!("table {i}"));
    }
    parts.flush();
    for i in (0..300).step_by(7) {
        parts.put(&format!("{i:03}"), &format!("memory {i}"));
    }
    for i in (0..300).step_by(11) {
        parts.delete(&format!("{i:03}"));
    }
    let keys: Vec<String> = (0..320).map(|i| format!("{i:03}")).collect();
    let bytes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let together = viewed(&parts, |view| multi_get(view, &bytes));
    for (key, found) in keys.iter().zip(together) {
        let found = found.unwrap().map(|value| String::from_utf8(value.into_vec()).unwrap());
        assert_eq!(found, parts.get(key), "{key}");
    }
    assert!(viewed(&parts, |view| multi_get(view, &[])).is_empty());
}

#[test]
fn a_range_tombstone_hides_what_is_older_and_nothing_newer() {
    let parts = Parts::new();
    ["a", "b", "c"].into_iter().for_each(|key| parts.put(key, "1"));
    parts.flush();
    parts.write(|batch| batch.delete_range_id(CfId::DEFAULT, b"a", b"c")).unwrap();
    parts.put("b", "2");
    for _ in 0..2 {
        assert_eq!(
            (parts.get("a"), parts.get("b"), parts.get("c")),
            (None, Some("2".into()), Some("1".into()))
        );
        // The same from a table.
        parts.flush();
    }
}

#[test]
fn merge_operands_are_collected_across_sources() {
    let merge_operator = outcrop_base::builtin_merge::by_name("stringappend");
    let objects = crate::column_family::ColumnFamilyParts { merge_operator, ..Default::default() };
    let parts = Parts::with(Default::default(), vec![(plain_options(), objects)]);
    let merge =
        |operand: &str| parts.write(|batch| batch.merge_id(CfId::DEFAULT, b"a", operand.as_bytes())).unwrap();
    parts.put("a", "1");
    parts.flush();
    merge("2");
    parts.flush();
    merge("3");
    parts.seal(&[CfId::DEFAULT]);
    merge("4");
    assert_eq!(parts.get("a"), Some("1,2,3,4".into()));
    parts.delete("a");
    merge("5");
    assert_eq!(parts.get("a"), Some("5".into()));
    let keys: [&[u8]; 2] = [b"a", b"z"];
    let found = viewed(&parts, |view| multi_get(view, &keys));
    assert_eq!(found[0].as_ref().unwrap().as_deref(), Some(&b"5"[..]));
}

#[test]
fn operands_without_an_operator_are_an_error() {
    let parts = Parts::new();
    parts.write(|batch| batch.merge_id(CfId::DEFAULT, b"a", b"1")).unwrap();
    let error = viewed(&parts, |view| get(view, b"a").map(drop)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_plain_value_is_an_entity_of_one_column_and_back() {
    let parts = Parts::new();
    parts.put("p", "plain");
    parts
        .write(|batch| batch.put_entity_id(CfId::DEFAULT, b"e", &[(b"", b"default"), (b"x", b"1")]).unwrap())
        .unwrap();
    parts.flush();
    let columns = |key: &str| {
        let found = viewed(&parts, |view| get_entity(view, key.as_bytes())).unwrap()?;
        Some(found.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect::<Vec<_>>())
    };
    assert_eq!(columns("p"), Some(vec![(b"".to_vec(), b"plain".to_vec())]));
    assert_eq!(columns("e").map(|columns| columns.len()), Some(2));
    assert_eq!(columns("z"), None);
    assert_eq!(parts.get("e"), Some("default".into()));
}

#[test]
fn memory_alone_does_not_tell_of_what_is_in_tables_or_blob_files() {
    let options = ColumnFamilyOptions { enable_blob_files: true, min_blob_size: 1, ..plain_options() };
    let parts = Parts::of(options);
    parts.put("a", "1");
    let told = |in_memory| {
        viewed(&parts, |view| plain_value(view, b"a", in_memory)).unwrap().map(PinnedValue::into_vec)
    };
    assert_eq!(told(true), Some(b"1".to_vec()));
    parts.flush();
    assert_eq!((told(true), told(false)), (None, Some(b"1".to_vec())));
    parts.delete("a");
    assert_eq!((told(true), told(false)), (None, None));
}

#[test]
fn versions_of_a_key_may_go_on_in_the_next_table_of_a_level() {
    // As RocksDB leaves them: one user key in two tables of one level.
    let parts = Parts::new();
    let snapshot = {
        parts.put("k", "old");
        parts.jobs.snapshots.take(0, || parts.versions.visible_seq())
    };
    parts.put("k", "new");
    parts.flush();
    assert_eq!(parts.get_at("k", snapshot.sequence()), Some("old".into()));
    assert_eq!(parts.get("k"), Some("new".into()));
}

/// A key whose versions go on from table to table of level 1, as RocksDB ends tables: "new" stands in the first, a range tombstone
/// over all of them in the last. On level 2 is another table that begins with the key. Gives the numbers of the last two.
fn split_over_tables(parts: &Parts, between: usize) -> (FileNumber, FileNumber) {
    for value in ["below".to_string()].into_iter().chain((0..between).map(|i| i.to_string())) {
        parts.put("k", &value);
        parts.flush();
    }
    parts.put("k", "new");
    parts.flush();
    parts.write(|batch| batch.delete_range_id(CfId::DEFAULT, b"k", b"z")).unwrap();
    parts.flush();
    let tables: Vec<Arc<TableFile>> = {
        let state = parts.versions.state.lock();
        state.column_families[&CfId::DEFAULT].version.levels[0].files.iter().cloned().collect()
    };
    let ([ranges, split_ones @ .., below], mut edit) = (&tables[..], VersionEdit::default()) else {
        unreachable!()
    };
    edit.deleted_files.extend(tables.iter().map(|file| (0, file.number)));
    edit.new_files.extend(split_ones.iter().map(|file| (1, Arc::new(file.meta.clone().into()))));
    // As RocksDB truncates it: behind the last version of the table before.
    let oldest = split(&split_ones.last().unwrap().largest).1.seq();
    let smallest = internal_key(b"k", SeqNum(oldest.0 - 1), ValueType::RangeDeletion).into();
    edit.new_files.push((1, Arc::new(TableMeta { smallest, ..ranges.meta.clone() }.into())));
    edit.new_files.push((2, Arc::new(below.meta.clone().into())));
    parts.versions.log_and_apply(vec![edit], |_| ()).unwrap();
    (ranges.number, below.number)
}

#[test]
fn range_tombstones_of_the_table_where_a_keys_versions_end_are_for_all_of_them() {
    for between in [0, 2] {
        let parts = Parts::new();
        split_over_tables(&parts, between);
        assert_eq!(parts.get("k"), None, "no table is open");
        assert_eq!(parts.get("k"), None, "all are");
        assert_eq!(parts.rows(), "");
    }
}

#[test]
fn a_key_is_not_shown_if_the_table_that_may_have_deleted_it_does_not_open() {
    for between in [0, 2] {
        let parts = Parts::new();
        let (ranges, _) = split_over_tables(&parts, between);
        parts.ctx.env.fs.remove_file(&parts.ctx.path.join(format!("{:06}.sst", ranges.0))).unwrap();
        let found = viewed(&parts, |view| get(view, b"k").map(drop));
        assert!(found.is_err_and(|error| error.is_missing_file()));
        let found = viewed(&parts, |view| multi_get(view, &[b"k"]).remove(0).map(drop));
        assert!(found.is_err_and(|error| error.is_missing_file()));
    }
}

#[test]
fn a_table_of_a_deeper_level_is_not_needed_for_a_key_that_ends_a_table() {
    let parts = Parts::new();
    let (ranges, below) = split_over_tables(&parts, 0);
    let edit = VersionEdit { deleted_files: vec![(1, ranges)], ..VersionEdit::default() };
    parts.versions.log_and_apply(vec![edit], |_| ()).unwrap();
    parts.ctx.env.fs.remove_file(&parts.ctx.path.join(format!("{:06}.sst", below.0))).unwrap();
    assert_eq!(parts.get("k"), Some("new".into()));
}
