//! Collectors of table properties, and partitioners: what C programs can have tables marked and cut by.

use crate::memory::{give_back, hand_out};
use crate::options::rocksdb_options_t;
use libc::size_t;
use outcrop::{
    CompactOnDeletion, FixedPrefixPartitioner, SstPartitionerFactory, TablePropertiesCollectorFactory,
};
use std::sync::Arc;

unsafe fn add(options: *mut rocksdb_options_t, collector: CompactOnDeletion) {
    // SAFETY: the caller's contract: live options.
    unsafe { (*options).parts.collectors.push(Arc::new(collector)) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory(
    options: *mut rocksdb_options_t,
    window_size: size_t,
    deletion_trigger: size_t,
) {
    boundary!(add(
        options,
        CompactOnDeletion { window_size, deletion_trigger, ..CompactOnDeletion::default() }
    ))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    options: *mut rocksdb_options_t,
    window_size: size_t,
    deletion_trigger: size_t,
    deletion_ratio: f64,
) {
    boundary!(add(
        options,
        CompactOnDeletion { window_size, deletion_trigger, deletion_ratio, ..CompactOnDeletion::default() }
    ))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    options: *mut rocksdb_options_t,
    window_size: size_t,
    deletion_trigger: size_t,
    deletion_ratio: f64,
    min_file_size: u64,
) {
    boundary!(add(
        options,
        CompactOnDeletion { window_size, deletion_trigger, deletion_ratio, min_file_size }
    ))
}

/// A factory of collectors. C programs have no way to make one: those who give one have it from Rust.
pub struct rocksdb_table_properties_collector_factory_t(pub Arc<dyn TablePropertiesCollectorFactory>);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_collector_factory_destroy(
    factory: *mut rocksdb_table_properties_collector_factory_t,
) {
    boundary!(give_back(factory))
}

/// The factory stays the caller's; null is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_table_properties_collector_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_table_properties_collector_factory_t,
) {
    boundary!({
        if let (Some(options), Some(factory)) = (options.as_mut(), factory.as_ref()) {
            options.parts.collectors.push(factory.0.clone());
        }
    })
}

/// Where compactions end tables.
pub struct rocksdb_sst_partitioner_factory_t(Arc<dyn SstPartitionerFactory>);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_partitioner_fixed_prefix_factory_create(
    prefix_len: size_t,
) -> *mut rocksdb_sst_partitioner_factory_t {
    boundary!(hand_out(rocksdb_sst_partitioner_factory_t(Arc::new(FixedPrefixPartitioner(prefix_len)))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_partitioner_factory_destroy(
    factory: *mut rocksdb_sst_partitioner_factory_t,
) {
    boundary!(give_back(factory))
}

/// The factory stays the caller's; null changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_sst_partitioner_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_sst_partitioner_factory_t,
) {
    boundary!({
        if let (Some(options), Some(factory)) = (options.as_mut(), factory.as_ref()) {
            options.parts.sst_partitioner = Some(factory.0.clone());
        }
    })
}
