//! The statements of an event: a few lines of SQL, each with how often it runs and what its parameters are drawn from.
//!
//! Ranges of the stock scripts hold `n` keys, those of the published reports' own scripts `n + 1`: both are kept.

use super::table_name;
use super::tests::{Key, Ranges, Shape, Test};

/// Point queries of a transaction.
const POINT_SELECTS: u32 = 10;

/// The source that the parameters of a statement are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// There are none.
    Nothing,
    /// One uniform id, which [`Draw::RowOfId`] uses again.
    Id,
    /// So many uniform ids or keys.
    Many(u32),
    /// So many ids from the middle of the table on, always the same.
    Hot(u32),
    /// A uniform first key, and the last one so far above it.
    Range(u32),
    /// A new `c`, and an id.
    TextAndId(Chosen),
    /// A new `c`, and so many uniform ids.
    TextAndMany(u32),
    /// The row of the id that was drawn last.
    RowOfId,
    /// A row without its id.
    Row,
}

/// How an id is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All alike.
    Uniform,
    /// Low ones more often.
    Zipf,
    /// The first row of the table.
    First,
}

/// A statement of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The statement, with `?` for parameters.
    pub sql: String,
    /// How often an event runs it.
    pub times: u32,
    /// The source that its parameters are drawn from.
    pub draw: Draw,
}

fn line(sql: String, times: u32, draw: Draw) -> Line {
    Line { sql, times, draw }
}

/// The statements of an event of `test` on table `number`.
pub fn script(test: &Test, number: u32) -> Vec<Line> {
    let (table, n) = (table_name(number), test.range);
    let select = |what: &str, whence: &str| format!("SELECT {what} FROM {table} WHERE {whence}");
    let one = |sql: String, draw: Draw| vec![line(sql, 1, draw)];
    let list = |count: u32| vec!["?"; count as usize].join(",");
    match test.shape {
        Shape::Point => one(select("c", "id=?"), Draw::Id),
        Shape::RandomPoints => one(select("c", &format!("id IN ({})", list(n))), Draw::Many(n)),
        Shape::HotPoints => one(select("c", &format!("id IN ({})", list(n))), Draw::Hot(n)),
        Shape::Points { key, row } => {
            let (column, columns) = columns(key, row);
            one(select(columns, &format!("{column} IN ({})", list(n))), Draw::Many(n))
        }
        Shape::Range { key, row } => {
            let (column, columns) = columns(key, row);
            one(select(columns, &format!("{column} BETWEEN ? AND ?")), Draw::Range(n))
        }
        Shape::Scan => one(select("*", "LENGTH(c) < 0"), Draw::Nothing),
        Shape::Count => one(select("count(c)", "id BETWEEN ? AND ?"), Draw::Range(n)),
        Shape::ReadOnly(ranges) => transaction(reads(&table, n, ranges)),
        Shape::UpdateIndex => one(format!("UPDATE {table} SET k=k+1 WHERE id=?"), Draw::Id),
        Shape::UpdateNonindex => one(update_text(&table), Draw::TextAndId(Chosen::Uniform)),
        Shape::UpdateOne => one(update_text(&table), Draw::TextAndId(Chosen::First)),
        Shape::UpdateZipf => one(update_text(&table), Draw::TextAndId(Chosen::Zipf)),
        Shape::UpdateInlist => {
            one(format!("UPDATE {table} SET c=? WHERE id IN ({})", list(n)), Draw::TextAndMany(n))
        }
        Shape::Delete => one(format!("DELETE FROM {table} WHERE id=?"), Draw::Id),
        Shape::Insert => one(format!("INSERT INTO {table} (k, c, pad) VALUES (?, ?, ?)"), Draw::Row),
        Shape::WriteOnly => transaction(writes(&table)),
        Shape::ReadWrite => {
            let mut both = reads(&table, n, Ranges::All);
            both.extend(writes(&table));
            transaction(both)
        }
    }
}

