//! The options that a database is opened with: checked, corrected and completed.

use crate::column_family::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY};
use crate::objects::DbObjects;
use crate::partitioner::{FixedPrefixPartitioner, SstPartitionerFactory};
use outcrop_base::timestamp::TIMESTAMP_LEN;
use outcrop_base::{Comparator, Error, Result, builtin_merge};
use outcrop_cache::{Cache, CacheOptions};
use outcrop_memtable::MemTablePool;
use outcrop_options::{DbOptions, sanitize, validate};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Capacity of a block cache that nobody asked for, in bytes. Source: RocksDB's default.
const DEFAULT_CACHE_BYTES: usize = 32 << 20;

/// The options that a database is opened with.
pub struct OptionsInForce {
    /// Its own options.
    pub db: DbOptions,
    /// The column families to open, "default" first, each with a block cache.
    pub descriptors: Vec<ColumnFamilyDescriptor>,
    /// The options that differ from those given, in words.
    pub corrections: Vec<String>,
}

/// Checks options as given, and corrects what RocksDB corrects.
///
/// # Errors
/// InvalidArgument or NotSupported for what no database is opened with.
pub fn in_force(
    path: &Path,
    mut db: DbOptions,
    column_families: Vec<ColumnFamilyDescriptor>,
) -> Result<OptionsInForce> {
    let mut descriptors = complete_descriptors(column_families)?;
    for descriptor in &descriptors {
        check_column_family_options(descriptor, &db)?;
    }
    validate::db(&db)?;
    let context =
        sanitize::DbContext { path: path.to_path_buf(), file_limit: outcrop_env::open_files_limit() };
    let mut corrections: Vec<String> =
        sanitize::db(&mut db, &context).iter().map(ToString::to_string).collect();
    for descriptor in &mut descriptors {
        corrections.extend(sanitize_column_family(descriptor, &db));
    }
    Ok(OptionsInForce { db, descriptors, corrections })
}

/// Corrects options of a column family; gives what was corrected, in words.
pub fn sanitize_column_family(descriptor: &mut ColumnFamilyDescriptor, db: &DbOptions) -> Vec<String> {
    let parts = &descriptor.parts;
    let context = sanitize::CfContext {
        atomic_flush: db.atomic_flush,
        ingest_behind: db.allow_ingest_behind,
        has_filter: parts.compaction_filter.is_some() || parts.compaction_filter_factory.is_some(),
    };
    if descriptor.options.cf_paths.is_empty() {
        descriptor.options.cf_paths.clone_from(&db.db_paths);
    }
    let corrections = sanitize::column_family(&mut descriptor.options, &context);
    corrections.iter().map(|correction| format!("[{}] {correction}", descriptor.name)).collect()
}

/// The column families to open, "default" first, each with a block cache.
fn complete_descriptors(mut descriptors: Vec<ColumnFamilyDescriptor>) -> Result<Vec<ColumnFamilyDescriptor>> {
    if !descriptors.iter().any(|descriptor| descriptor.name == DEFAULT_COLUMN_FAMILY) {
        descriptors.push(ColumnFamilyDescriptor::default_with(Default::default(), Default::default()));
    }
    descriptors.sort_by_key(|descriptor| descriptor.name != DEFAULT_COLUMN_FAMILY);
    let mut names = BTreeSet::new();
    if let Some(twice) = descriptors.iter().find(|descriptor| !names.insert(&descriptor.name)) {
        return Err(Error::invalid_argument(format!("column family {} is named twice", twice.name)));
    }
    for descriptor in &mut descriptors {
        add_default_cache(descriptor);
        resolve_objects(descriptor)?;
    }
    Ok(descriptors)
}

