//! The tests by name: one row of [`TESTS`] for each, in the order in which a published run does them.
//!
//! A name ends in `_range=N` as in published results; N means something where [`Shape::uses_range`] says so.

/// Which table of a report a test is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Point queries.
    Point,
    /// Range queries without aggregation.
    Range,
    /// Range queries with aggregation.
    Aggregation,
    /// Writes.
    Write,
}

impl Group {
    /// All of them, in the order of reports.
    pub const ALL: [Group; 4] = [Group::Point, Group::Range, Group::Aggregation, Group::Write];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Group::Point => "point queries",
            Group::Range => "range queries without aggregation",
            Group::Aggregation => "range queries with aggregation",
            Group::Write => "writes",
        }
    }
}

/// A column that lists and ranges go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `id`, by the primary key.
    Primary,
    /// `k`, by the secondary index.
    Secondary,
}

/// Range queries of a read-only test beside its ten point queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// One of each.
    All,
    /// `SELECT c`.
    Simple,
    /// `SELECT SUM(k)`.
    Sum,
    /// `SELECT c .. ORDER BY c`.
    Order,
    /// `SELECT DISTINCT c .. ORDER BY c`.
    Distinct,
}

/// The shape of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One row by its id.
    Point,
    /// Rows by a list of random ids.
    RandomPoints,
    /// Rows by a list of ids that is always the same.
    HotPoints,
    /// Keys, and with `row` more of the row, by a list of random keys.
    Points {
        /// By which index.
        key: Key,
        /// Whether columns that the index lacks are asked for.
        row: bool,
    },
    /// The same by a range of keys.
    Range {
        /// By which index.
        key: Key,
        /// Whether columns that the index lacks are asked for.
        row: bool,
    },
    /// Every row of a table, of which none qualifies.
    Scan,
    /// A transaction of ten point queries and ranges.
    ReadOnly(Ranges),
    /// `SELECT count(c)` of a range.
    Count,
    /// `k = k + 1` by id.
    UpdateIndex,
    /// Another `c` by id.
    UpdateNonindex,
    /// Another `c` of one and the same row.
    UpdateOne,
    /// Another `c` by an id of Zipf's distribution.
    UpdateZipf,
    /// Another `c` of a list of ids.
    UpdateInlist,
    /// One row by id.
    Delete,
    /// One row.
    Insert,
    /// A transaction of both updates, a deletion and an insertion.
    WriteOnly,
    /// A read-only and a write-only transaction in one.
    ReadWrite,
}

impl Shape {
    /// Whether the number in a test's name says anything.
    pub fn uses_range(self) -> bool {
        matches!(
            self,
            Shape::RandomPoints
                | Shape::HotPoints
                | Shape::Points { .. }
                | Shape::Range { .. }
                | Shape::ReadOnly(_)
                | Shape::Count
                | Shape::UpdateInlist
                | Shape::ReadWrite
        )
    }

    /// Whether its events read and never write.
    pub fn only_reads(self) -> bool {
        !matches!(self.group(), Group::Write)
    }

    /// Its table of a report.
    pub fn group(self) -> Group {
        match self {
            Shape::Point | Shape::RandomPoints | Shape::HotPoints | Shape::Points { .. } => Group::Point,
            Shape::Range { .. } | Shape::Scan => Group::Range,
            Shape::ReadOnly(_) | Shape::Count => Group::Aggregation,
            _ => Group::Write,
        }
    }
}

/// A test.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Name in experiments and reports.
    pub name: &'static str,
    /// The shape of an event.
    pub shape: Shape,
    /// Length of lists, or distance of a range.
    pub range: u32,
    /// Whether reports show it: tests that only warm caches are in none.
    pub reported: bool,
}

const fn test(name: &'static str, shape: Shape, range: u32) -> Test {
    Test { name, shape, range, reported: true }
}

const fn warm(name: &'static str, shape: Shape, range: u32) -> Test {
    Test { name, shape, range, reported: false }
}

const fn points(key: Key, row: bool) -> Shape {
    Shape::Points { key, row }
}

const fn range(key: Key, row: bool) -> Shape {
    Shape::Range { key, row }
}

