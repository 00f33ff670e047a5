//! `outcrop ldb checkcompat --with=VERSION`: the parts of a database that a version of RocksDB would refuse or misread.
//!
//! ```text
//! facts (what the files hold) x rules (who reads it since when) -> findings per version
//! ```
//! Files are only read, so the database may be in use or damaged.
//!
//! Next: `facts.rs`, `rules.rs`. That the rules are true is tested with the real libraries: `cargo xtask compatibility`.

mod facts;
mod rules;
mod wal;

use facts::Facts;
use outcrop::{Env, Error};
use rules::{Effect, FIRST_KNOWN, Rule};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A version of RocksDB: the part of its number that formats follow, and how it was written.
#[derive(Clone, Debug)]
pub struct Version {
    number: (u32, u32),
    text: String,
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let parts: Vec<u32> = text.split('.').map_while(|part| part.parse().ok()).collect();
        if parts.len() < 2 || parts.len() != text.split('.').count() {
            return Err(format!("{text} is no version such as 6.29 or 6.29.5"));
        }
        let number = (parts[0], parts[1]);
        if number < FIRST_KNOWN {
            return Err(format!("nothing is known of versions before {}.{}", FIRST_KNOWN.0, FIRST_KNOWN.1));
        }
        Ok(Version { number, text: text.to_string() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The findings.
#[derive(Serialize)]
pub struct Report {
    /// The directory.
    db: String,
    /// Every feature of the files that some version does not read, or needs to be given something for.
    found: Vec<FoundFeature>,
    versions: Vec<Verdict>,
}

/// A feature and where it is.
#[derive(Serialize)]
struct FoundFeature {
    feature: String,
    places: Vec<String>,
}

/// The verdict for one version.
#[derive(Serialize)]
struct Verdict {
    version: String,
    /// It refuses something, misreads something, or it cannot be said.
    refused: bool,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    feature: String,
    effect: Effect,
    text: String,
    places: Vec<String>,
}

impl Report {
    /// No version refuses or misreads anything.
    pub fn is_clean(&self) -> bool {
        self.versions.iter().all(|verdict| !verdict.refused)
    }

    /// As JSON, on one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a report is plain data")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for verdict in &self.versions {
            let says = if verdict.refused { "does not read all of" } else { "reads" };
            writeln!(f, "RocksDB {} {says} {}", verdict.version, self.db)?;
            for finding in &verdict.findings {
                let places = shown(&finding.places);
                writeln!(
                    f,
                    "  {:<8} {}: {} [{places}]",
                    finding.effect.word(),
                    finding.feature,
                    finding.text
                )?;
            }
        }
        Ok(())
    }
}

/// The first places, and how many more there are.
fn shown(places: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut text = places[..places.len().min(SHOWN)].join(", ");
    if places.len() > SHOWN {
        text += &format!(" and {} more", places.len() - SHOWN);
    }
    text
}

/// Looks at the database in `db` with the eyes of each version.
///
/// # Errors
/// There is no database, or its MANIFEST cannot be read, or nothing says where its tables are.
pub fn check(db: &Path, versions: &[Version]) -> Result<Report, Error> {
    let facts = Facts::gather(db, &Env::posix())?;
    let verdicts = versions.iter().map(|version| verdict(&facts, version)).collect();
    let found = facts
        .features
        .iter()
        .map(|(feature, places)| FoundFeature { feature: Rule::of(feature).name, places: places.clone() });
    Ok(Report { db: db.display().to_string(), found: found.collect(), versions: verdicts })
}

fn verdict(facts: &Facts, version: &Version) -> Verdict {
    let mut findings = Vec::new();
    for (feature, places) in &facts.features {
        let rule = Rule::of(feature);
        if rule.applies_to(version.number) {
            let (feature, effect, text) = (rule.name, rule.effect, rule.text);
            findings.push(Finding { feature, effect, text, places: places.clone() });
        }
    }
    findings.sort_by_key(|finding| finding.effect);
    let refused = findings.iter().any(|finding| finding.effect != Effect::Note);
    Verdict { version: version.to_string(), refused, findings }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/made").join(name)
    }

    fn refusing(name: &str) -> Vec<String> {
        let versions: Vec<Version> = ["6.29.5", "7.10", "8.11.4", "9.11.2", "10.10.1.1", "11.8.1"]
            .map(|text| text.parse().unwrap())
            .into();
        let report = check(&fixture(name), &versions).unwrap();
        let refused = report.versions.iter().filter(|verdict| verdict.refused);
        refused.map(|verdict| verdict.version.clone()).collect()
    }

    #[test]
    fn each_feature_is_refused_by_the_versions_before_it() {
        for (name, expected) in [
            ("6.29.5-defaults", &[][..]),
            ("6.29.5-wal-recycled", &[]),
            ("11.8.1-delete-range", &["6.29.5", "7.10", "8.11.4", "9.11.2"]),
            ("11.8.1-fv6", &["6.29.5", "7.10"]),
            ("11.8.1-fv4", &[]),
            ("8.11.4-put-entity", &["6.29.5"]),
            ("8.11.4-blob", &[]),
            ("11.8.1-separated-kv", &["6.29.5", "7.10", "8.11.4", "9.11.2", "10.10.1.1"]),
        ] {
            assert_eq!(refusing(name), expected, "{name}");
        }
    }

    #[test]
    fn a_compressed_wal_is_found_in_the_log_alone() {
        let report = check(&fixture("11.8.1-wal-zstd"), &["7.10".parse().unwrap()]).unwrap();
        let wal = report.found.iter().find(|found| found.feature.contains("compressed WAL")).unwrap();
        assert!(wal.places.iter().all(|place| place.ends_with(".log")), "{:?}", wal.places);
        assert!(
            report.json().contains("\"refused\":true") && report.to_string().contains("format_version 7")
        );
    }

    #[test]
    fn what_a_killed_process_leaves_never_ends_for_those_who_skip_damage() {
        let temp = tempfile::tempdir().unwrap();
        let (live, killed) = (temp.path().join("live"), temp.path().join("killed"));
        let options = outcrop::DbOptions { create_if_missing: true, ..Default::default() };
        let db = outcrop::Db::builder(&live).options(options).env(Env::posix()).open().unwrap();
        db.put(b"k", b"v").unwrap();
        std::fs::create_dir(&killed).unwrap();
        for entry in std::fs::read_dir(&live).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), killed.join(entry.file_name())).unwrap();
        }
        drop(db);
        let names = |dir: &Path, version: &str| -> Vec<String> {
            let report = check(dir, &[version.parse().unwrap()]).unwrap();
            assert!(report.is_clean(), "{report}");
            let findings = report.versions.iter().flat_map(|verdict| &verdict.findings);
            findings.map(|finding| finding.feature.clone()).filter(|name| name.contains("go on")).collect()
        };
        assert_eq!(names(&killed, "7.10.2").len(), 2);
        let newer = names(&killed, "11.8.1");
        assert!(newer.len() == 1 && newer[0].contains("secondary"), "{newer:?}");
        assert!(names(&live, "7.10.2").is_empty(), "a WAL ends with its last record once it is closed");
    }

    #[test]
    fn versions_are_two_numbers_at_least_and_not_too_old() {
        for text in ["6", "x", "6.29.x", "", "6.28.2", "5.18"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        assert_eq!("10.10.1.1".parse::<Version>().unwrap().number, (10, 10));
    }

    #[test]
    fn what_is_no_database_is_an_error() {
        assert!(check(Path::new(env!("CARGO_MANIFEST_DIR")), &[]).is_err());
    }
}
