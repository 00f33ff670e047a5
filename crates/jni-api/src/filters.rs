//! Filters in Java: of compactions, by a factory, and of tables. And `AbstractTransactionNotifier`, told of snapshots.

use crate::callbacks::{Global, Method};
use crate::env::Env;
use crate::glue::{Answer, handle, object};
use crate::objects::{Callback, Filter, callback};
use crate::{snapshots, tables, transactions};
use jni_sys::{jlong, jobject, jvalue};
use outcrop::{CompactionFilter, CompactionFilterFactory, FilterContext, SnapshotNotifier, TableFilter};
use outcrop_capi::{rocksdb_options_t, rocksdb_readoptions_t};
use std::sync::Arc;

/// `AbstractCompactionFilterFactory`.
struct JavaFactory {
    object: Global,
    name: String,
    create: Method,
}

pub(crate) type Factory = Arc<dyn CompactionFilterFactory>;

pub(crate) fn create_factory(env: Env, this: jobject) -> Answer<jlong> {
    let name = env.text(env.call(this, "name", "()Ljava/lang/String;", &[])?)?;
    let base = env.class("org/rocksdb/AbstractCompactionFilterFactory")?;
    let create = Method::of_class(env, base, c"createCompactionFilter", c"(ZZ)J")?;
    Ok(handle::<Factory>(Arc::new(JavaFactory { object: Global::new(env, this)?, name, create })))
}

pub(crate) fn set_factory(options: jlong, factory: jlong) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.compaction_filter_factory =
        Some(object::<Factory>(factory).clone());
    Ok(())
}

impl CompactionFilterFactory for JavaFactory {
    fn name(&self) -> &str {
        &self.name
    }

    /// After an exception the compaction goes unfiltered, as in RocksJava.
    fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let made = self.object.run(|env, factory| {
            let arguments =
                [jvalue { z: context.is_full_compaction }, jvalue { z: context.is_manual_compaction }];
            self.create.call_long(env, factory, &arguments)
        })?;
        // SAFETY: see `glue`: the object of Java's gave its filter away.
        (made != 0).then(|| *unsafe { Box::from_raw(made as *mut Filter) })
    }
}

/// `AbstractTableFilter`.
struct JavaTableFilter {
    object: Global,
    filter: Method,
}

pub(crate) fn create_table_filter(env: Env, this: jobject) -> Answer<jlong> {
    let filter = Method::of(env, this, c"filter", c"(Lorg/rocksdb/TableProperties;)Z")?;
    Ok(handle::<Callback>(Box::new(Arc::new(JavaTableFilter { object: Global::new(env, this)?, filter }))))
}

/// A table whose filter throws is read: one that is left out hides its entries. RocksJava leaves it out.
pub(crate) fn set_table_filter(options: jlong, filter: jlong) -> Answer<()> {
    let own = callback::<Arc<JavaTableFilter>>(filter)?.clone();
    let filter = TableFilter::new(move |properties| {
        let takes = own.object.run(|env, filter| {
            own.filter.call_bool(env, filter, &[jvalue { l: tables::properties(env, properties)? }])
        });
        takes.unwrap_or(true)
    });
    object::<rocksdb_readoptions_t>(options).options.table_filter = Some(filter);
    Ok(())
}

pub(crate) fn create_notifier(env: Env, this: jobject) -> Answer<jlong> {
    let base = env.class("org/rocksdb/AbstractTransactionNotifier")?;
    let created = Method::of_class(env, base, c"snapshotCreated", c"(J)V")?;
    let own = Global::new(env, this)?;
    Ok(handle::<SnapshotNotifier>(Arc::new(move |snapshot| {
        own.run(|env, notifier| {
            // The object of Java's owns nothing: it is good for as long as the call takes.
            snapshots::lend(snapshot, |number| created.call(env, notifier, &[jvalue { j: number }]))
        });
    })))
}

pub(crate) fn notify(txn: jlong, notifier: jlong) -> Answer<()> {
    let notifier = object::<SnapshotNotifier>(notifier).clone();
    transactions::engine(txn)?.set_snapshot_on_next_operation(Some(notifier));
    Ok(())
}