/// The column that is searched, and those that are asked for.
fn columns(key: Key, row: bool) -> (&'static str, &'static str) {
    match (key, row) {
        (Key::Primary, false) => ("id", "id"),
        (Key::Primary, true) => ("id", "id, c"),
        (Key::Secondary, false) => ("k", "k"),
        (Key::Secondary, true) => ("k", "k, c"),
    }
}

fn update_text(table: &str) -> String {
    format!("UPDATE {table} SET c=? WHERE id=?")
}

fn transaction(lines: Vec<Line>) -> Vec<Line> {
    let edge = |word: &str| line(word.to_string(), 1, Draw::Nothing);
    std::iter::once(edge("BEGIN")).chain(lines).chain([edge("COMMIT")]).collect()
}

fn reads(table: &str, n: u32, ranges: Ranges) -> Vec<Line> {
    let each = [
        (Ranges::Simple, "c", ""),
        (Ranges::Sum, "SUM(k)", ""),
        (Ranges::Order, "c", " ORDER BY c"),
        (Ranges::Distinct, "DISTINCT c", " ORDER BY c"),
    ];
    let wanted = each.into_iter().filter(|(kind, ..)| ranges == Ranges::All || ranges == *kind);
    let of_range = |(_, what, tail): (Ranges, &str, &str)| {
        let sql = format!("SELECT {what} FROM {table} WHERE id BETWEEN ? AND ?{tail}");
        line(sql, 1, Draw::Range(n.saturating_sub(1)))
    };
    let points = line(format!("SELECT c FROM {table} WHERE id=?"), POINT_SELECTS, Draw::Id);
    std::iter::once(points).chain(wanted.map(of_range)).collect()
}

fn writes(table: &str) -> Vec<Line> {
    vec![
        line(format!("UPDATE {table} SET k=k+1 WHERE id=?"), 1, Draw::Id),
        line(update_text(table), 1, Draw::TextAndId(Chosen::Uniform)),
        line(format!("DELETE FROM {table} WHERE id=?"), 1, Draw::Id),
        line(format!("INSERT INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)"), 1, Draw::RowOfId),
    ]
}

/// Statements of an event.
pub fn statements(test: &Test) -> u64 {
    script(test, 1).iter().map(|line| u64::from(line.times)).sum()
}

#[cfg(test)]
mod unit {
    use super::super::tests::{TESTS, find};
    use super::*;

    #[test]
    fn events_have_the_statements_of_the_published_scripts() {
        let count = |name: &str| statements(find(name).unwrap());
        assert_eq!(count("read-only_range=100"), 16);
        assert_eq!(count("read-only-sum"), 13);
        assert_eq!(count("read-only-count"), 1);
        assert_eq!(count("write-only"), 6);
        assert_eq!(count("read-write_range=10"), 20);
        assert_eq!((count("point-query"), count("update-inlist"), count("scan")), (1, 1, 1));
    }

    #[test]
    fn every_statement_has_as_many_parameters_as_are_drawn() {
        for test in TESTS {
            for line in script(test, 3) {
                let drawn = match line.draw {
                    Draw::Nothing => 0,
                    Draw::Id => 1,
                    Draw::Many(n) | Draw::Hot(n) => n as usize,
                    Draw::Range(_) | Draw::TextAndId(_) => 2,
                    Draw::TextAndMany(n) => n as usize + 1,
                    Draw::RowOfId => 4,
                    Draw::Row => 3,
                };
                assert_eq!(line.sql.matches('?').count(), drawn, "{}: {}", test.name, line.sql);
                assert!(line.draw == Draw::Nothing || line.sql.contains("sbtest3"), "{}", line.sql);
            }
        }
    }

    #[test]
    fn ranges_of_the_stock_scripts_hold_one_key_less() {
        let range = |name: &str| {
            let lines = script(find(name).unwrap(), 1);
            lines.into_iter().find_map(|line| match line.draw {
                Draw::Range(distance) => Some(distance),
                _ => None,
            })
        };
        assert_eq!(range("read-only_range=100"), Some(99));
        assert_eq!(range("range-covered-pk"), Some(100));
        assert_eq!(range("read-only-count"), Some(1000));
    }
}
