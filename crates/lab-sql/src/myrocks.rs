//! MyRocks after a load: its compactions are waited for, its memtables flushed, and L0 is compacted.
//!
//! Source: `bench/rx.pm/postwrite` of the published scripts.

use crate::connection::Connection;
use std::time::{Duration, Instant};

/// Between the flush and the compaction of L0, in published runs.
const PAUSE: Duration = Duration::from_secs(20);
/// Between two looks at compactions.
const LOOK: Duration = Duration::from_millis(200);

/// Whether tables of the connection's database are MyRocks'.
///
/// # Errors
/// The server's words.
pub(crate) fn has_tables(connection: &mut Connection) -> Result<bool, String> {
    let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND engine = 'ROCKSDB'";
    Ok(connection.value(sql)?.is_some_and(|count| count != "0"))
}

/// Brings all tables of MyRocks to rest. The pause within is no longer than a third of `seconds`.
///
/// # Errors
/// The server's words.
pub(crate) fn rest(connection: &mut Connection, seconds: f64) -> Result<(), String> {
    wait_for_compactions(connection)?;
    connection.run("SET GLOBAL rocksdb_force_flush_memtable_now = 1")?;
    let pause = PAUSE.min(Duration::from_secs_f64(seconds / 3.0));
    std::thread::sleep(pause);
    // MariaDB has it together with another flush, of memtables that are empty by now.
    let names = ["rocksdb_compact_lzero_now", "rocksdb_force_flush_memtable_and_lzero_now"];
    for name in names {
        if !connection.rows(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?.is_empty() {
            connection.run(&format!("SET GLOBAL {name} = 1"))?;
            return wait_for_compactions(connection);
        }
    }
    Err(format!("the server has no setting that compacts L0: neither {}", names.join(" nor ")))
}

/// Waits until no flush or compaction is pending, and none has read or written for some time. A compaction that runs
/// counts what it reads and writes as it goes on.
fn wait_for_compactions(connection: &mut Connection) -> Result<(), String> {
    /// Without progress this long nothing runs.
    const STILL: Duration = Duration::from_secs(1);
    let (mut last, mut since) = (progress(connection)?, Instant::now());
    loop {
        std::thread::sleep(LOOK);
        let now = progress(connection)?;
        if now != last || now[0] != "0" {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() >= STILL {
            return Ok(());
        }
    }
}

/// Flushes and compactions that are pending, and bytes that they have read and written so far.
fn progress(connection: &mut Connection) -> Result<[String; 2], String> {
    let pending = connection.value(
        "SELECT CAST(coalesce(sum(value), 0) AS SIGNED) FROM information_schema.rocksdb_cfstats WHERE stat_type IN \
         ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING', 'NUM_IMMUTABLE_MEM_TABLE')",
    )?;
    let counters = connection.rows(
        "SHOW GLOBAL STATUS WHERE variable_name IN ('rocksdb_compact_read_bytes', 'rocksdb_compact_write_bytes', \
         'rocksdb_flush_write_bytes')",
    )?;
    let values = counters.into_iter().filter_map(|row| row.into_iter().nth(1).flatten());
    Ok([pending.unwrap_or_default(), values.collect::<Vec<_>>().join(" ")])
}