use Key::{Primary, Secondary};

/// Every test. Those called `.pre` are done before anything was written, for a comparison with the same test after that.
pub const TESTS: &[Test] = &[
    warm("point-query.warm_range=100", Shape::Point, 100),
    warm("scan.warmpre_range=100", Shape::Scan, 100),
    test("point-query.pre_range=100", Shape::Point, 100),
    test("random-points.pre_range=10", Shape::RandomPoints, 10),
    test("random-points.pre_range=100", Shape::RandomPoints, 100),
    test("random-points.pre_range=1000", Shape::RandomPoints, 1000),
    test("points-covered-pk.pre_range=100", points(Primary, false), 100),
    test("points-covered-si.pre_range=100", points(Secondary, false), 100),
    test("points-notcovered-pk.pre_range=100", points(Primary, true), 100),
    test("points-notcovered-si.pre_range=100", points(Secondary, true), 100),
    test("range-covered-pk.pre_range=100", range(Primary, false), 100),
    test("range-covered-si.pre_range=100", range(Secondary, false), 100),
    test("range-notcovered-pk.pre_range=100", range(Primary, true), 100),
    test("range-notcovered-si.pre_range=100", range(Secondary, true), 100),
    test("read-only.pre_range=10", Shape::ReadOnly(Ranges::All), 10),
    test("read-only.pre_range=100", Shape::ReadOnly(Ranges::All), 100),
    test("read-only.pre_range=10000", Shape::ReadOnly(Ranges::All), 10_000),
    test("update-inlist_range=100", Shape::UpdateInlist, 100),
    test("update-index_range=100", Shape::UpdateIndex, 100),
    test("update-nonindex_range=100", Shape::UpdateNonindex, 100),
    test("update-one_range=100", Shape::UpdateOne, 100),
    test("update-zipf_range=100", Shape::UpdateZipf, 100),
    test("write-only_range=10000", Shape::WriteOnly, 10_000),
    test("read-write_range=10", Shape::ReadWrite, 10),
    test("read-write_range=100", Shape::ReadWrite, 100),
    warm("scan.warm_range=100", Shape::Scan, 100),
    test("scan_range=100", Shape::Scan, 100),
    test("read-only_range=10", Shape::ReadOnly(Ranges::All), 10),
    test("read-only_range=100", Shape::ReadOnly(Ranges::All), 100),
    test("read-only_range=10000", Shape::ReadOnly(Ranges::All), 10_000),
    test("read-only-simple_range=1000", Shape::ReadOnly(Ranges::Simple), 1000),
    test("read-only-sum_range=1000", Shape::ReadOnly(Ranges::Sum), 1000),
    test("read-only-order_range=1000", Shape::ReadOnly(Ranges::Order), 1000),
    test("read-only-distinct_range=1000", Shape::ReadOnly(Ranges::Distinct), 1000),
    test("read-only-count_range=1000", Shape::Count, 1000),
    test("point-query_range=100", Shape::Point, 100),
    test("random-points_range=10", Shape::RandomPoints, 10),
    test("random-points_range=100", Shape::RandomPoints, 100),
    test("random-points_range=1000", Shape::RandomPoints, 1000),
    test("hot-points_range=100", Shape::HotPoints, 100),
    test("points-covered-pk_range=100", points(Primary, false), 100),
    test("points-notcovered-pk_range=100", points(Primary, true), 100),
    test("range-covered-pk_range=100", range(Primary, false), 100),
    test("range-notcovered-pk_range=100", range(Primary, true), 100),
    warm("points-covered-si.warm_range=100", points(Secondary, false), 100),
    test("points-covered-si_range=100", points(Secondary, false), 100),
    test("points-notcovered-si_range=100", points(Secondary, true), 100),
    test("range-covered-si_range=100", range(Secondary, false), 100),
    test("range-notcovered-si_range=100", range(Secondary, true), 100),
    test("delete_range=100", Shape::Delete, 100),
    test("insert_range=100", Shape::Insert, 100),
];

