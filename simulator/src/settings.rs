//! Which pairs of settings were lived through: two options of a database and one of its column families, or an option and a feature.
//!
//! The plan of a history says that by itself, so nothing is told by its process. Pairs of which one excludes the other
//! (aligned blocks with compression, say) are among those there are, and never met.

use crate::plan::{self, Cycle, Limits};
use outcrop_options::file::print;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Histories whose plans show which values are drawn at all.
const PLANS: u64 = 400;

/// A setting: its name and its value, by number.
type Setting = (u16, u16);

/// Settings and the pairs of them that were met.
pub struct Settings {
    /// The values of each name of which several are drawn.
    values: BTreeMap<String, BTreeSet<String>>,
    met: HashSet<(Setting, Setting)>,
}

impl Settings {
    /// Those of the plans of some histories.
    pub fn drawn() -> Settings {
        let mut drawn: HashMap<String, HashSet<String>> = HashMap::new();
        for seed in 1..=PLANS {
            for (name, value) in of_history(&Limits::of(seed)).into_iter().flatten() {
                drawn.entry(name).or_default().insert(value);
            }
        }
        let several = drawn.into_iter().filter(|(_, values)| values.len() > 1);
        let values = several.map(|(name, values)| (name, values.into_iter().collect())).collect();
        Settings { values, met: HashSet::new() }
    }

    /// A history was lived through.
    pub fn add(&mut self, limits: &Limits) {
        for settings in of_history(limits) {
            let mut numbers: Vec<Setting> =
                settings.iter().filter_map(|(name, value)| self.number(name, value)).collect();
            numbers.sort_unstable();
            for (at, one) in numbers.iter().enumerate() {
                self.met.extend(numbers[at + 1..].iter().map(|other| (*one, *other)));
            }
        }
    }

    fn number(&self, name: &str, value: &str) -> Option<Setting> {
        let at = self.values.keys().position(|known| known == name)?;
        let value = self.values[name].iter().position(|known| known == value)?;
        Some((at as u16, value as u16))
    }

    /// How many pairs were met, of how many values of two names, and how many names there are.
    pub fn summary(&self) -> (usize, usize, usize) {
        let sizes: Vec<usize> = self.values.values().map(BTreeSet::len).collect();
        let sum: usize = sizes.iter().sum();
        let squares: usize = sizes.iter().map(|size| size * size).sum();
        (self.met.len(), (sum * sum - squares) / 2, sizes.len())
    }
}

/// The settings of each cycle of a history with each of its column families.
fn of_history(limits: &Limits) -> Vec<Vec<(String, String)>> {
    (0..plan::cycles(limits)).flat_map(|number| of_cycle(&plan::cycle(limits, number))).collect()
}

fn of_cycle(cycle: &Cycle) -> Vec<Vec<(String, String)>> {
    let drawn = cycle.drawn;
    let features = [
        ("merges", drawn.merges.to_string()),
        ("transactions", format!("{:?}", drawn.transactions)),
        ("shared", drawn.shared.to_string()),
        ("checkpoints", drawn.checkpoints.to_string()),
        ("backups", drawn.backups.to_string()),
        ("families", drawn.families.to_string()),
        ("ingestion", drawn.ingestion.to_string()),
        ("listener", drawn.listener.to_string()),
        ("end", format!("{:?}", cycle.end)),
        ("early", cycle.ends_after.is_some().to_string()),
        ("threads", cycle.threads.to_string()),
        ("sync_one_in", cycle.shape.sync_one_in.to_string()),
        ("keys", cycle.shape.keys.to_string()),
        ("longest", cycle.shape.longest.to_string()),
        ("change_fails", (cycle.trouble.change_fails_one_in > 0).to_string()),
        ("read_fails", (cycle.trouble.read_fails_one_in > 0).to_string()),
        ("bit_flips", (cycle.trouble.bit_flips_one_in > 0).to_string()),
    ];
    let features: Vec<(String, String)> =
        features.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let families = cycle.families.iter().map(|family| {
        let text = print(&cycle.db, &[("default".to_string(), family.clone())]);
        let options = text.lines().filter_map(|line| line.trim().split_once('='));
        let options = options.map(|(name, value)| (format!("options.{name}"), value.to_string()));
        options.chain(features.iter().cloned()).collect()
    });
    families.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_grow_with_histories_and_stay_within_what_there_is() {
        let mut settings = Settings::drawn();
        assert_eq!(settings.summary().0, 0);
        settings.add(&Limits::of(1));
        let (one, all, names) = settings.summary();
        (2..40).for_each(|seed| settings.add(&Limits::of(seed)));
        let (many, still, _) = settings.summary();
        assert!(names > 60, "{names} names");
        assert!(0 < one && one < many && many < all && still == all, "{one}, {many} of {all}");
        assert_eq!(settings.number("options.write_buffer_size", "no number"), None);
    }
}
