//! Views of an experiment: the same measurements, of some of its targets.
//!
//! "All versions" and "latest versions" are two reports of one experiment. A view is judged for itself: fewer cells, so
//! fewer chance calls to allow for. The base stays in every view, and so does its A/A twin.

use crate::analysis::results::Results;
use crate::report::site::version_key;

/// Which targets a report or a comparison is of.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct View {
    /// Only these targets, and the base.
    #[arg(long, value_delimiter = ',', conflicts_with = "latest")]
    pub targets: Vec<String>,
    /// Only the last release of each major version, targets without a version, and the base.
    #[arg(long)]
    pub latest: bool,
}

impl View {
    /// Whether it is of all targets.
    pub fn is_all(&self) -> bool {
        self.targets.is_empty() && !self.latest
    }

    /// The part of `results` that is in view, with `base` to compare with.
    ///
    /// # Errors
    /// Names the targets there are.
    pub fn of(&self, results: Results, base: usize) -> Result<Results, String> {
        if self.is_all() {
            return Ok(results);
        }
        let named = self.targets.iter().map(|name| results.target(name)).collect::<Result<Vec<_>, _>>()?;
        let plan = &results.experiment.plan;
        let chosen =
            |index: usize| if self.latest { is_latest(&results, index) } else { named.contains(&index) };
        let stays = |index: usize| [base, plan.base].contains(&index) || chosen(index);
        let kept: Vec<usize> = (0..plan.targets.len())
            .filter(|index| stays(plan.targets[*index].twin_of.unwrap_or(*index)))
            .collect();
        Ok(keep(results, &kept))
    }
}

/// Whether no other target of the same line has a later release of the same major version.
fn is_latest(results: &Results, index: usize) -> bool {
    let targets = &results.experiment.plan.targets;
    let own = &targets[index];
    let Some(version) = own.version.as_deref().map(version_key) else { return true };
    targets
        .iter()
        .filter(|target| target.line == own.line)
        .filter_map(|target| target.version.as_deref())
        .all(|other| {
            let other = version_key(other);
            other.first() != version.first() || other <= version
        })
}

/// The results of the targets with the numbers `kept`, which then are counted from 0 in this order.
fn keep(mut results: Results, kept: &[usize]) -> Results {
    let place = |target: usize| kept.iter().position(|index| *index == target);
    results.experiment.plan.keep(kept);
    let moved = |target: &mut usize| place(*target).map(|new| *target = new).is_some();
    results.sessions.retain_mut(|session| moved(&mut session.target));
    results.measured.retain_mut(|row| moved(&mut row.target));
    results.unreported.retain_mut(|row| moved(&mut row.target));
    results.options.retain_mut(|(target, _)| moved(target));
    results.profiles.retain_mut(|profile| moved(&mut profile.target));
    let sessions = &results.sessions;
    results.engine_logs.retain(|id, _| sessions.iter().any(|session| session.id == *id));
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake_record;

    /// Three targets: the base a, b and the twin of a. With versions, as if a were 6.1, b 6.29.
    fn results() -> Results {
        let (_temp, store) =
            fake_record(5, &["fillseq"], 1, &mut |session| vec![("ops_sec", 1000.0 + session.target as f64)]);
        Results::load(&store, 1).unwrap()
    }

    #[test]
    fn a_view_holds_what_was_asked_for_the_base_and_its_twin() {
        let view = |targets: &[&str]| View {
            targets: targets.iter().map(ToString::to_string).collect(),
            latest: false,
        };
        let own = view(&["outcrop/a"]).of(results(), 0).unwrap();
        assert_eq!(own.target_names(), ["outcrop/a", "outcrop/a (A/A)"]);
        assert_eq!(
            (own.experiment.plan.targets[1].twin_of, own.measured.len(), own.sessions.len()),
            (Some(0), 10, 10)
        );
        assert!(
            own.experiment.plan.blocks.iter().all(|block| block.len() == 2 && block.iter().all(|t| *t < 2))
        );
        assert_eq!(own.median("fillseq", 1, "ops_sec"), Some(1002.0), "numbers moved with their targets");
        assert_eq!(
            view(&["outcrop/a"]).of(results(), 1).unwrap().target_names().len(),
            3,
            "what is compared with stays"
        );
        assert_eq!(view(&[]).of(results(), 0).unwrap().target_names().len(), 3);
        let error = view(&["x"]).of(results(), 0).err().unwrap();
        assert!(error.contains("outcrop/b"), "{error}");
    }

    #[test]
    fn the_latest_view_has_the_last_release_of_each_major_version_by_number() {
        let mut results = results();
        let mut versions = |all: &[&str]| {
            let first = results.experiment.plan.targets[0].clone();
            results.experiment.plan.targets = all
                .iter()
                .map(|version| {
                    let mut target = first.clone();
                    (target.version, target.line) = (Some(version.to_string()), "rocksdb".to_string());
                    target
                })
                .collect();
            (0..all.len())
                .filter(|index| is_latest(&results, *index))
                .map(|index| all[index].to_string())
                .collect()
        };
        let latest: Vec<String> = versions(&["8.9.1", "8.11.4", "9.9.3", "9.10.0", "10.2.1"]);
        assert_eq!(latest, ["8.11.4", "9.10.0", "10.2.1"]);
    }
}