/// Gives a column family a private block cache if it has none and wants one, and the blob cache that its options name.
pub fn add_default_cache(descriptor: &mut ColumnFamilyDescriptor) {
    if let (None, Some(capacity)) = (&descriptor.parts.blob_cache, descriptor.options.blob_cache_bytes()) {
        descriptor.parts.blob_cache = Some(Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 }));
    }
    if descriptor.options.table.no_block_cache {
        descriptor.parts.block_cache = None;
    } else if descriptor.parts.block_cache.is_none() {
        let asked = descriptor.options.table.block_cache_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let capacity = asked.unwrap_or(DEFAULT_CACHE_BYTES);
        descriptor.parts.block_cache = Some(Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 }));
    }
}

/// Makes names and objects of comparator, merge operator and partitioner agree.
pub fn resolve_objects(descriptor: &mut ColumnFamilyDescriptor) -> Result<()> {
    let (name, object) = (&mut descriptor.options.comparator, &mut descriptor.parts.comparator);
    if let (Comparator::Bytewise, Some(given)) = (&*object, name.as_deref()) {
        *object = Comparator::by_name(given).ok_or_else(|| {
            Error::invalid_argument(format!(
                "column family {}: there is no built-in comparator {given}; give the object",
                descriptor.name
            ))
        })?;
    }
    *name = Some(object.name().to_string());
    let (name, object) = (&mut descriptor.options.merge_operator, &mut descriptor.parts.merge_operator);
    match (object.as_ref(), name.as_deref()) {
        (Some(operator), _) => *name = Some(operator.name().to_string()),
        (None, Some(given)) => {
            let found = builtin_merge::by_name(given).ok_or_else(|| {
                Error::invalid_argument(format!(
                    "column family {}: there is no built-in merge operator {given}; give the object",
                    descriptor.name
                ))
            })?;
            // Under its full name, as RocksDB writes it.
            *name = Some(found.name().to_string());
            *object = Some(found);
        }
        (None, None) => {}
    }
    let (kept, object) = (&mut descriptor.options.kept, &mut descriptor.parts.sst_partitioner);
    match object {
        Some(factory) => kept.note_partitioner(factory.options_text()),
        None => {
            let prefix = kept.partition_prefix();
            *object = prefix
                .map(|length| -> Arc<dyn SstPartitionerFactory> { Arc::new(FixedPrefixPartitioner(length)) });
        }
    }
    Ok(())
}

/// Memory for memtables: what the largest column family may use beside its active one, at most two of them. Within a memory budget
/// nothing is held beside them.
pub fn memtable_pool(descriptors: &[ColumnFamilyDescriptor], objects: &DbObjects) -> Arc<MemTablePool> {
    let account = objects.memory_account();
    if let (Some(_), Some(account)) = (&objects.memory_budget, &account) {
        return Arc::new(MemTablePool::exact(account.clone()));
    }
    let largest =
        descriptors.iter().map(|descriptor| &descriptor.options).max_by_key(|o| o.write_buffer_size);
    let (size, beside) = largest.map_or((0, 0), |o| (o.write_buffer_size, o.max_write_buffer_number - 1));
    Arc::new(MemTablePool::for_memtables(size, beside.clamp(1, 2) as usize).with_account(account))
}

/// Refuses settings that no table or level could be built with.
pub fn check_column_family_options(descriptor: &ColumnFamilyDescriptor, db: &DbOptions) -> Result<()> {
    validate::column_family(&descriptor.options, db)
        .and_then(|()| check_timestamps(descriptor))
        .map_err(|error| error.within(format!("column family {}", descriptor.name)))
}

/// Refuses what this engine lacks of user-defined timestamps, by name.
fn check_timestamps(descriptor: &ColumnFamilyDescriptor) -> Result<()> {
    let len = descriptor.parts.comparator.timestamp_len();
    if len != 0 && len != TIMESTAMP_LEN {
        return Err(Error::not_supported(format!("user-defined timestamps of {len} bytes")));
    }
    let persisted = descriptor.options.kept.get("persist_user_defined_timestamps") != Some("false");
    if len != 0 && !persisted {
        return Err(Error::not_supported("persist_user_defined_timestamps=false"));
    }
    if len != 0 && descriptor.options.allow_ingest_behind {
        return Err(Error::not_supported("user-defined timestamps with ingestion behind"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
