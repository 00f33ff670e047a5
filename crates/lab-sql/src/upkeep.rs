//! The lab's database on a server, and what follows a load: statistics, dead rows, dirty pages.
//!
//! Invariant: nothing is dropped or written in a database that lacks the lab's mark.

use crate::address::{Address, Product};
use crate::connection::Connection;
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
    if connection.value(&exists)?.is_some() {
        let mut inside = Connection::open(&own)?;
        return if is_marked(&mut inside)? {
            Ok(own)
        } else {
            Err(format!(
                "the database {DATABASE} of {admin} is not the lab's own: it has no table {MARK}; rename it, or \
                 name another server"
            ))
        };
    }
    connection.run(&create)?;
    Connection::open(&own)?.run(&format!("CREATE TABLE {MARK} (made_by_the_lab INTEGER)"))?;
    Ok(own)
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
    let flushed = match address.product {
        Product::Postgres => Vec::new(),
        Product::MySql => flush_dirty_pages(&mut connection)?,
    };
    let of_table = |table: &String| match address.product {
        Product::Postgres => format!("VACUUM (ANALYZE, INDEX_CLEANUP ON) {table}"),
        Product::MySql => format!("ANALYZE TABLE {table}"),
    };
    std::thread::scope(|scope| {
        let each = tables.iter().map(|table| {
            let sql = of_table(table);
            scope.spawn(move || match address.product {
                Product::Postgres => Connection::open(address)?.run(&sql),
                // Its answer is a row.
                Product::MySql => Connection::open(address)?.rows(&sql).map(|_| ()),
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().try_for_each(|thread| thread.join().expect("upkeep does not panic"))
    })?;
    if address.product == Product::Postgres {
        connection.run("CHECKPOINT")?;
    }
    let left = Duration::from_secs_f64(seconds).saturating_sub(begun.elapsed());
    std::thread::sleep(left);
    flushed.into_iter().try_for_each(|(name, value)| connection.run(&format!("SET GLOBAL {name} = {value}")))
}

/// Has InnoDB write all dirty pages; gives the settings that were changed, with what they were.
fn flush_dirty_pages(connection: &mut Connection) -> Result<Vec<(String, String)>, String> {
    let wanted = [
        ("innodb_max_dirty_pages_pct", "1"),
        ("innodb_max_dirty_pages_pct_lwm", "1"),
        ("innodb_idle_flush_pct", "100"),
    ];
    // All of them before any is changed: the low-water mark follows the mark down.
    let mut were = Vec::new();
    for (name, _) in wanted {
        let rows = connection.rows(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        // Older versions lack some.
        were.extend(rows.into_iter().filter_map(|row| Some((name.to_string(), row.into_iter().nth(1)??))));
    }
    for (name, value) in wanted.iter().filter(|(name, _)| were.iter().any(|(known, _)| known == name)) {
        connection.run(&format!("SET GLOBAL {name} = {value}"))?;
    }
    // In the order of `wanted`: the mark is restored before the low-water mark, which must not be above it.
    Ok(were)
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
