//! The machine an experiment runs on: what it is, and whether it is fit to measure on.
//!
//! ```text
//! facts.rs: reads /proc and /sys    checks.rs: what each value should be    canary.rs: how fast it is right now
//! ```
//! Everything here only looks; nothing is changed. A file that cannot be read is "not known", never an error.

pub mod canary;
pub mod checks;
pub mod facts;

pub use checks::{Check, Status, check};
pub use facts::Facts;

use serde::{Deserialize, Serialize};

/// What is recorded with each experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Host {
    /// What the machine is.
    pub facts: Facts,
    /// How it is set up.
    pub checks: Vec<Check>,
    /// How fast it was.
    pub canary: canary::Canary,
}

/// Whether the machine's host takes free memory back within seconds.
pub fn takes_free_pages_back() -> bool {
    checks::gives_free_pages_back(&facts::Root::default())
}

impl Host {
    /// Looks at this machine, and at the file system of `data`.
    pub fn read(data: &std::path::Path) -> Host {
        let root = facts::Root::default();
        let facts = Facts::read(&root, data);
        let checks = check(&root, &facts);
        Host { facts, checks, canary: canary::run() }
    }

    /// The checks as a table of at most 80 columns, then what to do.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            text.push_str(&format!(
                "{} {:<22} {:<24} wanted: {}\n",
                check.status.word(),
                check.name,
                check.value,
                check.wanted
            ));
        }
        let to_do = self.checks.iter().filter(|check| matches!(check.status, Status::Warn | Status::Fail));
        for check in to_do {
            text.push_str(&format!("\n{}: {}\n", check.name, check.why));
            if !check.fix.is_empty() {
                text.push_str(&format!("  fix: {}\n", check.fix));
            }
        }
        let canary = &self.canary;
        text.push_str(&format!(
            "\ncanary: {:.2} ns per step of arithmetic, {:.1} ns per cache miss, {:.1} GB/s copying\n",
            canary.arithmetic_ns, canary.miss_ns, canary.copy_gb_per_second
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described_in_eighty_columns_and_survives_json() {
        let host = Host::read(std::path::Path::new("."));
        assert!(host.facts.cores > 0 && host.facts.memory_bytes > 0);
        let back: Host = serde_json::from_str(&serde_json::to_string(&host).unwrap()).unwrap();
        assert_eq!(back.checks.len(), host.checks.len());
        let text = host.text();
        let table = text.lines().take(host.checks.len());
        table.for_each(|line| assert!(line.chars().count() <= 80, "{line}"));
    }
}
