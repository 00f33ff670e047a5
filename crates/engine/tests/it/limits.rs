//! Limits on the space and memory of databases: the effect of reaching them.

use crate::harness::creating;
use outcrop::*;
use std::sync::Arc;

#[test]
fn a_compaction_without_room_is_counted_as_canceled() {
    let manager = Arc::new(SstFileManager::default());
    let objects = DbObjects { sst_file_manager: Some(manager.clone()), ..DbObjects::default() };
    let statistics = Arc::new(Statistics::new());
    let db = Db::builder("/db").options(creating()).env(Env::memory()).objects(objects);
    let db = db.statistics(statistics.clone()).open().unwrap();
    for value in ["1", "2"] {
        db.put("a", value).unwrap();
        db.flush().unwrap();
    }
    // Room for what is there, but not for its inputs once more.
    manager.set_max_allowed_space(manager.total_size() + 1);
    let error = db.compact_range(None, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompactionTooLarge);
    assert_eq!(statistics.ticker(Ticker::CompactionCancelled), 1);
    manager.set_max_allowed_space(0);
    db.compact_range(None, None).unwrap();
    assert_eq!(statistics.ticker(Ticker::CompactionCancelled), 1);
}

fn budgeted(budget: &Arc<MemoryBudget>) -> DbBuilder {
    let objects = DbObjects { memory_budget: Some(budget.clone()), ..DbObjects::default() };
    Db::builder("/db").options(creating()).env(Env::memory()).objects(objects)
}

#[test]
fn settings_that_contradict_a_memory_budget_are_refused_by_name() {
    let small = MemoryBudget::new((16 << 20) - 1).err().expect("it is too small");
    assert_eq!(small.kind(), ErrorKind::InvalidArgument);
    assert!(small.to_string().contains("memory_budget"), "{small}");
    let budget = MemoryBudget::new(16 << 20).unwrap();
    let cache = || Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
    let with_table = |change: fn(&mut BlockBasedTableOptions)| {
        let mut options = ColumnFamilyOptions::default();
        change(&mut options.table);
        budgeted(&budget).default_column_family(options)
    };
    let manager = DbObjects {
        memory_budget: Some(budget.clone()),
        write_buffer_manager: Some(Arc::new(WriteBufferManager::new(1 << 20))),
        ..DbObjects::default()
    };
    let write_buffers = DbOptions { db_write_buffer_size: 1 << 20, ..creating() };
    let blob_cache = ColumnFamilyDescriptor::new("default").with_blob_cache(cache());
    for (builder, setting) in [
        (budgeted(&budget).block_cache(cache()), "block_cache"),
        (with_table(|table| table.block_cache_bytes = Some(1 << 20)), "block_cache"),
        (with_table(|table| table.no_block_cache = true), "no_block_cache"),
        (budgeted(&budget).column_family(blob_cache), "blob_cache"),
        (budgeted(&budget).objects(manager), "write_buffer_manager"),
        (budgeted(&budget).options(write_buffers), "db_write_buffer_size"),
    ] {
        let error = builder.open().err().unwrap_or_else(|| panic!("{setting} is accepted"));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(&format!("{setting} ")), "{setting}: {error}");
    }
    let db = budgeted(&budget).open().unwrap();
    let other = ColumnFamilyDescriptor::new("other").with_block_cache(cache());
    let error = db.create_column_family(other).err().expect("it brings a cache");
    assert!(error.to_string().contains("block_cache of column family other"), "{error}");
}

#[test]
fn databases_of_one_memory_budget_share_it_and_give_it_back() {
    let budget = MemoryBudget::new(16 << 20).unwrap();
    let open = |path: &str| {
        let objects = DbObjects { memory_budget: Some(budget.clone()), ..DbObjects::default() };
        Db::builder(path).options(creating()).env(Env::memory()).objects(objects).open().unwrap()
    };
    let (one, two) = (open("/one"), open("/two"));
    // Nobody writes to it any more: the other's writers get its memory.
    for number in 0..3000u64 {
        one.put(number.to_be_bytes(), [1; 1000]).unwrap();
    }
    for number in 0..20_000u64 {
        two.put(number.to_be_bytes(), [2; 1000]).unwrap();
    }
    two.create_column_family("more").unwrap();
    let mut cursor = two.cursor_cf_with(two.default_column_family(), &ReadOptions::default()).unwrap();
    cursor.seek_to_first();
    let usage = budget.usage();
    assert!(usage.memtables > 0 && usage.tables > 0 && usage.blocks > 0 && usage.iterators > 0, "{usage:?}");
    assert!(usage.total() <= budget.bytes(), "{usage:?}");
    let metrics = two.metrics();
    assert!(metrics.contains("outcrop_memory_budget_bytes 16777216\n"), "{metrics}");
    assert!(metrics.contains("outcrop_memory_used_bytes{part=\"iterators\"} "), "{metrics}");
    let mut large = WriteBatch::new();
    large.put("large", vec![0; 4 << 20]);
    let error = two.write(&mut large).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted);
    assert!(error.to_string().contains("memory_budget allows 3145728"), "{error}");
    two.put("small", "1").unwrap();
    drop(cursor);
    one.close().unwrap();
    two.close().unwrap();
    let usage = budget.usage();
    assert_eq!((usage.memtables, usage.tables, usage.iterators, usage.jobs), (0, 0, 0, 0));
}
