//! The machine an experiment runs on: its facts, and whether it is fit to measure on.
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

use crate::report::text::{cut, paragraph};
use serde::{Deserialize, Serialize};

/// The facts that are recorded with each experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Host {
    /// The facts about the machine.
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

    /// The facts about the machine, the checks as a table, then advice for those that fail; at most 80
    /// columns.
    pub fn text(&self) -> String {
        let facts = &self.facts;
        let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / (1u64 << 30) as f64);
        let mut text = String::new();
        for (name, value) in [
            ("processor", format!("{}, {} logical cores: {}", facts.cpu, facts.cores, facts.size())),
            ("memory", gigabytes(facts.memory_bytes)),
            ("system", format!("{}, Linux {}, {}", facts.system, facts.kernel, facts.libc)),
            (
                "data on",
                format!(
                    "{} on {}, {} free of {}",
                    facts.filesystem,
                    facts.device_name(),
                    gigabytes(facts.disk_free_bytes),
                    gigabytes(facts.disk_bytes)
                ),
            ),
        ] {
            text.push_str(&paragraph(&format!("{name:<10} "), &value, 11));
        }
        if !facts.not_counted.is_empty() {
            text.push_str(&paragraph("not counted ", &facts.not_counted.join(", "), 11));
        }
        text.push_str("\n     setting                is                       wanted\n");
        for check in &self.checks {
            let line = format!(
                "{} {:<22} {:<24} {}",
                check.status.word(),
                cut(&check.name, 22),
                check.value,
                cut(&check.wanted, 27)
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let to_do = self.checks.iter().filter(|check| matches!(check.status, Status::Warn | Status::Fail));
        for check in to_do {
            text.push('\n');
            text.push_str(&paragraph("", &format!("{}: {}", check.name, check.why), 2));
            if !check.fix.is_empty() {
                text.push_str(&paragraph("  fix: ", &check.fix, 7));
            }
        }
        let canary = &self.canary;
        let speed = format!(
            "{:.2} ns per step of arithmetic, {:.1} ns per cache miss, {:.1} GB/s copying",
            canary.arithmetic_ns, canary.miss_ns, canary.copy_gb_per_second
        );
        text.push('\n');
        text + &paragraph("canary: ", &speed, 8)
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
        text.lines().for_each(|line| assert!(line.chars().count() <= 80, "{line}"));
        assert!(host.checks.iter().all(|check| text.contains(&check.name)) && text.contains("canary: "));
    }
}
