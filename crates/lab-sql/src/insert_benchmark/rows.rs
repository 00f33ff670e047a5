//! Schema, contents of rows, and statements.

use super::Queries;
use crate::address::Product;
use crate::text::Random;

/// Values of the columns that queries ask for lie below these.
pub const CASH_REGISTERS: u64 = 1000;
/// See [`CASH_REGISTERS`].
pub const PRODUCTS: u64 = 10_000;
/// See [`CASH_REGISTERS`].
pub const CUSTOMERS: u64 = 100_000;
/// See [`CASH_REGISTERS`].
pub const PRICES: u64 = 500;
/// Rows of a query.
pub const ROWS_OF_QUERY: usize = 10;
/// Bytes of `data`.
const DATA: [u64; 2] = [10, 20];

/// The statements that make `table`.
pub fn create(product: Product, table: &str, engine: &str) -> Vec<String> {
    let columns = |id: &str, time: &str| {
        format!(
            "transactionid {id}, dateandtime {time}, cashregisterid INT NOT NULL, customerid INT NOT NULL, \
             productid INT NOT NULL, price INT NOT NULL, data VARCHAR(4000)"
        )
    };
    match product {
        Product::Postgres => vec![
            format!(
                "CREATE TABLE {table} ({}, PRIMARY KEY (transactionid))",
                columns("BIGSERIAL", "TIMESTAMP")
            ),
            format!("ALTER SEQUENCE {table}_transactionid_seq CACHE 1000"),
        ],
        Product::MySql => {
            let engine = if engine.is_empty() { String::new() } else { format!(" ENGINE={engine}") };
            let columns = columns("BIGINT NOT NULL AUTO_INCREMENT", "DATETIME");
            vec![format!("CREATE TABLE {table} ({columns}, PRIMARY KEY (transactionid)){engine}")]
        }
    }
}

/// Name and columns of the secondary indexes.
const INDEXES: [(&str, &str); 3] = [
    ("marketsegment", "productid, customerid, price"),
    ("registersegment", "cashregisterid, customerid, price"),
    ("pdc", "price, dateandtime, customerid"),
];

/// The statements that make the secondary indexes: MyRocks is told of each apart.
pub fn create_indexes(product: Product, table: &str, engine: &str) -> Vec<String> {
    let adds = INDEXES.map(|(name, columns)| format!("ADD INDEX {table}_{name} ({columns})"));
    match product {
        Product::Postgres => INDEXES
            .map(|(name, columns)| format!("CREATE INDEX {table}_{name} ON {table} ({columns})"))
            .to_vec(),
        Product::MySql if engine.eq_ignore_ascii_case("rocksdb") => {
            adds.map(|add| format!("ALTER TABLE {table} {add}")).to_vec()
        }
        Product::MySql => vec![format!("ALTER TABLE {table} {}", adds.join(", "))],
    }
}

/// Inserts so many rows.
pub fn insert(product: Product, table: &str, rows: u32) -> String {
    let time = match product {
        // The parameter is text, as MySQL takes it.
        Product::Postgres => "CAST(CAST(? AS TEXT) AS TIMESTAMP)",
        Product::MySql => "?",
    };
    let row = format!("({time},?,?,?,?,?)");
    let all = vec![row.as_str(); rows as usize].join(",");
    format!(
        "INSERT INTO {table} (dateandtime, cashregisterid, customerid, productid, price, data) VALUES {all}"
    )
}

/// Deletes so many of the oldest rows from a key on.
pub fn delete(product: Product, table: &str, rows: u32) -> String {
    let oldest = format!("WHERE transactionid >= ? ORDER BY transactionid ASC LIMIT {rows}");
    match product {
        Product::Postgres => {
            format!("DELETE FROM {table} WHERE transactionid IN (SELECT transactionid FROM {table} {oldest})")
        }
        Product::MySql => format!("DELETE FROM {table} {oldest}"),
    }
}

