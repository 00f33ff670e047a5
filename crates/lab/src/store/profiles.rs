//! Where processor time went, in the record: stacks with their numbers, compressed; a later profile takes the place of an
//! earlier one.

use super::{Result, Store, StoreError, from_json, json};
use crate::analysis::cpu::{Profile, Samples};
use rusqlite::params;
use std::collections::BTreeMap;

/// Stacks longer than this when written out are not ours.
const MAX_BYTES: usize = 1 << 28;

impl Store {
    /// Keeps what was sampled of a step of a target of `experiment`.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record_profile(&self, experiment: i64, profile: &Profile) -> Result<()> {
        let stacks = json(&profile.samples.stacks);
        let stacks = zstd::bulk::compress(stacks.as_bytes(), 3).expect("compressing memory does not fail");
        self.db.execute(
            "INSERT OR REPLACE INTO profile (experiment, target, step, date, ops, events, stacks)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                experiment,
                profile.target as i64,
                profile.step,
                profile.date,
                profile.ops as i64,
                json(&profile.samples.events),
                stacks
            ],
        )?;
        Ok(())
    }

    /// The samples of an experiment, target by target.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn profiles(&self, experiment: i64) -> Result<Vec<Profile>> {
        let mut statement = self.db.prepare(
            "SELECT target, step, date, ops, events, stacks FROM profile WHERE experiment = ?1 ORDER BY target, step",
        )?;
        let mut rows = statement.query([experiment])?;
        let mut profiles = Vec::new();
        while let Some(row) = rows.next()? {
            profiles.push(Profile {
                target: row.get::<_, i64>(0)? as usize,
                step: row.get(1)?,
                date: row.get(2)?,
                ops: row.get::<_, i64>(3)? as u64,
                samples: Samples {
                    events: from_json("events", &row.get::<_, String>(4)?)?,
                    stacks: stacks(&row.get::<_, Vec<u8>>(5)?)?,
                },
            });
        }
        Ok(profiles)
    }
}

fn stacks(data: &[u8]) -> Result<BTreeMap<String, u64>> {
    let broken = |why: String| StoreError::Other(format!("store: stacks: {why}"));
    let bytes = zstd::bulk::decompress(data, MAX_BYTES).map_err(|error| broken(error.to_string()))?;
    from_json("stacks", std::str::from_utf8(&bytes).map_err(|error| broken(error.to_string()))?)
}
