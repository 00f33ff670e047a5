//! Flushes, as listeners are told of them: each column family of a job, at its begin and when its table is installed.

use super::Event;
use super::info::{BlobFileAdditionInfo, FlushJobInfo};
use crate::context::DbContext;
use crate::flush::decided::{FlushJob, FlushPart};
use crate::jobs::JobContext;
use crate::paths::directory_of;
use crate::version_set::VersionSet;
use outcrop_base::SeqNum;
use outcrop_manifest::{BlobFile, FileNumber, TableFile, file_name};
use std::sync::Arc;

/// The result of a flush for one column family, as far as listeners see it.
pub struct Flushed {
    /// The table, if there was anything to write.
    pub table: Option<Arc<TableFile>>,
    /// Blob files.
    pub blob_files: Vec<Arc<BlobFile>>,
}

/// The parts of a flush that were told to begin.
pub struct ReportedFlush(Vec<FlushJobInfo>);

impl ReportedFlush {
    /// Tells that `job` begins as number `job_id`, whose tables will have `numbers`; `None` if nobody listens.
    pub fn begin(
        jobs: &JobContext,
        job: &FlushJob,
        numbers: &[FileNumber],
        job_id: i32,
    ) -> Option<ReportedFlush> {
        if !jobs.ctx.listens() {
            return None;
        }
        let infos: Vec<FlushJobInfo> = job
            .parts
            .iter()
            .zip(numbers)
            .map(|(part, number)| begun(&jobs.ctx, &jobs.versions, part, *number, job_id))
            .collect();
        infos.iter().for_each(|info| jobs.ctx.tell(Event::FlushBegin(info)));
        Some(ReportedFlush(infos))
    }

    /// Tells that it is installed, with what it `wrote`.
    pub fn completed(self, jobs: &JobContext, job: &FlushJob, wrote: Vec<Flushed>) {
        for ((mut info, part), wrote) in self.0.into_iter().zip(&job.parts).zip(wrote) {
            let (slowdown, stop) = triggered(&jobs.versions, part);
            info.triggered_writes_slowdown = slowdown;
            info.triggered_writes_stop = stop;
            info.blob_compression = part.cf.options.load().blob_compression_type;
            info.blob_files = wrote.blob_files.iter().map(|file| blob_addition(&jobs.ctx, file)).collect();
            if let Some(table) = &wrote.table {
                info.smallest_seqno = table.smallest_seq;
                info.largest_seqno = table.largest_seq;
                info.oldest_blob_file_number = table.oldest_blob_file.map_or(0, |number| number.0);
                // It was opened before it was installed.
                if let Ok(reader) = jobs.ctx.tables.open(&part.cf, table) {
                    info.properties = Arc::new(reader.properties().clone());
                }
            }
            jobs.ctx.tell(Event::FlushCompleted(&info));
        }
    }
}

fn begun(
    ctx: &DbContext,
    versions: &VersionSet,
    part: &FlushPart,
    number: FileNumber,
    job_id: i32,
) -> FlushJobInfo {
    let (slowdown, stop) = triggered(versions, part);
    FlushJobInfo {
        cf_id: part.cf.id(),
        cf_name: part.cf.name().to_string(),
        file_path: file_name::table(&directory_of(ctx, &part.cf, 0), number),
        file_number: number.0,
        oldest_blob_file_number: 0,
        thread_id: ctx.thread_id(),
        job_id,
        triggered_writes_slowdown: slowdown,
        triggered_writes_stop: stop,
        smallest_seqno: SeqNum::MAX,
        largest_seqno: SeqNum::ZERO,
        properties: Arc::default(),
        reason: part.memtables.last().map(|sealed| sealed.reason).unwrap_or_default(),
        blob_compression: Default::default(),
        blob_files: Vec::new(),
    }
}

/// Whether L0 has as many tables as slow writers, and as stop them.
fn triggered(versions: &VersionSet, part: &FlushPart) -> (bool, bool) {
    let state = versions.state.lock();
    let Some(cf) = state.column_families.get(&part.cf.id()) else { return (false, false) };
    let tables = i32::try_from(cf.version.levels[0].files.len()).unwrap_or(i32::MAX);
    let options = part.cf.options.load();
    (tables >= options.level0_slowdown_writes_trigger, tables >= options.level0_stop_writes_trigger)
}

/// A blob file that a job wrote.
pub fn blob_addition(ctx: &DbContext, file: &BlobFile) -> BlobFileAdditionInfo {
    BlobFileAdditionInfo {
        path: file.path(&ctx.path),
        number: file.number.0,
        total_blob_count: file.total_count,
        total_blob_bytes: file.total_bytes,
    }
}
