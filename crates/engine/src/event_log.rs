//! Lines of LOG that programs read: `EVENT_LOG_v1` and an object in JSON, with RocksDB's names of events and fields; and what LOG says of a
//! database when it is opened.
//!
//! Source: RocksDB `logging/event_logger.h`, `db/flush_job.cc`, `db/compaction/compaction_job.cc`, `db/db_info_dumper.cc`.

use crate::column_family::ColumnFamilyDescriptor;
use crate::compaction::job::CompactionJob;
use crate::compaction::outcome::Ran;
use crate::context::DbContext;
use crate::events::reasons::CompactionReason;
use crate::info_log::{LogLevel, hand_over, log_line};
use crate::stats::LevelStats;
use outcrop_env::WriteNanos;
use outcrop_manifest::Version;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_memtable::MemTable;
use outcrop_options::{DbOptions, dump};
use std::fmt::Write;
use std::sync::Arc;

/// A line under construction: the time, the job and the event are in it.
pub struct LogEvent(String);

impl LogEvent {
    /// An event of a job; 0: of none.
    pub fn new(ctx: &DbContext, job: u64, event: &str) -> LogEvent {
        let time = ctx.env.clock.now_micros();
        LogEvent(format!("EVENT_LOG_v1 {{\"time_micros\": {time}, \"job\": {job}, \"event\": \"{event}\""))
    }

    /// With a number.
    pub fn number(mut self, name: &str, value: u64) -> LogEvent {
        let _ = write!(self.0, ", \"{name}\": {value}");
        self
    }

    /// With a text.
    pub fn text(mut self, name: &str, value: &str) -> LogEvent {
        let _ = write!(self.0, ", \"{name}\": \"{}\"", json_escaped(value));
        self
    }

    /// With a list of numbers.
    pub fn list(mut self, name: &str, values: impl Iterator<Item = u64>) -> LogEvent {
        let values: Vec<String> = values.map(|value| value.to_string()).collect();
        let _ = write!(self.0, ", \"{name}\": [{}]", values.join(", "));
        self
    }

    /// With the times of writing files, if they were measured.
    fn write_nanos(self, nanos: Option<WriteNanos>) -> LogEvent {
        let Some(nanos) = nanos else { return self };
        self.number("file_write_nanos", nanos.write)
            .number("file_range_sync_nanos", nanos.range_sync)
            .number("file_fsync_nanos", nanos.sync)
            .number("file_prepare_write_nanos", 0)
    }

    /// Writes it.
    pub fn write(self, ctx: &DbContext) {
        log_line!(ctx, "{}}}", self.0);
    }
}

/// `text` as it stands between the quotes of a string in JSON.
fn json_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// How many tables each level has.
pub fn lsm_state(version: &Version) -> Vec<u64> {
    version.levels.iter().map(|level| level.files.len() as u64).collect()
}

/// A memtable is about to be written.
pub fn flush_started(ctx: &DbContext, job: u64, family: &str, memtables: &[&Arc<MemTable>]) {
    let entries: u64 = memtables.iter().map(|memtable| memtable.num_entries()).sum();
    let bytes: u64 = memtables.iter().map(|memtable| memtable.memory_usage() as u64).sum();
    LogEvent::new(ctx, job, "flush_started")
        .number("num_memtables", memtables.len() as u64)
        .number("total_num_input_entries", entries)
        .number("memory_usage", bytes)
        .text("cf_name", family)
        .write(ctx);
}

/// The tables of a flush are installed, and `version` has them.
pub fn flush_finished(
    ctx: &DbContext,
    job: u64,
    family: &str,
    (stats, write_nanos): (&LevelStats, Option<WriteNanos>),
    version: &Version,
) {
    LogEvent::new(ctx, job, "flush_finished")
        .text("cf_name", family)
        .number("flush_time_micros", stats.micros)
        .number("total_output_size", stats.bytes_written)
        .list("lsm_state", lsm_state(version).into_iter())
        .write_nanos(write_nanos)
        .write(ctx);
}

/// A table was written.
pub fn table_created(ctx: &DbContext, job: u64, family: &str, number: u64, size: u64) {
    LogEvent::new(ctx, job, "table_file_creation")
        .text("cf_name", family)
        .number("file_number", number)
        .number("file_size", size)
        .write(ctx);
}

/// A compaction begins.
pub fn compaction_started(ctx: &DbContext, number: u64, job: &CompactionJob) {
    let (family, compaction) = (job.cf.name(), &job.compaction);
    let reason = CompactionReason::of(compaction.reason);
    let mut event = LogEvent::new(ctx, number, "compaction_started")
        .text("cf_name", family)
        .text("compaction_reason", reason.name());
    for inputs in &compaction.inputs {
        let files = inputs.files.iter().map(|file| file.number.0);
        event = event.list(&format!("files_L{}", inputs.level), files);
    }
    event.number("input_data_size", compaction.input_bytes()).write(ctx);
}

/// A compaction has written its tables, and they are installed.
pub fn compaction_finished(
    ctx: &DbContext,
    job: u64,
    (family, output_level): (&str, usize),
    (stats, ran): (&LevelStats, &Ran),
    version: &Version,
) {
    let mut event = LogEvent::new(ctx, job, "compaction_finished")
        .text("cf_name", family)
        .number("compaction_time_micros", stats.micros)
        .number("compaction_time_cpu_micros", stats.cpu_micros)
        .number("output_level", output_level as u64)
        .number("num_output_files", ran.tables.len() as u64)
        .number("total_output_size", ran.tables.iter().map(|file| file.size).sum());
    if !ran.blob_files.is_empty() {
        event = event
            .number("num_blob_output_files", ran.blob_files.len() as u64)
            .number("total_blob_output_size", ran.blob_files.iter().map(|file| file.total_bytes).sum());
    }
    event
        .number("num_input_records", stats.records_in)
        .number("num_output_records", stats.records_in - stats.records_dropped)
        .write_nanos(ran.write_nanos)
        .list("lsm_state", lsm_state(version).into_iter())
        .write(ctx);
}

