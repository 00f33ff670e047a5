//! Table files, as listeners are told of them: their creation as it begins and ends, on the thread of the job, and their removal.

use super::Event;
use super::info::{TableFileCreationInfo, TableFileCreationStartedInfo, TableFileDeletionInfo};
use super::reasons::TableFileCreationReason;
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use outcrop_base::{Error, Result};
use outcrop_table::TableProperties;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A table whose creation was told to begin.
pub struct ReportedTable(TableFileCreationStartedInfo);

impl ReportedTable {
    /// Tells that job `job_id` begins the table at `path`; `None` if nobody listens.
    pub fn begin(
        ctx: &DbContext,
        cf: &ColumnFamily,
        path: &Path,
        (job_id, reason): (i32, TableFileCreationReason),
    ) -> Option<ReportedTable> {
        if !ctx.listens() {
            return None;
        }
        let started = TableFileCreationStartedInfo {
            db_path: ctx.path.clone(),
            cf_name: cf.name().to_string(),
            file_path: path.to_path_buf(),
            job_id,
            reason,
        };
        ctx.tell(Event::TableFileCreationStarted(&started));
        Some(ReportedTable(started))
    }

    /// Tells that it has its size and properties, or why it has not.
    pub fn ended(self, ctx: &DbContext, made: Result<(u64, TableProperties)>) {
        let (size, properties, status) = match made {
            Ok((size, properties)) => (size, properties, None),
            Err(error) => (0, TableProperties::default(), Some(error)),
        };
        let started = self.0;
        let created =
            TableFileCreationInfo { started, file_size: size, properties: Arc::new(properties), status };
        ctx.tell(Event::TableFileCreated(&created));
    }
}

/// Tells that the table at `path` is removed, or why not.
pub fn removed(ctx: &DbContext, path: PathBuf, status: Option<Error>) {
    if ctx.listens() {
        let deletion =
            TableFileDeletionInfo { db_path: ctx.path.clone(), file_path: path, job_id: 0, status };
        ctx.tell(Event::TableFileDeleted(&deletion));
    }
}
