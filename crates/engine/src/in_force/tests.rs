//! Runs the drawings of `testdata/options`: options as given, the corrections, the refusals.
//!
//! ```text
//! open name=value;name=value     of the database and of its one column family
//! ```
//! Options that are corrected whatever is given are left out.

use super::*;
use crate::testing::cases;
use outcrop_options::ColumnFamilyOptions;

fn opened(text: &str) -> Result<String> {
    let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
    for pair in text.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
        outcrop_options::file::set_from_string(&mut db, &mut cf, pair)?;
    }
    let descriptor = ColumnFamilyDescriptor::default_with(cf, Default::default());
    let found = in_force(Path::new("/db"), db, vec![descriptor])?;
    let usual = usual();
    let own: Vec<String> =
        found.corrections.into_iter().filter(|correction| !usual.contains(correction)).collect();
    Ok(if own.is_empty() { "as given".into() } else { own.join("\n") })
}

/// The options that are filled in where nothing is given: 0 and other signs for "choose".
fn usual() -> Vec<String> {
    let descriptor = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), Default::default());
    in_force(Path::new("/db"), DbOptions::default(), vec![descriptor]).unwrap().corrections
}

fn answer(case: &cases::Case<'_>) -> String {
    match case.command {
        "open" => opened(case.arguments).unwrap_or_else(|error| format!("refused: {error}")),
        other => panic!("unknown command {other}"),
    }
}

#[test]
fn options_of_a_column_family() {
    cases::run("options/column_family", answer);
}

#[test]
fn options_of_the_database() {
    cases::run("options/database", answer);
}

fn named(name: &str) -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor { name: name.into(), ..ColumnFamilyDescriptor::default() }
}

fn names(given: &[&str]) -> Result<Vec<String>> {
    let given = given.iter().map(|name| named(name)).collect();
    let found = in_force(Path::new("/db"), DbOptions::default(), given)?;
    Ok(found.descriptors.into_iter().map(|descriptor| descriptor.name).collect())
}

#[test]
fn the_default_column_family_is_added_and_comes_first() {
    assert_eq!(names(&[]).unwrap(), ["default"]);
    assert_eq!(names(&["b", "a"]).unwrap(), ["default", "b", "a"]);
    assert_eq!(names(&["b", "default"]).unwrap(), ["default", "b"]);
}

#[test]
fn a_column_family_that_is_named_twice_is_refused() {
    assert!(names(&["a", "a"]).unwrap_err().to_string().contains("column family a is named twice"));
}

#[test]
fn a_block_cache_is_made_unless_there_is_one_or_none_is_wanted() {
    let mut own = named("a");
    add_default_cache(&mut own);
    let capacity =
        |descriptor: &ColumnFamilyDescriptor| descriptor.parts.block_cache.as_ref().map(|c| c.capacity());
    assert_eq!(capacity(&own), Some(32 << 20));
    let mut given = named("a");
    given.parts.block_cache = Some(Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 }));
    add_default_cache(&mut given);
    assert_eq!(capacity(&given), Some(1 << 20));
    given.options.table.no_block_cache = true;
    add_default_cache(&mut given);
    assert_eq!(capacity(&given), None);
    let mut sized = named("a");
    sized.options.table.block_cache_bytes = Some(3 << 20);
    add_default_cache(&mut sized);
    assert_eq!(capacity(&sized), Some(3 << 20));
}

#[test]
fn names_of_objects_are_looked_up_and_objects_are_named() {
    let mut by_name = named("a");
    by_name.options.merge_operator = Some("stringappend".into());
    resolve_objects(&mut by_name).unwrap();
    assert_eq!(by_name.options.merge_operator.as_deref(), Some("StringAppendOperator"));
    assert!(by_name.parts.merge_operator.is_some());
    assert_eq!(by_name.options.comparator.as_deref(), Some("leveldb.BytewiseComparator"));
    let mut unknown = named("a");
    unknown.options.merge_operator = Some("mine".into());
    assert!(resolve_objects(&mut unknown).unwrap_err().to_string().contains("give the object"));
    let mut unknown = named("a");
    unknown.options.comparator = Some("mine".into());
    assert!(resolve_objects(&mut unknown).unwrap_err().to_string().contains("give the object"));
}

#[test]
fn a_partitioner_is_made_of_its_text_and_printed_if_it_is_given() {
    let rows = outcrop_options::kept::CF_KEPT;
    let mut by_text = named("a");
    let text = "{id=SstPartitionerFixedPrefixFactory;length=2;}";
    assert!(by_text.options.kept.set(rows, "sst_partitioner_factory", text).unwrap());
    resolve_objects(&mut by_text).unwrap();
    let context = crate::partitioner::PartitionerContext {
        is_full_compaction: false,
        is_manual_compaction: false,
        output_level: 1,
    };
    let factory = by_text.parts.sst_partitioner.expect("it is asked for");
    let mut partitioner = factory.create(&context).unwrap();
    assert!(partitioner.must_end(b"ab1", b"ac1", 0) && !partitioner.must_end(b"ab1", b"ab2", 0));
    let mut given = named("a");
    given.parts.sst_partitioner = Some(Arc::new(FixedPrefixPartitioner(5)));
    resolve_objects(&mut given).unwrap();
    let printed =
        outcrop_options::file::print(&DbOptions::default(), &[("default".to_string(), given.options)]);
    assert!(printed.contains("sst_partitioner_factory={id=SstPartitionerFixedPrefixFactory;length=5;}"));
    let mut none = named("a");
    resolve_objects(&mut none).unwrap();
    assert!(none.parts.sst_partitioner.is_none());
}
