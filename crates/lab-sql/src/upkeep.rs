//! The lab's database on a server, and what follows a load: statistics, dead rows, dirty pages.
//!
//! Invariant: nothing is dropped or written in a database that lacks the lab's mark.

use crate::address::{Address, Product};
use crate::connection::Connection;
use crate::myrocks;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The lab's database on every server.
pub const DATABASE: &str = "outcrop_lab";
/// A table that only the lab makes.
const MARK: &str = "outcrop_lab_mark";

/// Makes the lab's database on the server at `admin`, unless it is there; gives its address.
///
/// # Errors
/// A sentence if a database of that name is not the lab's own, or the server's words.
pub fn own_database(admin: &Address) -> Result<Address, String> {
    let mut connection = Connection::open(admin)?;
    let (exists, create) = match admin.product {
        Product::Postgres => (
            format!("SELECT datname FROM pg_database WHERE datname = '{DATABASE}'"),
            format!("CREATE DATABASE {DATABASE}"),
        ),
        Product::MySql => (
            format!("SELECT schema_name FROM information_schema.schemata WHERE schema_name = '{DATABASE}'"),
            format!("CREATE DATABASE {DATABASE}"),
        ),
    };
    let own = admin.with_database(DATABASE);
    let found = connection.value(&exists)?.is_some();
    if !found {
        connection.run(&create)?;
    }
    let mut inside = Connection::open(&own)?;
    if is_marked(&mut inside)? {
        return Ok(own);
    }
    // Between making it and marking it a run may have been killed: an empty database is nobody's.
    if found && !is_empty(&mut inside)? {
        return Err(format!(
            "the database {DATABASE} of {admin} is not the lab's own: it has no table {MARK}; rename it, or name another \
             server"
        ));
    }
    inside.run(&format!("CREATE TABLE {MARK} (made_by_the_lab INTEGER)"))?;
    Ok(own)
}

/// Whether nobody has put a table, a view, a sequence, a type or a function into the database.
fn is_empty(connection: &mut Connection) -> Result<bool, String> {
    let sql = match connection.product() {
        // Its own objects have numbers below 16384.
        Product::Postgres => {
            "SELECT (SELECT count(*) FROM pg_class WHERE oid >= 16384) + (SELECT count(*) FROM pg_proc WHERE oid >= 16384)"
        }
        Product::MySql => {
            "SELECT (SELECT count(*) FROM information_schema.tables WHERE table_schema = database()) + (SELECT count(*) FROM \
             information_schema.routines WHERE routine_schema = database())"
        }
    };
    Ok(connection.value(sql)?.as_deref() == Some("0"))
}

/// Names of the tables of the database, but for the mark.
fn tables(connection: &mut Connection) -> Result<Vec<String>, String> {
    let schema = schema(connection.product());
    let sql = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = {schema} AND table_type = 'BASE TABLE'"
    );
    let names = connection.rows(&sql)?.into_iter().filter_map(|row| row.into_iter().next().flatten());
    Ok(names.filter(|name| name != MARK).collect())
}

fn schema(product: Product) -> &'static str {
    match product {
        Product::Postgres => "current_schema()",
        Product::MySql => "database()",
    }
}

fn is_marked(connection: &mut Connection) -> Result<bool, String> {
    let schema = schema(connection.product());
    let sql = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = {schema} AND table_name = '{MARK}'"
    );
    Ok(connection.value(&sql)?.is_some())
}

/// Seconds that published runs wait after a load of `rows` rows in all tables.
///
/// Source: `bench/rx.pm/postwrite` of the published scripts.
pub fn usual_wait(rows: u64) -> f64 {
    (60.0 + rows as f64 / 1e6).min(1200.0)
}

