//! The targets on their corpus, and proofs that they reach what they are meant to reach.

use super::*;
use crate::assemble::{Assembly, small_block};
use std::path::{Path, PathBuf};

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(tree().join("fixtures").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_target_has_a_corpus_and_passes_on_it() {
    for target in TARGETS {
        let dir = tree().join("fuzz/corpus").join(target.name);
        let files = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let inputs: Vec<Vec<u8>> = files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
        assert!(!inputs.is_empty(), "{}", target.name);
        inputs.iter().for_each(|input| target.run(input));
    }
}

#[test]
fn every_corpus_has_a_target() {
    // `cargo xtask fuzz --guided` takes the names of targets from there.
    for entry in std::fs::read_dir(tree().join("fuzz/corpus")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(TARGETS.iter().any(|target| name == target.name), "{}", name.display());
    }
}

#[test]
fn inputs_are_the_corpus_and_fixtures_that_it_lacks() {
    let (table, coding) = (target("table"), target("coding"));
    let inputs = seeds::inputs(table, &tree()).unwrap();
    let whole = seeds::whole_fixtures(table, &tree()).unwrap();
    let intact = fixture("11.8.1-fv2-bloom10/000009.sst");
    assert!(whole.contains(&intact) && inputs.ends_with(&whole) && inputs.len() > whole.len());
    assert!(seeds::whole_fixtures(coding, &tree()).unwrap().is_empty());
}

#[test]
fn repairs_leave_intact_files_as_they_are() {
    for (repair, name) in [
        (repair::log as fn(&mut [u8]), "11.8.1-wal-plain-fragmented/000004.log"),
        (repair::log, "11.8.1-basic/MANIFEST-000005"),
        (repair::blob, "11.8.1-blob/000010.blob"),
        (repair::table, "11.8.1-fv2-bloom10/000009.sst"),
        (repair::table, "11.8.1-fv7-lz4/000009.sst"),
        (repair::table, "11.8.1-partitioned/000009.sst"),
        (repair::table, "11.8.1-fv5-snappy-xxhash64/000009.sst"),
    ] {
        let intact = fixture(name);
        let mut repaired = intact.clone();
        repair(&mut repaired);
        assert!(repaired == intact, "{name}");
    }
}

#[test]
fn repairs_bring_changed_data_blocks_to_the_reader() {
    for name in ["11.8.1-fv2-bloom10", "11.8.1-fv7-bloom10", "11.8.1-partitioned"] {
        let intact = fixture(&format!("{name}/000009.sst"));
        let mut changed = intact.clone();
        let at = changed.windows(7).position(|bytes| bytes == b"value-1").unwrap();
        changed[at] = b'V';
        let broken = changed.clone();
        repair::table(&mut changed);
        assert!(changed != broken, "{name}: the trailer of the changed block");
        assert!(changed != intact, "{name}");
    }
}

#[test]
fn an_assembled_table_is_read() {
    let table = Assembly::new(&small_block(), 0).finish();
    let rows = checks::rows(&table).expect("it opens");
    assert_eq!(rows.iter().map(|row| &row.1[..]).collect::<Vec<_>>(), [&b"apple"[..], b"banana", b"cherry"]);
}