/// The least and the greatest key.
pub fn edge(table: &str, which: &str) -> String {
    format!("SELECT {which}(transactionid) FROM {table}")
}

/// The queries that a step chooses from.
pub fn queries(product: Product, table: &str, kind: Queries) -> Vec<String> {
    let force = |index: &str| match product {
        Product::Postgres => String::new(),
        Product::MySql => format!(" FORCE INDEX ({table}_{index})"),
    };
    match kind {
        Queries::Point => {
            let list = ["?"; ROWS_OF_QUERY].join(",");
            vec![format!(
                "SELECT transactionid, productid, data FROM {table} WHERE transactionid IN ({list})"
            )]
        }
        Queries::Range => INDEXES
            .iter()
            .zip(["productid >= ?", "cashregisterid > ?", "price >= ?"])
            .map(|((index, columns), from)| {
                format!(
                    "SELECT {columns} FROM {table}{} WHERE {from} ORDER BY {columns} LIMIT {ROWS_OF_QUERY}",
                    force(index)
                )
            })
            .collect(),
    }
}

/// Bounds of the places that the range queries begin at, in the order of [`queries`].
pub const FROM: [u64; 3] = [PRODUCTS, CASH_REGISTERS, PRICES];

/// Writes the `data` of a row over `text`: letters that compress, then three eighths that do not.
pub fn data(random: &mut Random, text: &mut String) {
    const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let length = random.between(DATA[0], DATA[1]) as usize;
    let scattered = (length as f64 * 0.75 * 0.5).floor() as usize;
    text.clear();
    text.extend(std::iter::repeat_n('a', length - scattered));
    for _ in 0..scattered {
        text.push(char::from(BASE64[random.below(64) as usize]));
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn data_has_its_lengths_and_its_shares() {
        let (mut random, mut text) = (Random::new(4), String::new());
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            data(&mut random, &mut text);
            lengths.insert(text.len());
            let scattered = (text.len() as f64 * 0.375) as usize;
            assert!(text[..text.len() - scattered].bytes().all(|byte| byte == b'a'), "{text}");
        }
        assert!(lengths.into_iter().eq(10..=20));
    }

    #[test]
    fn statements_are_those_of_each_product() {
        let [postgres, mysql] = [Product::Postgres, Product::MySql];
        assert_eq!(insert(mysql, "pi1", 3).matches('?').count(), 18);
        assert!(delete(postgres, "pi1", 5).contains("IN (SELECT transactionid FROM pi1 WHERE"));
        assert!(delete(mysql, "pi1", 5).ends_with("ORDER BY transactionid ASC LIMIT 5"));
        assert_eq!(create_indexes(mysql, "pi1", "InnoDB").len(), 1);
        assert_eq!(create_indexes(mysql, "pi1", "ROCKSDB").len(), 3);
        for product in [postgres, mysql] {
            let create = &create(product, "pi1", "")[0];
            // Numbers are never null; times and texts may be, as published tables have it.
            assert_eq!(
                create.matches("INT NOT NULL").count() - create.matches("BIGINT").count(),
                4,
                "{create}"
            );
            assert!(create.ends_with("data VARCHAR(4000), PRIMARY KEY (transactionid))"), "{create}");
            assert!(create.contains("dateandtime TIMESTAMP,") || create.contains("dateandtime DATETIME,"));
        }
        let ranges = queries(mysql, "pi1", Queries::Range);
        assert_eq!(ranges.len(), FROM.len());
        assert_eq!(
            ranges[1],
            "SELECT cashregisterid, customerid, price FROM pi1 FORCE INDEX (pi1_registersegment) WHERE \
             cashregisterid > ? ORDER BY cashregisterid, customerid, price LIMIT 10"
        );
        assert!(queries(postgres, "pi1", Queries::Range).iter().all(|sql| !sql.contains("FORCE")));
    }
}
