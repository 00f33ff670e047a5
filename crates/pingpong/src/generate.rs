//! A case from a seed: the engines that take turns, their options and operations.
//!
//! Everything is drawn from one stream, so a seed and the engines' abilities repeat a case. The rules of
//! well-formed use are asked while generating, on a model that assumes that nothing is lost.
//!
//! Next: `rules.rs`, `choices.rs`; `run.rs` plays what comes out.

use crate::case::{Access, Case, End, Family, Merge, Phase};
use crate::choices::{
    CHOICES, Choice, MISTAKES_OPERANDS, MUTABLE, OURS_ALONE, OURS_ALONE_IN_TRANSACTIONS, REFUSES_TTL, Scope,
    always, conflict, name, title,
};
use crate::features::{Engines, HASH_PREFIX, OUTCROP, PREFIXES};
use crate::mistake::{BadTable, BadTarget, Gone, Mistake, Opening, REFUSED_CHANGES, openings};
use crate::model::Model;
use crate::operation::{Durability, Ending, Key, Lookup, Move, Operation, Record, Value, View};
use crate::rules::{NUMBER, SINGLE, admits};
use outcrop_base::random::SplitMix as Random;

/// Names of column families; the first exists always.
const FAMILIES: [&str; 4] = ["default", "one", "two words", "drei#=;"];

/// Keeps WALs as long as what is written to them.
const NO_SPACE_AHEAD: &str = "allow_fallocate=false";

/// Slots for snapshots and for iterators.
const SLOTS: u64 = 3;

/// The case of `seed`.
pub fn generate(seed: u64, engines: &Engines) -> Case {
    let mut random = Random::new(seed);
    let players = players(seed, &mut random, engines);
    let mut generator = Generator {
        random,
        engines,
        players,
        families: Vec::new(),
        fixed: Vec::new(),
        unfit: Vec::new(),
        strict: false,
        entities: true,
        access: Access::Plain,
    };
    generator.draw_access();
    generator.draw_limits();
    let families: Vec<Family> = FAMILIES.iter().map(|name| generator.family(name)).collect();
    generator.families.clone_from(&families);
    let initial: Vec<usize> = (0..=generator.random.index(3)).collect();
    let mut model = Model::new(&families, &initial);
    generator.fixed = families.iter().map(|_| generator.case_options()).collect();
    let rounds = 4 + generator.random.below(9);
    let phases = (0..rounds).map(|round| generator.phase(round, &mut model)).collect();
    Case { seed, families, initial, access: generator.access, phases }
}

/// Outcrop (if it is there) and one to three references: one goes round with the seed, so that all get their turns.
fn players(seed: u64, random: &mut Random, engines: &Engines) -> Vec<String> {
    let mut references: Vec<String> = engines.keys().filter(|name| *name != OUTCROP).cloned().collect();
    let wanted = random.pick(&[1, 1, 2, 3]).min(references.len());
    let mut players = Vec::new();
    for place in 0..wanted {
        let turn = if place == 0 {
            (seed % references.len() as u64) as usize
        } else {
            random.index(references.len())
        };
        players.push(references.swap_remove(turn));
    }
    if engines.contains_key(OUTCROP) {
        players.insert(0, OUTCROP.to_string());
    }
    players
}

struct Generator<'e> {
    random: Random,
    engines: &'e Engines,
    players: Vec<String>,
    families: Vec<Family>,
    /// Per column family: the options that it has under every engine.
    fixed: Vec<Vec<String>>,
    /// Beginnings of options that are not drawn in this case.
    unfit: Vec<&'static str>,
    /// Engines may insist on a WAL without damage, so nothing may tear it.
    strict: bool,
    /// Wide-column entities are written; a newer RocksDB puts their columns into blob files if it has them.
    entities: bool,
    /// As what the database is opened.
    access: Access,
}

