//! Options that differ between two targets, as their engines resolved them: the first thing to ask of any
//! difference in speed.

use crate::analysis::results::Results;
use std::collections::BTreeMap;
use std::fmt;

/// One option that differs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Section and name.
    pub name: String,
    /// The base's value; absent if it has no such option.
    pub base: Option<String>,
    /// The target's.
    pub target: Option<String>,
}

impl Difference {
    /// Whether both have the option, with different values.
    pub fn is_of_both(&self) -> bool {
        self.base.is_some() && self.target.is_some()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.base, &self.target) {
            (Some(base), Some(target)) => write!(f, "{}: {base} -> {target}", self.name),
            (Some(base), None) => write!(f, "{}: {base}, an option that only the base has", self.name),
            (None, Some(target)) => write!(f, "{}: {target}, an option that only the target has", self.name),
            (None, None) => write!(f, "{}", self.name),
        }
    }
}

/// Options of the targets' OPTIONS files that differ in value, or that only one has; empty if either wrote none.
/// Those that only one version knows come last.
pub fn differences(results: &Results, base: usize, target: usize) -> Vec<Difference> {
    let of = |wanted: usize| {
        let found = results.options.iter().find(|(target, _)| *target == wanted);
        found.map(|(_, text)| parse(text))
    };
    match (of(base), of(target)) {
        (Some(base), Some(target)) => compare(&base, &target),
        _ => Vec::new(),
    }
}

/// Options of two OPTIONS files that differ in value, or that only one has.
pub fn between(base: &str, target: &str) -> Vec<Difference> {
    compare(&parse(base), &parse(target))
}

type Options = BTreeMap<String, String>;

/// An OPTIONS file as `section.name` and value. Names of files and the version itself are left out.
fn parse(text: &str) -> Options {
    let mut options = Options::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.split([' ', '/']).next().unwrap_or_default().to_string();
        } else if section != "Version"
            && let Some((name, value)) = line.split_once('=')
        {
            options.insert(format!("{section}.{name}"), value.to_string());
        }
    }
    options
}

fn compare(base: &Options, target: &Options) -> Vec<Difference> {
    let mut names: Vec<&String> = base.keys().chain(target.keys()).collect();
    names.sort();
    names.dedup();
    let mut differences: Vec<Difference> = names
        .into_iter()
        .filter(|name| base.get(*name) != target.get(*name))
        .map(|name| Difference {
            name: name.clone(),
            base: base.get(name).cloned(),
            target: target.get(name).cloned(),
        })
        .collect();
    differences.sort_by_key(|difference| difference.base.is_none() || difference.target.is_none());
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_options_come_before_new_ones() {
        let base = parse(
            "[Version]\n rocksdb_version=1\n[DBOptions]\n  a=1\n  b=2\n[CFOptions \"default\"]\n  c={x=1;y=2}\n",
        );
        let target = parse(
            "# note\n[Version]\n rocksdb_version=2\n[DBOptions]\n  a=1\n  aa=7\n  b=3\n[CFOptions \"default\"]\n c={x=1;y=2}\n",
        );
        let lines: Vec<String> = compare(&base, &target).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["DBOptions.b: 2 -> 3", "DBOptions.aa: 7, an option that only the target has"]);
    }
}
