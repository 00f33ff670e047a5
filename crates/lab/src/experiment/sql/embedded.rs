//! Embedded engines beside servers: the engine's operation that stands for a statement.
//!
//! ```text
//! load          every row, in the order of keys, with WAL       point-query      a lookup by key
//! postwrite     flush, wait for compaction                      update-nonindex  a put of the key, durable as the target says
//! ```
//! A row is a key of eight bytes and a value as long as the row's other columns. Other tests have no counterpart: indexes beside the
//! key, ranges of statements and transactions are the server's.

use super::{Commit, EmbeddedSet};
use crate::experiment::check::{Checked, did_you_mean, wrong_value};
use crate::experiment::steps::{PlannedStep, Sizes};
use crate::targets::maven;
use outcrop_lab_load::database::Durability;
use outcrop_lab_load::{Step, StepKind};
use outcrop_lab_sql::sysbench::tests::Shape;
use outcrop_lab_sql::{Load, SqlStep};

/// The name of the engine that is linked into this program.
pub(crate) const OWN: &str = "outcrop";

impl Commit {
    /// The place that a commit has reached when it is answered.
    pub fn durability(self) -> Durability {
        match self {
            Commit::Synced => Durability::Sync,
            Commit::Unsynced => Durability::Wal,
        }
    }

    /// The name of it in targets.
    pub fn name(self) -> &'static str {
        match self {
            Commit::Synced => "synced",
            Commit::Unsynced => "unsynced",
        }
    }
}

/// Refuses an engine that there is not.
pub(super) fn check(set: &EmbeddedSet) -> Checked {
    let named = set.engine.as_str();
    let (name, version) =
        named.split_once('@').map_or((named, None), |(name, version)| (name, Some(version)));
    if set.commit.is_empty() {
        return wrong_value(
            "embedded",
            named,
            format!("engine {named}: commit is a list of synced and unsynced"),
        );
    }
    let known: Vec<String> = maven::locked_engines().into_iter().map(|engine| engine.name).collect();
    let known = || known.iter().map(String::as_str).chain([OWN]);
    if known().all(|one| one != name) {
        let hint = did_you_mean(name, known());
        return wrong_value("embedded", named, format!("there is no engine \"{name}\"{hint}"));
    }
    match (name == OWN, version) {
        (true, Some(_)) => {
            wrong_value("embedded", named, format!("{OWN} is this program's own: leave the version out"))
        }
        (false, None) => {
            wrong_value("embedded", named, format!("engine {named} needs a version as in {named}@1.2.3"))
        }
        _ => Ok(()),
    }
}

/// `planned`, a step of a server, as an engine of the same experiment does it; `None` if it has nothing that does the same.
pub fn on_engine(planned: &PlannedStep, sizes: &Sizes, durability: Durability) -> Option<PlannedStep> {
    let sql = planned.sql.as_ref()?;
    let rows = sql.rows * u64::from(sql.tables);
    let (kind, durability) = match &sql.load {
        Load::SysbenchLoad => (StepKind::FillSeq, Durability::Wal),
        Load::Postwrite(_) => (StepKind::FlushAndWait, Durability::Wal),
        Load::Sysbench(_) => (kind_of(sql)?, durability),
        Load::Insert(_) => return None,
    };
    let ops = match kind {
        StepKind::FillSeq => Some(rows),
        other => other.is_upkeep().then_some(1),
    };
    let threads = if kind == StepKind::FillSeq { 1 } else { planned.step.threads };
    let step = Step {
        kind,
        ops,
        threads,
        durability,
        num: rows,
        writer_num: rows,
        key_size: sizes.key_size,
        value_size: sizes.value_size,
        layout: sizes.layout,
        redundancy: sizes.redundancy,
        ..planned.step.clone()
    };
    Some(PlannedStep { step, sql: None, ..planned.clone() })
}

fn kind_of(sql: &SqlStep) -> Option<StepKind> {
    match sql.test()?.shape {
        Shape::Point => Some(StepKind::ReadRandom),
        Shape::UpdateNonindex => Some(StepKind::Overwrite),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::sql::parse;

    const TEXT: &str = "title = 't'\nsteps = ['load', 'postwrite', 'update-nonindex.c4', 'point-query', 'scan']\n[workload]\n\
        kind = 'sysbench'\nrows = 1000\ntables = 2\nseconds = 3\n[[target]]\nserver = 'postgres@18.x'\n\
        [step.'update-nonindex.c4']\nkind = 'update-nonindex'\nclients = 4\n[[embedded]]\nengine = 'outcrop'\n";

    #[test]
    fn statements_have_the_operation_that_does_the_same_or_none() {
        let experiment = parse("t.toml", TEXT).unwrap();
        assert_eq!(experiment.embedded[0].commit, [Commit::Synced], "that is what is compared");
        let sizes = experiment.sizes(1 << 30);
        let steps = experiment.planned_steps(2);
        let on = |number: usize| on_engine(&steps[number], &sizes, Durability::Sync);
        let load = on(0).unwrap();
        assert_eq!((load.step.kind, load.step.ops, load.step.num), (StepKind::FillSeq, Some(2000), 2000));
        assert!(load.is_load() && load.sql.is_none());
        assert_eq!((on(1).unwrap().step.kind, on(1).unwrap().step.ops), (StepKind::FlushAndWait, Some(1)));
        let update = on(2).unwrap().step;
        assert_eq!(
            (update.kind, update.threads, update.durability),
            (StepKind::Overwrite, 4, Durability::Sync)
        );
        assert_eq!((update.seconds, update.value_size, update.ops), (4.5, 180, None));
        assert_eq!(on(3).unwrap().step.kind, StepKind::ReadRandom);
        assert!(on(4).is_none(), "an engine has no scan with a condition");
    }

    #[test]
    fn an_engine_that_there_is_not_is_refused_with_the_nearest() {
        let refused =
            |engine: &str| parse("t.toml", &TEXT.replace("'outcrop'", &format!("'{engine}'"))).unwrap_err();
        assert!(refused("outcorp").contains("did you mean \"outcrop\""), "{}", refused("outcorp"));
        assert!(refused("rocksdb").contains("needs a version"));
        assert!(refused("outcrop@1").contains("leave the version out"));
        let insert = TEXT.replace("'sysbench'", "'insert-benchmark'").replace("tables = 2\n", "");
        let insert = insert.split("[step").next().unwrap().replace("steps = ", "# ")
            + "[[embedded]]\nengine = 'outcrop'\n";
        let error = parse("t.toml", &insert).unwrap_err();
        assert!(error.contains("engines have no Insert Benchmark"), "{error}");
    }
}
