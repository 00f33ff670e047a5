//! A compaction that was decided, with what it needs to run, and its begin and end in the shared state.

use super::manual_request::BlobCollection;
use super::pick;
use super::{Compaction, Reason, RunningCompaction, Work};
use crate::column_family::ColumnFamily;
use crate::jobs::{JobInfo, JobKind};
use crate::partitioner::{PartitionerContext, SstPartitioner};
use crate::paths;
use crate::state::{CfState, DbState};
use crate::version_set::VersionSet;
use outcrop_base::keys::user_key;
use outcrop_base::{CfId, Timestamp};
use outcrop_manifest::{FileNumber, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32};

/// A compaction with what it needs to run.
pub struct CompactionJob {
    /// The compaction that was picked.
    pub compaction: Compaction,
    /// The column family.
    pub cf: Arc<ColumnFamily>,
    /// The version it was picked from; keeps the inputs alive.
    pub version: Arc<Version>,
    /// Threads it may be split over.
    pub max_subcompactions: u32,
    /// The outputs that it may write.
    pub running: RunningCompaction,
    /// Set by a caller who no longer wants it.
    pub canceled: Option<Arc<AtomicBool>>,
    /// Versions with timestamps above this are dropped.
    pub trim: Option<Timestamp>,
    /// Which values move out of their blob files.
    pub blob_collection: BlobCollection,
    /// Which of the column family's paths its tables go to.
    pub path_id: u32,
    /// Its number, for those who are told of it; 0 before it runs.
    pub job_id: AtomicI32,
}

impl CompactionJob {
    /// A job for `compaction`, which was picked from the present version of `cf`. Compares keys; starting and ending the
    /// job does not, so that a comparator that panics leaves nothing half started.
    pub fn new(mut compaction: Compaction, cf: &CfState, max_subcompactions: u32) -> CompactionJob {
        let path_id = paths::output_path(&cf.cf.options.load(), &compaction);
        let in_place = || compaction.input_files().all(|file| file.path_id == path_id);
        if compaction.work == Work::Move
            && compaction.reason != Reason::Refit
            && !(in_place() && may_move(&compaction, cf))
        {
            compaction.work = Work::Merge;
        }
        let inputs: Vec<_> = compaction.input_files().cloned().collect();
        let (begin, end) = pick::key_range(&cf.cf.rows, &inputs).unwrap_or_default();
        let running = RunningCompaction { output_level: compaction.output_level, begin, end };
        CompactionJob {
            compaction,
            cf: cf.cf.clone(),
            version: cf.version.clone(),
            max_subcompactions,
            running,
            canceled: None,
            trim: None,
            blob_collection: BlobCollection::default(),
            path_id,
            job_id: AtomicI32::new(0),
        }
    }

    /// Where the application has its tables end; nowhere in L0, where each is a sorted run.
    pub fn partitioner(&self) -> Option<Box<dyn SstPartitioner>> {
        let factory = self.cf.sst_partitioner.as_ref().filter(|_| self.compaction.output_level > 0)?;
        factory.create(&partitioner_context(&self.compaction, self.version.num_files()))
    }

    /// The description of this job for an observer.
    pub fn info(&self) -> JobInfo {
        JobInfo {
            kind: JobKind::Compaction,
            column_families: vec![self.cf.id()],
            what: format!("[{}] {}", self.cf.name(), self.compaction),
        }
    }
}

fn partitioner_context(compaction: &Compaction, files: usize) -> PartitionerContext {
    PartitionerContext {
        is_full_compaction: compaction.input_files().count() == files,
        is_manual_compaction: compaction.reason == Reason::Manual,
        output_level: compaction.output_level,
    }
}

/// True if the application has none of the tables of `compaction` end before its last key.
fn may_move(compaction: &Compaction, cf: &CfState) -> bool {
    let context = partitioner_context(compaction, cf.version.num_files());
    let Some(mut partitioner) = cf.cf.sst_partitioner.as_ref().and_then(|factory| factory.create(&context))
    else {
        return true;
    };
    compaction
        .input_files()
        .all(|file| partitioner.may_move(user_key(&file.smallest), user_key(&file.largest)))
}

/// Takes the inputs of `job`, which the caller runs and hands to [`end`].
pub fn start(state: &mut DbState, job: &CompactionJob) {
    if let Some(cf) = state.column_families.get_mut(&job.cf.id()) {
        for file in job.compaction.input_files() {
            assert!(cf.take_table(file.number), "table {:?} is already being compacted", file.number);
        }
        cf.running.push(job.running.clone());
        cf.refresh_debt();
    }
    state.running_compactions += 1;
}

/// The rest of a job that holds no table any more.
pub struct Released {
    cf_id: CfId,
    inputs: Vec<FileNumber>,
    running: RunningCompaction,
}

impl CompactionJob {
    /// Lets go of its tables, with no lock held: a version may go with them.
    pub fn release(self) -> Released {
        let inputs = self.compaction.input_files().map(|file| file.number).collect();
        Released { cf_id: self.cf.id(), inputs, running: self.running }
    }
}

/// Undoes [`start`]: other jobs may have the tables that are left.
pub fn end(versions: &VersionSet, state: &mut DbState, job: &Released) {
    state.running_compactions -= 1;
    if let Some(cf) = state.column_families.get_mut(&job.cf_id) {
        for number in &job.inputs {
            cf.busy.remove(number);
        }
        if let Some(index) = cf.running.iter().position(|running| *running == job.running) {
            cf.running.swap_remove(index);
        }
        cf.refresh_debt();
    }
    versions.job_ended(state);
}
