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