/// The test that a word names: its name, or that without `_range=N` where only one begins so.
pub fn find(word: &str) -> Option<&'static Test> {
    let exact = TESTS.iter().find(|test| test.name == word);
    let begins = |test: &&Test| test.name.split_once("_range=").is_some_and(|(name, _)| name == word);
    exact.or_else(|| {
        let mut all = TESTS.iter().filter(begins);
        all.next().filter(|_| all.next().is_none())
    })
}

/// The order of a published run of today: what is reported of it are 32 tests.
pub const STANDARD: &[&str] = &[
    "load",
    "point-query.warm_range=100",
    "postwrite",
    "scan.warmpre_range=100",
    "point-query.pre_range=100",
    "range-notcovered-si.pre_range=100",
    "update-inlist_range=100",
    "update-index_range=100",
    "update-nonindex_range=100",
    "update-one_range=100",
    "update-zipf_range=100",
    "write-only_range=10000",
    "read-write_range=10",
    "read-write_range=100",
    "postwrite.2",
    "scan.warm_range=100",
    "scan_range=100",
    "read-only_range=10",
    "read-only_range=100",
    "read-only_range=10000",
    "read-only-simple_range=1000",
    "read-only-sum_range=1000",
    "read-only-order_range=1000",
    "read-only-distinct_range=1000",
    "read-only-count_range=1000",
    "point-query_range=100",
    "random-points_range=10",
    "random-points_range=100",
    "random-points_range=1000",
    "hot-points_range=100",
    "points-covered-pk_range=100",
    "points-notcovered-pk_range=100",
    "range-covered-pk_range=100",
    "range-notcovered-pk_range=100",
    "points-covered-si.warm_range=100",
    "points-covered-si_range=100",
    "points-notcovered-si_range=100",
    "range-covered-si_range=100",
    "range-notcovered-si_range=100",
    "delete_range=100",
    "insert_range=100",
];

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_reported_tests_of_a_run_are_those_of_published_tables() {
        let reported = |group: Option<Group>| {
            let tests = STANDARD.iter().filter_map(|name| find(name));
            let shown = tests.filter(|test| test.reported && !test.name.contains(".pre_"));
            shown.filter(|test| group.is_none_or(|group| test.shape.group() == group)).count()
        };
        let by_group = Group::ALL.map(|group| reported(Some(group)));
        assert_eq!((reported(None), by_group), (32, [9, 5, 8, 10]));
        // With the tests before any write that older runs had, there are 42 and five more to choose from.
        assert_eq!(TESTS.iter().filter(|test| test.reported).count(), 47);
    }

    #[test]
    fn the_order_is_the_published_one() {
        // Written down a second time, as the published scripts number them, with the loads and the rests between.
        let published = "load point-query.warm postwrite scan.warmpre point-query.pre range-notcovered-si.pre update-inlist \
             update-index update-nonindex update-one update-zipf write-only:10000 read-write:10 read-write postwrite.2 \
             scan.warm scan read-only:10 read-only read-only:10000 read-only-simple:1000 read-only-sum:1000 \
             read-only-order:1000 read-only-distinct:1000 read-only-count:1000 point-query random-points:10 random-points \
             random-points:1000 hot-points points-covered-pk points-notcovered-pk range-covered-pk range-notcovered-pk \
             points-covered-si.warm points-covered-si points-notcovered-si range-covered-si range-notcovered-si delete insert";
        let name = |word: &str| match word.split_once(':') {
            Some((test, range)) => format!("{test}_range={range}"),
            None if word == "load" || word.starts_with("postwrite") => word.to_string(),
            None => format!("{word}_range=100"),
        };
        let published: Vec<String> = published.split_whitespace().map(name).collect();
        assert_eq!(published, STANDARD);
    }

    #[test]
    fn names_end_in_their_range_and_short_names_must_be_unique() {
        for test in TESTS {
            let range = test.name.rsplit('=').next().and_then(|number| number.parse().ok());
            assert_eq!(range, Some(test.range), "{}", test.name);
            assert_eq!(find(test.name).map(|found| found.name), Some(test.name));
        }
        assert_eq!(find("update-index").map(|test| test.name), Some("update-index_range=100"));
        assert!(find("read-only").is_none() && find("nothing").is_none());
    }
}
