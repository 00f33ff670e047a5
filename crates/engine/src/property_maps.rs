//! Properties as maps from names to figures, under RocksDB's names.
//!
//! Source: RocksDB `db/internal_stats.cc` (`GetMapProperty`), `db/write_stall_stats.cc`, `cache/cache_entry_roles.cc`.

use crate::column_family::ColumnFamily;
use crate::core::Core;
use crate::file_properties::table_property_map;
use crate::state::CfState;
use crate::stats_text::{level_rows, stall_counts, uptime_seconds, work_until_now};
use outcrop_cache::{Freshness, Kind};
use std::collections::BTreeMap;
use std::sync::Arc;

type Map = BTreeMap<String, String>;

/// The uses of blocks in a cache, in RocksDB's words, and the kind that each is here.
const ROLES: [(&str, Option<Kind>); 14] = [
    ("data-block", Some(Kind::Data)),
    ("filter-block", Some(Kind::Filter)),
    ("filter-meta-block", None),
    ("deprecated-filter-block", None),
    ("index-block", Some(Kind::Index)),
    ("other-block", None),
    ("write-buffer", None),
    ("compression-dictionary-building-buffer", None),
    ("filter-construction", None),
    ("block-based-table-reader", None),
    ("file-metadata", None),
    ("blob-value", Some(Kind::Blob)),
    ("blob-cache", None),
    ("misc", None),
];

/// See [`crate::Db::property_map`].
pub fn property_map(core: &Core, cf: &ColumnFamily, name: &str) -> Option<Map> {
    let name = name.strip_prefix("rocksdb.").filter(|_| core.ctx.owns(cf))?;
    if let Some(map) = table_property_map(core, cf, name) {
        return Some(map);
    }
    match name {
        "block-cache-entry-stats" => return cache_map(core, cf, Freshness::Asked),
        "fast-block-cache-entry-stats" => return cache_map(core, cf, Freshness::Alongside),
        "dbstats" => return Some(db_map(core)),
        "db-write-stall-stats" => return Some(Map::from([memory_stops(core)])),
        _ => {}
    }
    let state = core.versions.state.lock();
    let cf_state = state.column_families.get(&cf.id())?;
    match name {
        "cfstats" => Some(cf_map(core, cf_state)),
        "cf-write-stall-stats" | "cfwritestallstats" => Some(stall_map(cf_state)),
        _ => None,
    }
}

/// As C++'s `std::to_string` prints a number.
fn six_decimals(number: f64) -> String {
    format!("{number:.6}")
}

fn stall_map(state: &CfState) -> Map {
    stall_counts(state).into_iter().map(|(name, count)| (name, count.to_string())).collect()
}

fn cf_map(core: &Core, state: &CfState) -> Map {
    let mut map = stall_map(state);
    let (levels, now) = work_until_now(state, uptime_seconds(core));
    for (level, row) in level_rows(state, &levels, &now) {
        let named = |(name, figure)| (format!("compaction.{level}.{name}"), six_decimals(figure));
        map.extend(row.figures().into_iter().map(named));
    }
    map
}

fn memory_stops(core: &Core) -> (String, String) {
    ("write-buffer-manager-limit-stops".to_string(), core.commit.stats.memory_stops.get().to_string())
}

fn db_map(core: &Core) -> Map {
    let stats = &core.commit.stats;
    let groups = stats.groups.get();
    let counts = [
        ("db.wal_bytes_written", stats.wal_bytes.get()),
        ("db.wal_syncs", stats.wal_syncs.get()),
        ("db.user_bytes_written", stats.bytes_written.get()),
        ("db.user_keys_written", stats.keys_written.get()),
        // One that counted later may have told before.
        ("db.user_writes_by_other", stats.writes.get().saturating_sub(groups)),
        ("db.user_writes_by_self", groups),
        // Records of the WAL, as in the text.
        ("db.user_writes_with_wal", groups),
        ("db.user_write_stall_micros", stats.stall_micros.get()),
    ];
    let mut map: Map =
        counts.into_iter().map(|(name, count)| (name.to_string(), count.to_string())).collect();
    map.extend([memory_stops(core), ("db.uptime".to_string(), six_decimals(uptime_seconds(core)))]);
    map
}

fn cache_map(core: &Core, cf: &ColumnFamily, freshness: Freshness) -> Option<Map> {
    let cache = cf.block_cache.as_ref()?;
    let clock = &*core.ctx.env.clock;
    let survey = cache.survey(clock, freshness);
    let took = survey.ended_micros.saturating_sub(survey.began_micros) as f64 / 1e6;
    let since = clock.now_micros().saturating_sub(survey.ended_micros) / 1_000_000;
    let mut map = Map::from([
        ("id".to_string(), format!("Outcrop@{:p}#{}", Arc::as_ptr(cache), std::process::id())),
        ("capacity".to_string(), survey.capacity.to_string()),
        ("secs_for_last_collection".to_string(), six_decimals(took)),
        ("secs_since_last_collection".to_string(), since.to_string()),
    ]);
    for (role, kind) in ROLES {
        let (count, bytes) = kind.map_or((0, 0), |kind| survey.by_kind[kind as usize]);
        let share = 100.0 * bytes as f64 / survey.capacity as f64;
        map.insert(format!("count.{role}"), count.to_string());
        map.insert(format!("bytes.{role}"), bytes.to_string());
        map.insert(format!("percent.{role}"), six_decimals(share));
    }
    Some(map)
}
