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
        .filter(|name| !same(base.get(*name), target.get(*name)))
        .filter(|name| !(in_program(base, name) && in_program(target, name)))
        .map(|name| Difference {
            name: name.clone(),
            base: base.get(name).cloned(),
            target: target.get(name).cloned(),
        })
        .collect();
    differences.sort_by_key(|difference| difference.base.is_none() || difference.target.is_none());
    differences
}

/// Whether two values are one, as numbers or as texts.
fn same(base: Option<&String>, target: Option<&String>) -> bool {
    let number = |value: &String| {
        // `75` and `75.000000`, not `inf`; and no more digits than a float tells apart.
        let numeric = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
        value.parse::<f64>().ok().filter(|_| numeric && value.len() <= 15)
    };
    base == target
        || base
            .zip(target)
            .is_some_and(|(base, target)| number(base).is_some() && number(base) == number(target))
}

/// Whether an option that is there names a place among the program files of its server, where each version has its own.
fn in_program(options: &Options, name: &str) -> bool {
    let Some(value) = options.get(name) else { return true };
    let home = options.get("settings.basedir").map(|dir| dir.trim_end_matches('/'));
    home.is_some_and(|home| {
        !home.is_empty()
            && value.strip_prefix(home).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
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

    #[test]
    fn equal_numbers_and_the_places_of_program_files_are_no_differences() {
        let of = |version: &str, more: &str| {
            parse(&format!("[settings]\nbasedir=/s/my-{version}/\nlanguage=/s/my-{version}/share\n{more}"))
        };
        let base = of("5", "dirty=75\nlog=/s/my-5/log\nio=100\nrate=1.0\nlock=18446744073709551614\n");
        let target =
            of("8", "dirty=75.000000\nlog=/var/log\nio=200\nrate=1.0.1\nlock=18446744073709551614\n");
        let lines: Vec<String> = compare(&base, &target).iter().map(ToString::to_string).collect();
        let differing = [
            "settings.io: 100 -> 200",
            "settings.log: /s/my-5/log -> /var/log",
            "settings.rate: 1.0 -> 1.0.1",
        ];
        assert_eq!(lines, differing);
        // Beyond 2^53 two numbers may be one as floats.
        let large = |value: &str| parse(&format!("[settings]\nlock={value}\n"));
        assert_eq!(compare(&large("18446744073709551614"), &large("18446744073709551615")).len(), 1);
    }
}