impl Generator<'_> {
    /// Draws as what the database is opened, among what every player can.
    fn draw_access(&mut self) {
        let (access, feature) = match self.random.below(8) {
            0..3 => (Access::Transactions, "transactions"),
            3 => (Access::Ttl, "ttl"),
            _ => return,
        };
        let is_refused = access == Access::Ttl && self.players.iter().any(|player| player == REFUSES_TTL);
        if self.all_write(feature) && !is_refused {
            self.access = access;
        }
        if self.access == Access::Transactions {
            // A prepared transaction must be in the WAL when the call returns; and RocksDB refuses the second.
            self.unfit.extend(["manual_wal_flush", "unordered_write"]);
        }
    }

    /// Draws what this case does without, because RocksDB has no answer for the combination either.
    fn draw_limits(&mut self) {
        self.strict = self.random.one_in(3);
        if self.strict {
            // Old contents after a recycled WAL's end and half a buffer are damage to strict recovery.
            self.unfit.extend(["recycle_log_file_num", "manual_wal_flush"]);
        } else {
            self.unfit.push("wal_recovery_mode=kAbsoluteConsistency");
            // 7.10.2 never ends reading a recycled WAL when it skips damage.
            self.unfit.push(
                self.random.pick(&["recycle_log_file_num", "wal_recovery_mode=kSkipAnyCorruptedRecords"]),
            );
        }
        if !self.all_read("put entity in blob") {
            self.entities = self.random.one_in(2);
            if self.entities {
                self.unfit.push("enable_blob_files");
            }
        }
    }

    fn writes(&self, engine: &str, feature: &str) -> bool {
        self.engines[engine].writes.contains(feature)
    }

    /// Every player reads what the feature leaves on disk.
    fn all_read(&self, feature: &str) -> bool {
        self.players.iter().all(|player| self.engines[player].reads.contains(feature))
    }

    /// Every player has it.
    fn all_write(&self, feature: &str) -> bool {
        self.players.iter().all(|player| self.writes(player, feature))
    }

    /// The engine may use it without leaving something that another player cannot read.
    fn may(&self, engine: &str, feature: &str) -> bool {
        // RocksDB's DBWithTTL loses single deletes of batches, refuses entities, does not add times to what is ingested, and gives values with their
        // times to a batched multi get.
        let lost = self.access == Access::Ttl
            && ["single delete", "put entity", "ingest", "batched"]
                .iter()
                .any(|name| feature.starts_with(name));
        !lost && self.writes(engine, feature) && self.all_read(feature)
    }

    /// A player's compaction would take the operand above a deleted entity for one.
    fn loses_entities(&self, family: usize) -> bool {
        self.families[family].merge != Merge::None
            && self.players.iter().any(|player| player == MISTAKES_OPERANDS)
    }

    fn family(&mut self, name: &str) -> Family {
        let mut family = Family::plain(name);
        let merges = [("merge add", Merge::Add), ("merge append", Merge::Append)];
        let possible: Vec<Merge> =
            merges.iter().filter(|(feature, _)| self.all_write(feature)).map(|(_, merge)| *merge).collect();
        if !possible.is_empty() && !self.random.one_in(4) {
            family.merge = self.random.pick(&possible);
        }
        family.reverse = self.random.one_in(6) && self.all_write("reverse order");
        let prefix = self.random.pick(&PREFIXES);
        if self.random.one_in(3) && self.all_read(&format!("prefix {prefix}")) {
            family.prefix = Some(prefix.to_string());
        }
        family
    }

    /// Options that a column family has under every engine.
    fn case_options(&mut self) -> Vec<String> {
        let mut options = Vec::new();
        for choice in CHOICES.iter().filter(|choice| choice.scope == Scope::Case) {
            if self.random.one_in(choice.one_in) {
                let answer = self.random.pick(choice.answers);
                let feature = title(answer);
                if self.all_write(&feature) && self.all_read(&feature) {
                    options.extend(answer.iter().map(|option| (*option).to_string()));
                }
            }
        }
        options
    }

    /// Draws the options of a scope for an engine.
    fn options(&mut self, scope: Scope, engine: &str, options: &mut Vec<String>) {
        for choice in CHOICES.iter().filter(|choice| choice.scope == scope) {
            if self.random.one_in(choice.one_in)
                && let Some(answer) = self.answer(choice, engine, options)
            {
                options.extend(answer.iter().map(|option| (*option).to_string()));
            }
        }
    }

    fn answer(
        &mut self,
        choice: &Choice,
        engine: &str,
        options: &[String],
    ) -> Option<&'static [&'static str]> {
        let families = self.fixed.iter().flatten().filter(|_| choice.scope == Scope::Database);
        let others: Vec<&String> = options.iter().chain(families).collect();
        let usable = |answer: &&&[&str]| {
            let feature = title(answer);
            self.writes(engine, &feature)
                && (!choice.format || self.all_read(&feature))
                && !answer.iter().any(|new| options.iter().any(|old| name(old) == name(new)))
                && !answer.iter().any(|new| others.iter().any(|old| conflict(new, old)))
                && !answer.iter().any(|new| self.unfit.iter().any(|unfit| new.starts_with(unfit)))
                && (engine == OUTCROP || !answer.iter().any(|option| OURS_ALONE.contains(option)))
                && (engine == OUTCROP
                    || self.access != Access::Transactions
                    || !answer.iter().any(|option| OURS_ALONE_IN_TRANSACTIONS.contains(option)))
                && (!feature.contains("kHashSearch")
                    || options.contains(&format!("prefix_extractor={HASH_PREFIX}")))
        };
        let answers: Vec<_> = choice.answers.iter().filter(usable).copied().collect();
        (!answers.is_empty()).then(|| self.random.pick(&answers))
    }

    fn phase(&mut self, round: u64, model: &mut Model) -> Phase {
        let engine = if self.players.len() > 1 && round % 2 == 1 {
            self.players[1 + self.random.index(self.players.len() - 1)].clone()
        } else {
            self.players[0].clone()
        };
        let mut options = always(&self.engines[&engine].options);
        self.options(Scope::Database, &engine, &mut options);
        let mut family_options = Vec::new();
        for (index, family) in self.families.clone().iter().enumerate() {
            let mut all = self.fixed[index].clone();
            let extractor = family.prefix.as_ref().map(|prefix| format!("prefix_extractor={prefix}"));
            if let Some(extractor) = extractor
                && self.engines[&engine].options.contains(&extractor)
            {
                all.push(extractor);
            }
            self.options(Scope::Family, &engine, &mut all);
            all.retain(|option| !options.iter().any(|other| conflict(option, other)));
            family_options.push(all);
        }
        let end = self.end();
        // See `wal.rs` of the engine: RocksDB 6 and 7 skip damage without end in a WAL with space ahead.
        let skips = "wal_recovery_mode=kSkipAnyCorruptedRecords";
        let may_be_skipped = !self.unfit.contains(&skips) && !options.iter().any(|option| option == skips);
        if engine == OUTCROP && may_be_skipped && !options.iter().any(|option| option == NO_SPACE_AHEAD) {
            options.push(NO_SPACE_AHEAD.into());
        }
        let openings = if round == 0 || self.access != Access::Plain {
            Vec::new()
        } else {
            self.openings(&engine, model)
        };
        let mut phase = Phase { options, family_options, end, openings, ..Phase::idle(&engine, 0) };
        phase.unlogged = self.unlogged(&phase);
        model.open(&phase);
        for _ in 0..5 + self.random.below(50) {
            let operation = self.operation(&phase, model);
            self.push(operation, &mut phase, model);
        }
        if matches!(phase.end, End::KillWriting { .. }) {
            for _ in 0..1 + self.random.below(8) {
                let operation = self.write(&phase, model, true);
                self.push(operation, &mut phase, model);
            }
        }
        model.close();
        phase
    }

    fn push(&mut self, operation: Operation, phase: &mut Phase, model: &mut Model) {
        if admits(model, &operation) {
            model.apply(&operation);
            phase.operations.push(operation);
        }
    }

    fn end(&mut self) -> End {
        match self.random.below(10) {
            0..5 => End::Close,
            5..7 => End::Kill,
            _ if self.strict => End::Kill,
            _ => End::KillWriting {
                writes: 1 + self.random.index(8),
                after_micros: self.random.pick(&[0, 50, 200, 1000]),
            },
        }
    }

    fn existing(&mut self, model: &Model) -> usize {
        let existing = model.existing();
        self.random.pick(&existing)
    }

    /// A key: few enough that they meet again, of shapes that share prefixes.
    fn key(&mut self) -> Key {
        let n = self.random.below(60);
        Key(match self.random.below(12) {
            0..4 => format!("abc{:08}", n * 3).into_bytes(),
            4 => format!("abd{n}").into_bytes(),
            5 => format!("k{n}").into_bytes(),
            6 => (n.wrapping_mul(0x0123_4567_89AB_CDEF)).to_be_bytes()[..(n % 8) as usize].to_vec(),
            7 => [b"a-long-common-prefix-of-many-keys/".repeat(3), n.to_string().into_bytes()].concat(),
            8 => format!("n{}", n % 20).into_bytes(),
            9 => format!("s{}", n % 20).into_bytes(),
            10 => vec![0xFF; (n % 5) as usize],
            _ => format!("xyz{:03}", n * 5).into_bytes(),
        })
    }

    fn value(&mut self, key: &Key) -> Value {
        let seed = self.random.below(1_000_000);
        if key.0.first() == Some(&NUMBER) {
            return Value::Number(seed);
        }
        match self.random.below(10) {
            0 => Value::Text(Key(Vec::new())),
            1..5 => Value::Text(Key(format!("v{seed}").into_bytes())),
            5..8 => Value::Fill(self.random.pick(&[30, 100, 300]), seed),
            8 => Value::Noise(self.random.pick(&[50, 500]), seed),
            _ => Value::Fill(self.random.pick(&[1000, 4000, 40_000]), seed),
        }
    }

    /// Two different keys in the family's order.
    fn range(&mut self, family: usize) -> (Key, Key) {
        loop {
            let (a, b) = (self.key(), self.key());
            if a != b {
                let swap = (a > b) != self.families[family].reverse;
                return if swap { (b, a) } else { (a, b) };
            }
        }
    }

    fn operation(&mut self, phase: &Phase, model: &Model) -> Operation {
        let engine = &phase.engine;
        let family = self.existing(model);
        if self.access == Access::Transactions && self.random.one_in(4) {
            return self.transaction(phase, model);
        }
        if self.random.one_in(25) && self.all_write("backup") {
            return self.backup();
        }
        match self.random.below(100) {
            0..50 => self.write(phase, model, false),
            50..58 => self.get(phase, model),
            58..66 => self.walk(phase, model),
            66..70 => self.iterator(model),
            70..74 => {
                let slot = self.random.below(SLOTS) as usize;
                if model.has_snapshot(slot) {
                    Operation::ReleaseSnapshot { slot }
                } else {
                    Operation::TakeSnapshot { slot }
                }
            }
            74..82 => Operation::Flush { family, wait: !self.random.one_in(4) },
            82..87 => self.compact(family),
            87 if self.writes(engine, "flush wal") => Operation::FlushWal { sync: self.random.one_in(2) },
            88 => Operation::Wait,
            89..92 if self.may(engine, "ingest") && self.ingests_at_level_0(engine, family) => {
                self.ingest(phase, family)
            }
            92 if self.may(engine, "checkpoint") => {
                Operation::Checkpoint { log_size_for_flush: self.random.pick(&[0, u64::MAX >> 1]) }
            }
            93 if self.random.one_in(2) => {
                let family = self.random.index(FAMILIES.len());
                Operation::CreateFamily { family }
            }
            94 if self.random.one_in(2) => Operation::DropFamily { family },
            95 | 96 if self.writes(engine, "set options") => {
                let (option, values) = self.random.pick(MUTABLE);
                Operation::SetOptions { family, name: option.into(), value: self.random.pick(values).into() }
            }
            97 if self.random.one_in(3) => Operation::OpenTwice,
            98 => Operation::CompareAll,
            93 | 94 | 97 | 99 if self.access != Access::Ttl => {
                Operation::Mistake(self.mistake(phase, family, model))
            }
            _ => self.write(phase, model, false),
        }
    }

    /// Something with a transaction: few names, so that they meet again.
    fn transaction(&mut self, phase: &Phase, model: &Model) -> Operation {
        let prepared: Vec<&String> = model.prepared().keys().collect();
        if !prepared.is_empty() && self.random.one_in(3) {
            let name = self.random.pick(&prepared).clone();
            return Operation::Resolve { name, commit: !self.random.one_in(3) };
        }
        let records: Vec<Record> = (0..1 + self.random.below(5)).map(|_| self.record(phase, model)).collect();
        let single =
            |record: &Record| matches!(record, Record::Put(..) | Record::Delete(..) | Record::Merge(..));
        let end = self.random.pick(&[
            Ending::Prepare,
            Ending::Prepare,
            Ending::Prepare,
            Ending::BothPhases,
            Ending::Commit,
            Ending::RollBack,
        ]);
        Operation::Transact {
            name: format!("t{}", self.random.below(6)),
            records: records.into_iter().filter(single).collect(),
            synced: self.random.one_in(4),
            end,
        }
    }

    /// Something with the directory of backups.
    fn backup(&mut self) -> Operation {
        let by_other = self.random.one_in(2);
        match self.random.below(9) {
            0..4 => Operation::Backup { flush: self.random.one_in(2) },
            4..8 => Operation::Restore { nth: self.random.index(3), by_other },
            _ => Operation::PurgeBackups { keep: 1 + self.random.index(3), by_other },
        }
    }

    /// Whether nothing of the phase goes to the WAL. RocksDB flushes together only what it is asked to flush together, so
    /// it needs the function for several column families.
    fn unlogged(&mut self, phase: &Phase) -> bool {
        let recycled = phase.options.iter().any(|option| name(option) == "recycle_log_file_num");
        // 9.11.2 lost a row that was flushed in answer to a call while this option had started a flush by itself.
        let loses = phase.engine != OUTCROP
            && phase.options.iter().any(|option| name(option) == "db_write_buffer_size");
        self.access != Access::Transactions
            && phase.has("atomic_flush=true")
            && !recycled
            && !loses
            && self.writes(&phase.engine, "unlogged")
            && self.writes(&phase.engine, "flush together")
            && !self.random.one_in(3)
    }

    /// A mistake that the phase's engine reports.
    fn mistake(&mut self, phase: &Phase, family: usize, model: &Model) -> Mistake {
        loop {
            let mistake = self.any_mistake(family, model);
            if mistake.class(&phase.engine).is_some() && mistake.fits(phase) {
                return mistake;
            }
        }
    }

    fn any_mistake(&mut self, family: usize, model: &Model) -> Mistake {
        match self.random.below(24) {
            0 => Mistake::CreateExisting { family },
            1 => Mistake::CreateNameless,
            2 => Mistake::DropDefault,
            3..6 => Mistake::AfterDrop(self.random.pick(&[
                Gone::Drop,
                Gone::Put,
                Gone::Flush,
                Gone::SetOptions,
                Gone::Ingest,
            ])),
            6..9 => {
                let (option, value) = self.random.pick(REFUSED_CHANGES);
                Mistake::SetOption { family, name: option.into(), value: value.into() }
            }
            9 => Mistake::MergeWithoutOperator { family },
            10 => Mistake::SyncedUnlogged { family },
            11 => Mistake::UnloggedRecycled { family },
            12 | 13 => {
                let (end, begin) = self.range(family);
                Mistake::RangeBackwards { family, begin, end }
            }
            14..19 => {
                let rows = model.rows(family);
                let used = (!rows.is_empty()).then(|| self.random.index(rows.len()));
                let (fresh, table) = (self.key(), self.random.pick(&BadTable::ALL));
                let key = used.map_or(fresh, |at| rows[at].0.clone());
                Mistake::Ingest { family, table, key }
            }
            19..22 => Mistake::Checkpoint(self.random.pick(&[
                BadTarget::Directory,
                BadTarget::File,
                BadTarget::Nameless,
                BadTarget::NoParent,
            ])),
            22 if self.random.one_in(2) => Mistake::UpdatesOfTheFuture,
            22 => Mistake::Timestamp { family },
            _ => Mistake::Destroy,
        }
    }

    /// Ways to open that fail, before a phase.
    fn openings(&mut self, engine: &str, model: &Model) -> Vec<Opening> {
        let mut chosen = Vec::new();
        while self.random.one_in(2) {
            let opening = self.random.pick(&openings());
            if opening.class(engine).is_some() && opening.admitted(&model.existing()) {
                chosen.push(opening);
            }
        }
        chosen
    }

    fn write(&mut self, phase: &Phase, model: &Model, logged: bool) -> Operation {
        // RocksDB refuses writes outside a WAL that is recycled.
        let recycled = phase.options.iter().any(|option| name(option) == "recycle_log_file_num");
        let unlogged =
            self.random.one_in(12) && !logged && !recycled && self.writes(&phase.engine, "unlogged");
        let durability = match self.random.below(8) {
            _ if unlogged || phase.unlogged => Durability::Unlogged,
            0 => Durability::Synced,
            _ => Durability::Logged,
        };
        let single = self.random.one_in(2);
        let count = if single { 1 } else { 1 + self.random.below(6) };
        let records: Vec<Record> = (0..count).map(|_| self.record(phase, model)).collect();
        let direct = single && self.has_direct(&phase.engine, &records[0]);
        Operation::Write { records, durability, direct }
    }

    fn has_direct(&self, engine: &str, record: &Record) -> bool {
        match record {
            Record::SingleDelete(..) => self.writes(engine, "direct single delete"),
            Record::DeleteRange(..) => self.writes(engine, "direct delete range"),
            _ => true,
        }
    }

    fn record(&mut self, phase: &Phase, model: &Model) -> Record {
        let (engine, family) = (&phase.engine, self.existing(model));
        let key = self.key();
        match self.random.below(100) {
            0..45 => self.put(engine, family, key, model),
            45..60 => self.delete(engine, family, key),
            60..75 if self.families[family].merge != Merge::None => {
                let key = match self.families[family].merge {
                    Merge::Add => Key(format!("n{}", self.random.below(20)).into_bytes()),
                    _ => key,
                };
                let value = self.value(&key);
                Record::Merge(family, key, value)
            }
            75..82 if self.may(engine, "delete range") => {
                let (begin, end) = self.range(family);
                Record::DeleteRange(family, begin, end)
            }
            82..86 if self.entities && self.may(engine, "put entity") && !self.loses_entities(family) => {
                let names = ["", "a", "bb"];
                let columns = names.iter().filter_map(|name| {
                    let value = Value::Fill(self.random.pick(&[0, 10, 200]), self.random.below(1000));
                    self.random.one_in(2).then(|| (Key(name.as_bytes().to_vec()), value))
                });
                Record::PutEntity(family, key, columns.collect())
            }
            86..88 if self.may(engine, "log data") => Record::LogData(Key(b"data for the log".to_vec())),
            88..93 => Record::Fill {
                family,
                prefix: Key(self.random.pick(&[&b"abc"[..], b"bulk", b"x"]).to_vec()),
                first: self.random.below(100),
                count: self.random.pick(&[10, 50, 150]),
                len: self.random.pick(&[10, 100, 500]),
                seed: self.random.below(1_000_000),
            },
            _ => self.put(engine, family, key, model),
        }
    }

    fn put(&mut self, engine: &str, family: usize, key: Key, model: &Model) -> Record {
        if key.0.first() == Some(&SINGLE) && model.get(family, &key).is_some() {
            return self.delete(engine, family, key);
        }
        let value = self.value(&key);
        Record::Put(family, key, value)
    }

    fn delete(&mut self, engine: &str, family: usize, key: Key) -> Record {
        if key.0.first() == Some(&SINGLE) && self.may(engine, "single delete") {
            Record::SingleDelete(family, key)
        } else {
            Record::Delete(family, key)
        }
    }

    fn view(&mut self, family: usize, bounds: bool, model: &Model) -> View {
        let held: Vec<usize> = (0..SLOTS as usize).filter(|slot| model.has_snapshot(*slot)).collect();
        let snapshot = (!held.is_empty() && self.random.one_in(2)).then(|| self.random.pick(&held));
        let (mut lower, mut upper) = (None, None);
        if bounds && self.random.one_in(2) {
            let (a, b) = self.range(family);
            lower = (!self.random.one_in(3)).then_some(a);
            upper = (!self.random.one_in(3)).then_some(b);
        }
        View { family, snapshot, lower, upper, same_prefix: false }
    }

    fn get(&mut self, phase: &Phase, model: &Model) -> Operation {
        let family = self.existing(model);
        let view = self.view(family, false, model);
        let keys = (0..1 + self.random.below(12)).map(|_| self.key()).collect();
        let ways = [
            (Lookup::GetPinned, "get pinned"),
            (Lookup::MultiGet, "multi get"),
            (Lookup::BatchedMultiGet, "batched multi get"),
        ];
        let mut by = vec![Lookup::Get];
        by.extend(ways.iter().filter(|(_, call)| self.may(&phase.engine, call)).map(|(way, _)| *way));
        Operation::Get { view, keys, by: self.random.pick(&by) }
    }

    fn walk(&mut self, phase: &Phase, model: &Model) -> Operation {
        let family = self.existing(model);
        let extractor = phase.family_options[family].iter().any(|option| name(option) == "prefix_extractor");
        if extractor && self.random.one_in(3) && self.writes(&phase.engine, "prefix walk") {
            let view = View { same_prefix: true, ..self.view(family, false, model) };
            let len = self.families[family].prefix_len().unwrap_or(0);
            let key = loop {
                let key = self.key();
                if key.0.len() >= len {
                    break key;
                }
            };
            let next = (0..self.random.below(20)).map(|_| Move::Next);
            return Operation::Walk { view, moves: std::iter::once(Move::Seek(key)).chain(next).collect() };
        }
        let view = self.view(family, true, model);
        Operation::Walk { view, moves: self.moves() }
    }

    fn moves(&mut self) -> Vec<Move> {
        (0..1 + self.random.below(15))
            .map(|_| match self.random.below(10) {
                0 => Move::First,
                1 => Move::Last,
                2 | 3 => Move::Seek(self.key()),
                4 => Move::SeekForPrev(self.key()),
                5..8 => Move::Next,
                _ => Move::Prev,
            })
            .collect()
    }

    fn iterator(&mut self, model: &Model) -> Operation {
        let slot = self.random.below(SLOTS) as usize;
        if !model.has_iterator(slot) {
            let family = self.existing(model);
            return Operation::OpenIterator { slot, view: self.view(family, true, model) };
        }
        if self.random.one_in(3) {
            return Operation::CloseIterator { slot };
        }
        Operation::MoveIterator { slot, moves: self.moves() }
    }

    fn compact(&mut self, family: usize) -> Operation {
        let (begin, end) = self.range(family);
        let whole = self.random.one_in(3);
        let bound = |key, given: bool| (given && !whole).then_some(key);
        Operation::CompactRange {
            family,
            begin: bound(begin, !self.random.one_in(4)),
            end: bound(end, !self.random.one_in(4)),
            bottommost: self.random.pick(&[0, 1, 2, 3]),
            exclusive: self.random.one_in(2),
        }
    }

    /// Under FIFO RocksDB puts ingested tables into its last level; before version 8 such a column family has one level, and a version that
    /// old does not open it any more: "db has more levels than options.num_levels".
    fn ingests_at_level_0(&self, engine: &str, family: usize) -> bool {
        engine == OUTCROP || !self.fixed[family].iter().any(|option| option.ends_with("kCompactionStyleFIFO"))
    }

    fn ingest(&mut self, phase: &Phase, family: usize) -> Operation {
        let mut keys: Vec<Key> = (0..1 + self.random.below(20)).map(|_| self.key()).collect();
        keys.sort();
        keys.dedup();
        keys.retain(|key| key.0.first() != Some(&SINGLE));
        if self.families[family].reverse {
            keys.reverse();
        }
        let deletes = self.may(&phase.engine, "ingest deletes");
        let records = keys
            .into_iter()
            .map(|key| {
                if deletes && self.random.one_in(5) {
                    Record::Delete(family, key)
                } else {
                    let value = self.value(&key);
                    Record::Put(family, key, value)
                }
            })
            .collect();
        let all = self.all_write("ingest") && (!deletes || self.all_write("ingest deletes"));
        let by_other = all && self.random.one_in(2);
        Operation::Ingest { family, records, move_file: self.random.one_in(2), by_other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Abilities, all};

    /// Engines that can do everything, but for one feature of the last.
    fn engines(lacking: &str) -> Engines {
        let every = Abilities {
            writes: all().into_iter().collect(),
            reads: all().into_iter().collect(),
            ..Abilities::default()
        };
        let mut last = every.clone();
        last.reads.remove(lacking);
        last.writes.remove(lacking);
        Engines::from([
            (OUTCROP.to_string(), last),
            ("6.29.5".into(), every.clone()),
            ("11.8.1".into(), every),
        ])
    }

    fn uses_range_deletion(case: &Case) -> bool {
        let of = |operation: &Operation| match operation {
            Operation::Write { records, .. } => records.iter().any(|r| matches!(r, Record::DeleteRange(..))),
            _ => false,
        };
        case.phases.iter().flat_map(|phase| &phase.operations).any(of)
    }

    #[test]
    fn a_seed_repeats_its_case_and_seeds_differ() {
        let engines = engines("none");
        assert_eq!(generate(7, &engines), generate(7, &engines));
        assert_ne!(generate(7, &engines).phases, generate(8, &engines).phases);
    }

    #[test]
    fn a_feature_that_one_side_lacks_is_not_used_by_the_other() {
        let used =
            |engines: &Engines| (0..20).filter(|seed| uses_range_deletion(&generate(*seed, engines))).count();
        assert_eq!(used(&engines("delete range")), 0);
        assert!(used(&engines("none")) > 10);
    }

    #[test]
    fn options_are_set_once_and_taken_by_their_engine() {
        let engines = engines("table.format_version=6");
        for seed in 0..30 {
            for phase in generate(seed, &engines).phases {
                for options in &phase.family_options {
                    let mut names: Vec<&str> = options.iter().map(|option| name(option)).collect();
                    names.sort_unstable();
                    let count = names.len();
                    names.dedup();
                    assert_eq!(names.len(), count, "{options:?}");
                    assert!(!options.iter().any(|option| option == "table.format_version=6"));
                }
            }
        }
    }
}
