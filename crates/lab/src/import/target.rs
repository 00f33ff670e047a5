//! Names of targets and tests: `x.my8044_rel_o2nofp.z12a_gtid_c8r32.pk1`, `sb.met.scan.range100.pk1.dop40`.
//!
//! ```text
//! x.  my8044   _rel_o2nofp . z12a_gtid_c8r32 . pk1
//!     dbms+ver   build         configuration   primary key
//! ```
//! Invariant: a name that does not follow the scheme is kept whole, with the other parts empty.

use super::model::{Target, Text};

/// Takes a DBMS target's name apart.
pub(super) fn dbms(name: &str) -> Target {
    let stem = name.strip_prefix("x.").unwrap_or(name);
    let whole = || Target { name: name.into(), ..Target::default() };
    let digits_at = stem.find(|c: char| c.is_ascii_digit()).unwrap_or(stem.len());
    let (dbms, rest) = stem.split_at(digits_at);
    let digits_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(digits_end);
    let Some((engine, version)) = version(dbms, digits) else { return whole() };
    let mut parts = rest.trim_start_matches('_').split('.').filter(|part| !part.is_empty());
    // Insert Benchmark tags have no build: `my5649.cx6d`.
    let build = if rest.starts_with('.') { "" } else { parts.next().unwrap_or_default() };
    let configuration = parts.collect::<Vec<_>>().join(".");
    Target {
        name: name.into(),
        engine: engine.into(),
        version: version.into(),
        build: build.into(),
        configuration: configuration.into(),
    }
}

/// Engine and dotted version of a DBMS prefix and its digits.
fn version(dbms: &str, digits: &str) -> Option<(&'static str, String)> {
    let part = |range: std::ops::Range<usize>| digits.get(range)?.parse::<u32>().ok();
    let end = digits.len();
    Some(match (dbms, end) {
        ("my", 4..) => ("mysql", format!("{}.{}.{}", part(0..1)?, part(1..2)?, part(2..end)?)),
        ("ma", 6) => ("mariadb", format!("{}.{}.{}", part(0..2)?, part(2..4)?, part(4..6)?)),
        ("pg", 3..) if digits.starts_with('9') => {
            ("postgres", format!("9.{}.{}", part(1..2)?, part(2..end)?))
        }
        ("pg", 3..) => ("postgres", format!("{}.{}", part(0..2)?, part(2..end)?)),
        ("rx" | "fbmy", 2) => ("myrocks", format!("{}.{}", part(0..1)?, part(1..2)?)),
        _ => return None,
    })
}

/// A RocksDB version measured by db_bench.
pub(super) fn rocksdb(version: &str, build: &str, configuration: &str) -> Target {
    let name = if build.is_empty() { version.to_string() } else { format!("{version} {build}") };
    Target {
        name: name.into(),
        engine: "rocksdb".into(),
        version: version.into(),
        build: build.into(),
        configuration: configuration.into(),
    }
}

/// Numbers of a dotted version, for comparison. Words in it end the comparison.
pub(crate) fn version_numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The parts of the name of a sysbench file: `sb.KIND.TEST.rangeN.pkP[.dopD]`.
#[derive(Debug, PartialEq)]
pub(super) struct SysbenchName {
    /// Test and range, as in the tables: `scan.warm_range=100`.
    pub step: Text,
    /// Clients, where the name has them.
    pub clients: Option<u32>,
}

/// Reads the name of a sysbench file after its kind (`sb.met.`, `sb.o.`).
pub(super) fn sysbench(rest: &str) -> Option<SysbenchName> {
    let (test, numbers) = rest.split_once(".range")?;
    let mut parts = numbers.split('.');
    let range: u32 = parts.next()?.parse().ok()?;
    let clients = parts.find_map(|part| part.strip_prefix("dop")?.parse().ok());
    Some(SysbenchName { step: format!("{test}_range={range}").into(), clients })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> [String; 4] {
        let t = dbms(name);
        [t.engine, t.version, t.build, t.configuration].map(|text| text.to_string())
    }

    #[test]
    fn names_of_targets_come_apart() {
        let name = "x.my8044_rel_o2nofp.z12a_gtid_c8r32.pk1";
        assert_eq!(parts(name), ["mysql", "8.0.44", "rel_o2nofp", "z12a_gtid_c8r32.pk1"]);
        assert_eq!(parts("x.my8407_rel.z12a_c8r32.pk1")[1], "8.4.7");
        assert_eq!(parts("x.pg177_o2nofp.x10a_c32r128.pk1")[..2], ["postgres", "17.7"]);
        assert_eq!(parts("x.pg1222_o2nofp.x10a_c8r32.pk1")[1], "12.22");
        assert_eq!(parts("x.pg9624_def.x.pk1")[1], "9.6.24");
        assert_eq!(parts("x.ma110403_rel.z11b.pk1")[..2], ["mariadb", "11.4.3"]);
        assert_eq!(parts("my5649.cx6d"), ["mysql", "5.6.49", "", "cx6d"]);
        assert_eq!(parts("rx80.cx6a"), ["myrocks", "8.0", "", "cx6a"]);
    }

    #[test]
    fn unknown_names_stay_whole() {
        for name in ["whatever", "x.db2", "my", "x.my12_rel", "", "x."] {
            assert_eq!(&*dbms(name).name, name);
            assert_eq!(&*dbms(name).engine, "", "{name}");
        }
    }

    #[test]
    fn names_of_sysbench_files_come_apart() {
        let name = sysbench("scan.warm.range100.pk1.dop40").unwrap();
        assert_eq!((&*name.step, name.clients), ("scan.warm_range=100", Some(40)));
        assert_eq!(sysbench("point-query.range10.pk1").unwrap().clients, None);
        assert_eq!(sysbench("point-query"), None);
        assert_eq!(sysbench("x.rangefar.pk1"), None);
    }
}
