//! Short names of targets: the parts that tell them apart, without those they share. The same on every page.
//!
//! ```text
//! rocksdb@6.29.5/bits10   rocksdb@11.8.1/bits10   rocksdb@11.8.1/bits10 (A/A)   ->   6.29.5   11.8.1   A/A
//! outcrop                 rocksdb@11.8.1          rocksdb@11.8.1 (A/A)          ->   outcrop  rocksdb@11.8.1  A/A
//! ```
//! Invariant: no two targets have one name; where leaving out what they share would do that, nothing is left out.

use crate::planning::plan::PlannedTarget;

/// Letters that the terminal has room for above a column.
pub const COLUMN: usize = 14;

/// Name of the base's second entry.
const TWIN: &str = "A/A";

/// Engine, version and build, and then allocator and configuration.
fn parts(name: &str) -> (&str, &str) {
    name.split_at(name.find(['+', '/']).unwrap_or(name.len()))
}

/// The short name of each target.
pub fn short(targets: &[PlannedTarget]) -> Vec<String> {
    let real = || targets.iter().filter(|target| target.twin_of.is_none());
    if real().count() < 2 {
        return targets
            .iter()
            .map(|target| if target.twin_of.is_some() { TWIN.to_string() } else { target.name.clone() })
            .collect();
    }
    let heads: Vec<&str> = real().map(|target| parts(&target.name).0).collect();
    let tails: Vec<&str> = real().map(|target| parts(&target.name).1).collect();
    let engine = real().next().map_or(String::new(), |target| format!("{}@", target.engine));
    let is_one = |all: &[&str]| all.iter().all(|one| *one == all[0]);
    let of_one_engine = heads.iter().all(|head| head.starts_with(&engine));
    let cut = |target: &PlannedTarget| {
        let (head, tail) = parts(&target.name);
        match (is_one(&heads), is_one(&tails)) {
            _ if target.twin_of.is_some() => TWIN.to_string(),
            (true, false) => tail.trim_start_matches(['/', '+']).to_string(),
            (_, same_tail) => {
                let head = if of_one_engine { &head[engine.len()..] } else { head };
                if same_tail { head.to_string() } else { format!("{head}{tail}") }
            }
        }
    };
    let names: Vec<String> = targets.iter().map(cut).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == names.len() && names.iter().all(|name| !name.is_empty()) {
        return names;
    }
    targets.iter().map(|target| target.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake_record;

    fn of(names: &[&str]) -> Vec<String> {
        let (_temp, store) = fake_record(2, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let first = store.experiment(1).unwrap().plan.targets[0].clone();
        let targets: Vec<PlannedTarget> = names
            .iter()
            .map(|name| PlannedTarget {
                name: name.to_string(),
                engine: name.split(['@', '/', '+']).next().unwrap().to_string(),
                twin_of: name.ends_with("(A/A)").then_some(0),
                ..first.clone()
            })
            .collect();
        short(&targets)
    }

    #[test]
    fn names_say_what_tells_targets_apart() {
        assert_eq!(
            of(&["rocksdb@6.29.5/b", "rocksdb@11.8.1/b", "rocksdb@6.29.5/b (A/A)"]),
            ["6.29.5", "11.8.1", "A/A"]
        );
        assert_eq!(of(&["outcrop", "rocksdb@11.8.1", "outcrop (A/A)"]), ["outcrop", "rocksdb@11.8.1", "A/A"]);
        assert_eq!(of(&["outcrop/a", "outcrop/b"]), ["a", "b"]);
        assert_eq!(
            of(&["rocksdb@1+jemalloc", "rocksdb@1"]),
            ["rocksdb@1+jemalloc", "rocksdb@1"],
            "one would have none"
        );
        assert_eq!(of(&["rocksdb@1-gcc", "rocksdb@1-clang", "rocksdb@2-gcc"]), ["1-gcc", "1-clang", "2-gcc"]);
        assert_eq!(of(&["rocksdb@1/a", "rocksdb@2/b"]), ["1/a", "2/b"]);
        assert_eq!(of(&["outcrop/a", "outcrop/a (A/A)"]), ["outcrop/a", "A/A"], "one target keeps its name");
    }
}
