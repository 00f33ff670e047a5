//! A write that is made as a table and ingested.
//!
//! Such a write is durable when it is acknowledged, and the WAL may not be; so the WAL is synced first, or an end could leave the write
//! without those before it.

use crate::application::{Application, Made, Outcome};
use crate::counts::Count;
use crate::harness::descriptor;
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_pingpong::history::{Change, FAMILIES, Write};
use std::collections::BTreeMap;
use std::path::Path;

/// Where tables are made.
const DIR: &str = "/tables";

/// True if a write is of one column family, and has puts and deletions alone.
pub fn can_be_table(write: &Write) -> bool {
    let family = |change: &Change| match change {
        Change::Put(family, ..) | Change::Delete(family, _) => Some(*family),
        Change::Merge(..) | Change::DeleteRange(..) => None,
    };
    let first = write.changes.first().and_then(family);
    first.is_some() && write.changes.iter().all(|change| family(change) == first)
}

impl Application<'_> {
    /// Makes a write as a table.
    ///
    /// # Errors
    /// Those of the database.
    pub fn ingest(&mut self, made: &Made) -> Result<Outcome> {
        let (shared, of) = (self.shared, made.of);
        let mut family = 0;
        let mut rows: BTreeMap<&[u8], Option<&[u8]>> = BTreeMap::new();
        for change in &made.write.changes {
            match change {
                Change::Put(of, key, value) => {
                    family = *of;
                    rows.insert(key, Some(value));
                }
                Change::Delete(of, key) => {
                    family = *of;
                    rows.insert(key, None);
                }
                Change::Merge(..) | Change::DeleteRange(..) => unreachable!("see can_be_table"),
            }
        }
        shared.surroundings.disk.memory().create_dir_all(Path::new(DIR))?;
        shared.opened.db().flush_wal()?;
        shared.opened.db().sync_wal()?;
        let path =
            format!("{DIR}/c{}t{}i{}a{}.sst", shared.cycle.shape.cycle, of.thread, of.index, of.attempt);
        let options = descriptor(FAMILIES[family], &shared.cycle.families[family]);
        let mut writer = SstFileWriter::create(&path, &shared.surroundings.env(), &options)?;
        for (key, value) in rows {
            match value {
                Some(value) => writer.put(key, value)?,
                None => writer.delete(key)?,
            }
        }
        writer.finish()?;
        // A copy takes a flipped bit along, where no checksum would see it until it is read.
        let move_files = shared.cycle.trouble.bit_flips_one_in > 0 || self.more.one_in(2);
        let options = IngestExternalFileOptions {
            move_files,
            failed_move_fall_back_to_copy: false,
            verify_checksums_before_ingest: self.more.one_in(2),
            ..IngestExternalFileOptions::default()
        };
        let cf = &shared.families[family];
        shared.opened.db().ingest_external_files_cf_with(cf, &[&path], &options)?;
        // Of a file that was copied; one that was moved is gone.
        let _ = shared.surroundings.disk.memory().remove_file(Path::new(&path));
        shared.count(Count::Ingested);
        Ok(Outcome::Done)
    }
}