/// Brings all tables of the database to rest: statistics and dead rows of all of them side by side, then what is dirty in
/// memory. Ends no sooner than after `seconds`.
///
/// # Errors
/// The server's words.
pub fn rest(address: &Address, seconds: f64) -> Result<(), String> {
    let begun = Instant::now();
    let mut connection = Connection::open(address)?;
    let tables = tables(&mut connection)?;
    let upkeep = |connection: &mut Connection| -> Result<(), String> {
        of_tables(address, &tables)?;
        if address.product == Product::Postgres {
            connection.run("CHECKPOINT")?;
        }
        std::thread::sleep(Duration::from_secs_f64(seconds).saturating_sub(begun.elapsed()));
        Ok(())
    };
    match address.product {
        Product::Postgres => upkeep(&mut connection),
        // It has no pages to flush.
        Product::MySql if myrocks::has_tables(&mut connection)? => {
            of_tables(address, &tables)?;
            myrocks::rest(&mut connection, seconds)?;
            std::thread::sleep(Duration::from_secs_f64(seconds).saturating_sub(begun.elapsed()));
            Ok(())
        }
        Product::MySql => {
            // All of them before any is changed: the low-water mark follows the mark down.
            let were = dirty_page_settings(&mut connection)?;
            let done = flush_dirty_pages(&mut connection, &were).and_then(|()| upkeep(&mut connection));
            done.and(restore(address, &mut connection, &were))
        }
    }
}

/// Statistics and dead rows of all tables, a few of them at a time: a server takes a hundred connections or so.
fn of_tables(address: &Address, tables: &[String]) -> Result<(), String> {
    /// Tables at a time.
    const AT_ONCE: usize = 8;
    let of_table = |table: &String| match address.product {
        Product::Postgres => format!("VACUUM (ANALYZE, INDEX_CLEANUP ON) {table}"),
        Product::MySql => format!("ANALYZE TABLE {table}"),
    };
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), String> {
        let mut connection = Connection::open(address)?;
        while let Some(table) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
            match address.product {
                Product::Postgres => connection.run(&of_table(table))?,
                // Its answer is a row.
                Product::MySql => _ = connection.rows(&of_table(table))?,
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..tables.len().min(AT_ONCE)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("upkeep does not panic"))
    })
}

/// Settings by which InnoDB writes all dirty pages. The mark comes before the low-water mark, which must not be above it.
const FLUSHING: [(&str, &str); 3] = [
    ("innodb_max_dirty_pages_pct", "1"),
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_idle_flush_pct", "100"),
];

/// The values of those of [`FLUSHING`] that the server has.
fn dirty_page_settings(connection: &mut Connection) -> Result<Vec<(String, String)>, String> {
    let mut were = Vec::new();
    for (name, _) in FLUSHING {
        let rows = connection.rows(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        // Older versions lack some.
        were.extend(rows.into_iter().filter_map(|row| Some((name.to_string(), row.into_iter().nth(1)??))));
    }
    Ok(were)
}

/// Has InnoDB write all dirty pages.
fn flush_dirty_pages(connection: &mut Connection, were: &[(String, String)]) -> Result<(), String> {
    let known = |name: &str| were.iter().any(|(known, _)| known == name);
    let mut wanted = FLUSHING.iter().filter(|(name, _)| known(name));
    wanted.try_for_each(|(name, value)| connection.run(&format!("SET GLOBAL {name} = {value}")))
}

/// Sets what `were` the server's settings again, whatever happened meanwhile: through another connection if this one is broken.
fn restore(address: &Address, connection: &mut Connection, were: &[(String, String)]) -> Result<(), String> {
    let all = |connection: &mut Connection| {
        let set = |(name, value): &(String, String)| connection.run(&format!("SET GLOBAL {name} = {value}"));
        were.iter().try_for_each(set)
    };
    all(connection).or_else(|_| all(&mut Connection::open(address)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_the_rows_and_end_at_twenty_minutes() {
        assert_eq!(usual_wait(50_000_000), 110.0);
        assert_eq!(usual_wait(2_000_000_000), 1200.0);
    }
}
