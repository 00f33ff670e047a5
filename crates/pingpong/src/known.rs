//! The abilities of the versions of RocksDB as trials have shown them: `known.json`. A version does not change, so its trials need
//! not be played in each run; Outcrop's are.
//!
//! `cargo xtask compatibility` plays all trials, and writes the file.
//!
//! Invariant: the file counts only for the trials that it was made from: [`Known::engines`] compares their digest.

use crate::features::{Abilities, Engines, OUTCROP, all};
use crate::trials::{newest_writer, trial};
use outcrop_base::hash::xxh3_64;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The file, as part of the program.
const TEXT: &str = include_str!("known.json");
/// How it is made.
const REMEDY: &str = "cargo xtask compatibility makes it";

/// By feature or option the versions that have it, between blanks.
type Having = BTreeMap<String, String>;

/// The contents of the file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Of the trials.
    digest: String,
    /// All of them.
    versions: Vec<String>,
    writes: Having,
    reads: Having,
    options: Having,
}

impl Known {
    /// The file of this program.
    ///
    /// # Errors
    /// It is not such a file.
    pub fn of_program() -> Result<Known, String> {
        serde_json::from_str(TEXT).map_err(|error| format!("known.json: {error}; {REMEDY}"))
    }

    /// The abilities of all engines but Outcrop.
    pub fn of(engines: &Engines) -> Known {
        let references: Engines = engines
            .iter()
            .filter(|(name, _)| *name != OUTCROP)
            .map(|(name, has)| (name.clone(), has.clone()))
            .collect();
        let having = |set: fn(&Abilities) -> &BTreeSet<String>| {
            let mut having: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (version, abilities) in &references {
                for one in set(abilities) {
                    having.entry(one.clone()).or_default().push(version);
                }
            }
            having.into_iter().map(|(one, versions)| (one, versions.join(" "))).collect()
        };
        Known {
            digest: digest(&references),
            versions: references.keys().cloned().collect(),
            writes: having(|abilities| &abilities.writes),
            reads: having(|abilities| &abilities.reads),
            options: having(|abilities| &abilities.options),
        }
    }

    /// The abilities of its versions. None if `libraries` has others: what one reads was written by the newest of all.
    ///
    /// # Errors
    /// The file was made from other trials than this program's.
    pub fn engines(&self, libraries: &BTreeMap<String, PathBuf>) -> Result<Option<Engines>, String> {
        if !libraries.keys().filter(|name| *name != OUTCROP).eq(&self.versions) {
            return Ok(None);
        }
        let one = |version: &String| Abilities {
            writes: of_version(&self.writes, version),
            reads: of_version(&self.reads, version),
            options: of_version(&self.options, version),
        };
        let engines = self.versions.iter().map(|version| (version.clone(), one(version))).collect();
        if digest(&engines) != self.digest {
            return Err(format!("known.json is of other trials than this program's; {REMEDY}"));
        }
        Ok(Some(engines))
    }

    /// The text of the file.
    pub fn print(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("it is plain data");
        text + "\n"
    }
}

fn of_version(having: &Having, version: &str) -> BTreeSet<String> {
    let those = having.iter().filter(|(_, versions)| versions.split(' ').any(|one| one == version));
    those.map(|(one, _)| one.clone()).collect()
}

/// Of the text of every trial that is played among `references`.
fn digest(references: &Engines) -> String {
    let mut text = String::new();
    for feature in all() {
        let writer = newest_writer(references, &feature);
        for (version, has) in references {
            let player = (version.as_str(), &has.options);
            text += &trial(&feature, player, player).print();
            if let Some(writer) = &writer {
                text += &trial(&feature, (writer, &references[writer].options), player).print();
            }
        }
    }
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries<'v>(versions: impl IntoIterator<Item = &'v str>) -> BTreeMap<String, PathBuf> {
        versions.into_iter().map(|version| (version.to_string(), PathBuf::new())).collect()
    }

    /// Fails where trials, choices or operations have changed and the file has not.
    #[test]
    fn the_file_is_of_the_trials_of_this_program() {
        let known = Known::of_program().unwrap();
        let versions = known.versions.iter().map(String::as_str).chain([OUTCROP]);
        let engines = known.engines(&libraries(versions)).unwrap().expect("all its versions are there");
        assert_eq!(Known::of(&engines), known);
        for (version, has) in &engines {
            assert!(has.writes.contains("delete range") && has.reads.contains("delete range"), "{version}");
        }
        let newest = &engines["11.8.1"];
        assert!(newest.writes.is_superset(&engines["6.29.5"].writes));
    }

    #[test]
    fn other_versions_are_tried() {
        let known = Known::of_program().unwrap();
        assert_eq!(known.engines(&libraries(["11.8.1", OUTCROP])).unwrap().map(|_| ()), None);
    }

    #[test]
    fn a_file_of_other_trials_is_refused() {
        let known = Known { digest: "0".to_string(), ..Known::of_program().unwrap() };
        let versions: Vec<&str> = known.versions.iter().map(String::as_str).collect();
        let error = known.engines(&libraries(versions)).map(|_| ()).unwrap_err();
        assert!(error.contains("other trials") && error.contains("cargo xtask compatibility"), "{error}");
    }
}
