//! One case: the life of one database directory, complete enough to be replayed.
//!
//! A case is written as one JSON object per line: the header, then for each phase its header and its
//! operations, so that a shrunk case reads like a script.

use crate::mistake::Opening;
use crate::operation::Operation;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How merge operands are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// No merge operator.
    #[default]
    None,
    /// `UInt64AddOperator`.
    Add,
    /// `StringAppendOperator`: joined by commas.
    Append,
}

/// A column family, whichever engine opens it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Merge operator.
    pub merge: Merge,
    /// Keys are ordered from the largest to the smallest.
    pub reverse: bool,
    /// Prefix extractor, RocksDB's text; engines that have none open the database without.
    pub prefix: Option<String>,
}

impl Family {
    /// A column family with the options every engine has.
    pub fn plain(name: &str) -> Family {
        Family { name: name.to_string(), merge: Merge::None, reverse: false, prefix: None }
    }

    /// Length of a fixed prefix.
    pub fn prefix_len(&self) -> Option<usize> {
        self.prefix.as_ref()?.rsplit('.').next()?.parse().ok()
    }
}

/// As what every engine opens the database of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A plain database.
    #[default]
    Plain,
    /// A TransactionDB, whose other functions work as without transactions.
    Transactions,
    /// A DBWithTTL, whose values carry the time of their write and do not expire within a run (in `expiry/` they do).
    Ttl,
}

impl Access {
    fn is_plain(&self) -> bool {
        *self == Access::Plain
    }
}

/// How a phase ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// `rocksdb_close`.
    Close,
    /// SIGKILL while nothing is asked of the engine (its background work may be running).
    Kill,
    /// SIGKILL while the last `writes` operations of the phase are on their way: so many microseconds after they
    /// were sent. Each of them may or may not be there afterwards, in order.
    KillWriting {
        /// Operations not waited for.
        writes: usize,
        /// Microseconds.
        after_micros: u64,
    },
}

/// One engine's turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the engine.
    pub engine: String,
    /// Database options, `name=value` each.
    pub options: Vec<String>,
    /// Options of each column family of the case.
    pub family_options: Vec<Vec<String>>,
    /// How it ends.
    pub end: End,
    /// Ways to open it that fail, tried before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub openings: Vec<Opening>,
    /// Nothing that is written goes to the WAL. With `atomic_flush`, SIGKILL then takes all column families back to one point.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlogged: bool,
    /// Its operations, printed on lines of their own.
    #[serde(skip)]
    pub operations: Vec<Operation>,
}

impl Phase {
    /// A turn that does nothing, with options that are all defaults.
    pub fn idle(engine: &str, families: usize) -> Phase {
        Phase {
            engine: engine.to_string(),
            options: Vec::new(),
            family_options: vec![Vec::new(); families],
            end: End::Close,
            openings: Vec::new(),
            unlogged: false,
            operations: Vec::new(),
        }
    }

    /// Whether one of the options has this text.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }
}

/// The life of one database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The seed that it was generated from.
    pub seed: u64,
    /// Column families that may exist; `default` is the first.
    pub families: Vec<Family>,
    /// Those that exist from the start.
    pub initial: Vec<usize>,
    /// As what it is opened.
    #[serde(default, skip_serializing_if = "Access::is_plain")]
    pub access: Access,
    /// Turns; printed on lines of their own.
    #[serde(skip)]
    pub phases: Vec<Phase>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Case(Case),
    Phase(Phase),
    #[serde(untagged)]
    Operation(Operation),
}

impl Case {
    /// Its text.
    pub fn print(&self) -> String {
        let mut text = String::new();
        let mut line = |line: &Line| {
            let json = serde_json::to_string(line).expect("a case is plain data");
            let _ = writeln!(text, "{json}");
        };
        line(&Line::Case(self.clone()));
        for phase in &self.phases {
            line(&Line::Phase(phase.clone()));
            for operation in &phase.operations {
                line(&Line::Operation(operation.clone()));
            }
        }
        text
    }

    /// The case of a text; lines that start with `#` are comments.
    ///
    /// # Errors
    /// The line that does not parse, and why.
    pub fn parse(text: &str) -> Result<Case, String> {
        let mut case: Option<Case> = None;
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed = serde_json::from_str::<Line>(line)
                .map_err(|error| format!("line {}: {error}: {line}", number + 1))?;
            match (parsed, &mut case) {
                (Line::Case(header), None) => case = Some(header),
                (Line::Phase(phase), Some(case)) => case.phases.push(phase),
                (Line::Operation(operation), Some(case)) if !case.phases.is_empty() => {
                    case.phases.last_mut().expect("checked").operations.push(operation);
                }
                _ => return Err(format!("line {} is out of place: {line}", number + 1)),
            }
        }
        case.ok_or_else(|| "no case in the file".to_string())
    }

    /// Number of operations of all phases.
    pub fn operations(&self) -> usize {
        self.phases.iter().map(|phase| phase.operations.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Durability, Key, Record, Value};

    #[test]
    fn a_case_survives_its_text() {
        let write = Operation::Write {
            records: vec![Record::Put(0, Key(b"k\x00".to_vec()), Value::Fill(100, 3))],
            durability: Durability::Synced,
            direct: true,
        };
        let phase = Phase {
            engine: "outcrop".into(),
            options: vec!["max_open_files=20".into()],
            family_options: vec![vec!["compression=kZSTD".into()]],
            end: End::KillWriting { writes: 1, after_micros: 40 },
            unlogged: true,
            openings: vec![Opening::OtherOrder, Opening::Options(vec!["max_open_files=x".into()])],
            operations: vec![Operation::Wait, write],
        };
        let family = Family { merge: Merge::Append, ..Family::plain("default") };
        let case = Case {
            seed: 9,
            families: vec![family],
            initial: vec![0],
            access: Access::Ttl,
            phases: vec![phase],
        };
        assert_eq!(Case::parse(&format!("# why\n{}", case.print())).unwrap(), case);
        assert!(Case::parse("{\"wait\":1}").is_err());
        assert!(Case::parse("\"wait\"").unwrap_err().contains("out of place"));
    }
}