/// The objects of a column family, by their names, for the header of LOG.
fn objects_of(family: &ColumnFamilyDescriptor) -> dump::Objects {
    let parts = &family.parts;
    let none = || "None".to_string();
    let merge_operator = parts.merge_operator.as_ref().map(|object| object.name().to_string());
    let filter = parts.compaction_filter.as_ref().map(|object| object.name().to_string());
    let filters = parts.compaction_filter_factory.as_ref().map(|object| object.name().to_string());
    let partitioner = parts.sst_partitioner.as_ref().map(|object| object.name().to_string());
    let collectors = parts.collectors.iter().map(|factory| format!("{};", factory.description()));
    dump::Objects {
        named: vec![
            ("comparator", parts.comparator.name().to_string()),
            ("merge_operator", merge_operator.or(family.options.merge_operator.clone()).unwrap_or_else(none)),
            ("compaction_filter", filter.unwrap_or_else(none)),
            ("compaction_filter_factory", filters.unwrap_or_else(none)),
            ("sst_partitioner_factory", partitioner.unwrap_or_else(none)),
            ("table_properties_collectors", collectors.collect()),
        ],
        block_cache: parts
            .block_cache
            .as_ref()
            .map(|cache| (Arc::as_ptr(cache) as usize, cache.capacity(), cache.has_strict_capacity_limit())),
    }
}

/// The header of LOG: version, session, files, and every option.
pub fn opened(ctx: &DbContext, families: &[ColumnFamilyDescriptor]) {
    // In RocksDB's form, for scripts that read it: the word after the colon is the version, the last of the next line the hash.
    let mut lines = vec![
        format!(
            "RocksDB version: outcrop-{} (an engine of its own; files and C API are those of RocksDB 11.8.1)",
            env!("CARGO_PKG_VERSION")
        ),
        // Only who builds a release knows that the source is what a commit says.
        format!("Git sha {}", option_env!("OUTCROP_GIT_SHA").unwrap_or("unknown")),
        "DB SUMMARY".to_string(),
        format!("DB Session ID:  {}", ctx.session_id),
    ];
    summary(ctx, &mut lines);
    lines.push("Compression algorithms supported:".to_string());
    for codec in CODECS {
        lines.push(format!("\t{codec} supported: {}", u8::from(codec != "kXpressCompression")));
    }
    // RocksDB chooses when it is compiled, this engine by what the processor has.
    let compiled_in = cfg!(any(target_feature = "sse4.2", target_feature = "crc"));
    let arch = if cfg!(target_arch = "aarch64") && compiled_in { "Arm64" } else { "x86" };
    let built = if compiled_in { "Supported" } else { "Not supported" };
    lines.push(format!("Fast CRC32 supported: if the processor has it; at compile time: {built} on {arch}"));
    lines.push("Jemalloc supported: 0".to_string());
    lines.extend(dump::database(&ctx.options));
    lines.extend(
        families
            .iter()
            .flat_map(|family| dump::column_family(&family.name, &family.options, &objects_of(family))),
    );
    lines.push(format!("DB ID: {}", ctx.db_id));
    ctx.info_log.headers(&lines);
    log_line!(ctx, "opening {}", ctx.path.display());
    log_line!(ctx, "batches of reads go by {}", outcrop_env::batch_reads_by());
}

const CODECS: [&str; 8] = [
    "kNoCompression",
    "kSnappyCompression",
    "kZlibCompression",
    "kBZip2Compression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kXpressCompression",
    "kZSTD",
];

/// The files there are.
fn summary(ctx: &DbContext, lines: &mut Vec<String>) {
    let Ok(names) = ctx.env.fs.list(&ctx.path) else { return };
    let (mut tables, mut wals, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match file_name::parse(&name) {
            Some(FileKind::Table(_)) => tables.push(name),
            Some(FileKind::Wal(_)) => wals.push(name),
            Some(FileKind::Manifest(_) | FileKind::Current | FileKind::Identity) => others.push(name),
            _ => {}
        }
    }
    for list in [&mut tables, &mut wals, &mut others] {
        list.sort();
    }
    lines
        .extend(others.iter().map(|name| format!("{} file: {name}", name.split('-').next().unwrap_or(name))));
    let some: Vec<&String> = tables.iter().take(9).collect();
    let path = ctx.path.display();
    lines.push(format!("SST files in {path} dir, Total Num: {}, files: {some:?}", tables.len()));
    lines.push(format!("Write Ahead Log file in {}: {wals:?}", ctx.wal_dir.display()));
}

/// LOG of what could not be opened is an object's alone: a refused database is left as it was.
pub fn refused(objects: &crate::objects::DbObjects, options: &DbOptions, error: &outcrop_base::Error) {
    if let Some(logger) = objects.logger.as_ref().filter(|logger| logger.level() <= LogLevel::Error) {
        let created = options.create_if_missing;
        let text = format!("the database was not opened (create_if_missing: {created}): {error}");
        hand_over(&**logger, LogLevel::Error, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_json_has_it() {
        assert_eq!(json_escaped("default"), "default");
        assert_eq!(json_escaped("a\"b\\c\n'd'\u{7f}\u{e9}"), "a\\\"b\\\\c\\u000a'd'\u{7f}\u{e9}");
    }
}
