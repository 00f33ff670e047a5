//! `AbstractEventListener`: listeners in Java, called on the engine's threads.
//!
//! The engine has no event for some of RocksDB's callbacks. A listener that has a method of its own for one of them would wait for ever,
//! so that making it throws; the jar enables all callbacks of a listener that does not say which it wants. Whether it wants to hear of
//! file IO is asked when options get it: it is made before its constructor has run.

use crate::callbacks::{Global, Method};
use crate::db::JavaDb;
use crate::env::{Env, jni};
use crate::glue::{Answer, dispose, handle, not_implemented, object};
use crate::status::Status;
use crate::tables;
use jni_sys::{jlong, jobject, jvalue};
use outcrop::{
    BackgroundErrorReason, BackgroundErrorRecoveryInfo, CompactionJobInfo, Db, Error, EventListener,
    ExternalFileIngestionInfo, FlushJobInfo, MemTableInfo, StallCondition, TableFileCreationInfo,
    TableFileCreationStartedInfo, TableFileDeletionInfo, WriteStallInfo,
};
use outcrop_capi::{rocksdb_compactionjobinfo_t, rocksdb_options_t};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A callback: its place in `EnabledEventCallback`, the method that natives call, and its signature.
type Callback = (u32, &'static CStr, &'static CStr);

const FLUSH_COMPLETED: Callback = (0, c"onFlushCompletedProxy", c"(JLorg/rocksdb/FlushJobInfo;)V");
const FLUSH_BEGIN: Callback = (1, c"onFlushBeginProxy", c"(JLorg/rocksdb/FlushJobInfo;)V");
const COMPACTION_BEGIN: Callback = (3, c"onCompactionBeginProxy", c"(JLorg/rocksdb/CompactionJobInfo;)V");
const COMPACTION_COMPLETED: Callback =
    (4, c"onCompactionCompletedProxy", c"(JLorg/rocksdb/CompactionJobInfo;)V");
const MEMTABLE_SEALED: Callback = (7, c"onMemTableSealed", c"(Lorg/rocksdb/MemTableInfo;)V");
const FILE_INGESTED: Callback =
    (9, c"onExternalFileIngestedProxy", c"(JLorg/rocksdb/ExternalFileIngestionInfo;)V");
const BACKGROUND_ERROR: Callback = (10, c"onBackgroundErrorProxy", c"(BLorg/rocksdb/Status;)V");
const TABLE_DELETED: Callback = (2, c"onTableFileDeleted", c"(Lorg/rocksdb/TableFileDeletionInfo;)V");
const TABLE_CREATED: Callback = (5, c"onTableFileCreated", c"(Lorg/rocksdb/TableFileCreationInfo;)V");
const TABLE_STARTED: Callback =
    (6, c"onTableFileCreationStarted", c"(Lorg/rocksdb/TableFileCreationBriefInfo;)V");
const STALL_CHANGED: Callback = (11, c"onStallConditionsChanged", c"(Lorg/rocksdb/WriteStallInfo;)V");

const RECOVERY_BEGIN: Callback = (20, c"onErrorRecoveryBeginProxy", c"(BLorg/rocksdb/Status;)Z");
const RECOVERY_COMPLETED: Callback = (21, c"onErrorRecoveryCompleted", c"(Lorg/rocksdb/Status;)V");

/// The engine has no event for it.
const HANDLE_DELETION: Callback =
    (8, c"onColumnFamilyHandleDeletionStarted", c"(Lorg/rocksdb/ColumnFamilyHandle;)V");

/// Asks whether the seven callbacks about files are wanted, for which there is no event either.
const FILE_IO: Callback = (19, c"shouldBeNotifiedOnFileIO", c"()Z");

pub(crate) struct JavaListener {
    object: Global,
    flush_completed: Option<Method>,
    flush_begin: Option<Method>,
    compaction_begin: Option<Method>,
    compaction_completed: Option<Method>,
    memtable_sealed: Option<Method>,
    file_ingested: Option<Method>,
    background_error: Option<Method>,
    stall_changed: Option<Method>,
    table_started: Option<Method>,
    table_created: Option<Method>,
    table_deleted: Option<Method>,
    recovery_begin: Option<Method>,
    recovery_completed: Option<Method>,
    wants_file_io: Option<Method>,
}

/// All that live, so that those of options are found again.
static LIVE: Mutex<Vec<Weak<JavaListener>>> = Mutex::new(Vec::new());

pub(crate) fn create(env: Env, this: jobject, enabled: jlong) -> Answer<jlong> {
    let base = env.class("org/rocksdb/AbstractEventListener")?;
    let is_enabled = |callback: &Callback| enabled >> callback.0 & 1 != 0;
    let (_, name, signature) = HANDLE_DELETION;
    if is_enabled(&HANDLE_DELETION)
        && Method::of(env, this, name, signature)? != Method::of_class(env, base, name, signature)?
    {
        return not_implemented(&format!("AbstractEventListener.{}", name.to_string_lossy()));
    }
    let method = |callback: Callback| -> Answer<Option<Method>> {
        match is_enabled(&callback) {
            true => Method::of(env, this, callback.1, callback.2)
                .or_else(|_| {
                    // Private methods are those of the class itself.
                    jni!(env, ExceptionClear);
                    Method::of_class(env, base, callback.1, callback.2)
                })
                .map(Some),
            false => Ok(None),
        }
    };
    let listener = Arc::new(JavaListener {
        object: Global::new(env, this)?,
        flush_completed: method(FLUSH_COMPLETED)?,
        flush_begin: method(FLUSH_BEGIN)?,
        compaction_begin: method(COMPACTION_BEGIN)?,
        compaction_completed: method(COMPACTION_COMPLETED)?,
        memtable_sealed: method(MEMTABLE_SEALED)?,
        file_ingested: method(FILE_INGESTED)?,
        background_error: method(BACKGROUND_ERROR)?,
        stall_changed: method(STALL_CHANGED)?,
        table_started: method(TABLE_STARTED)?,
        table_created: method(TABLE_CREATED)?,
        table_deleted: method(TABLE_DELETED)?,
        recovery_begin: method(RECOVERY_BEGIN)?,
        recovery_completed: method(RECOVERY_COMPLETED)?,
        wants_file_io: method(FILE_IO)?,
    });
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    live.retain(|known| known.strong_count() > 0);
    live.push(Arc::downgrade(&listener));
    drop(live);
    Ok(handle(listener))
}

/// Options and databases that have it keep it.
pub(crate) fn destroy(listener: jlong) -> Answer<()> {
    dispose::<Arc<JavaListener>>(listener)
}

pub(crate) fn set(env: Env, options: jlong, listeners: jobject) -> Answer<()> {
    let mut shared: Vec<Arc<dyn EventListener>> = Vec::new();
    for own in env.longs(listeners)? {
        let listener = object::<Arc<JavaListener>>(own);
        if let Some(method) = listener.wants_file_io
            && method.call_bool(env, listener.object.object(), &[])?
        {
            return not_implemented("AbstractEventListener.shouldBeNotifiedOnFileIO");
        }
        shared.push(listener.clone());
    }
    object::<rocksdb_options_t>(options).listeners = shared;
    Ok(())
}

/// The objects of Java's behind the listeners of options.
pub(crate) fn of(env: Env, options: jlong) -> Answer<jobject> {
    let live: Vec<Arc<JavaListener>> =
        LIVE.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    let found: Vec<jobject> = object::<rocksdb_options_t>(options)
        .listeners
        .iter()
        .filter_map(|listener| {
            live.iter().find(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(listener)))
        })
        .map(|known| jni!(env, NewLocalRef, known.object.object()))
        .collect();
    env.new_array("org/rocksdb/AbstractEventListener", found)
}

impl JavaListener {
    /// Calls `method` with what `arguments` makes.
    fn tell(&self, method: Option<Method>, arguments: impl FnOnce(Env) -> Answer<Vec<jvalue>>) {
        if let Some(method) = method {
            self.object.run(|env, listener| method.call(env, listener, &arguments(env)?));
        }
    }

    /// The same with a handle of the database, which is valid for as long as the call takes.
    fn tell_of(&self, method: Option<Method>, db: &Arc<Db>, info: impl FnOnce(Env) -> Answer<jobject>) {
        if let Some(method) = method {
            let lent = JavaDb::lent(db);
            self.object.run(|env, listener| {
                method.call(env, listener, &[jvalue { j: lent.handle() }, jvalue { l: info(env)? }])
            });
        }
    }
}

fn flush_info(env: Env, flush: &FlushJobInfo) -> Answer<jobject> {
    let arguments = [
        jvalue { j: flush.cf_id.0.into() },
        jvalue { l: env.new_text(&flush.cf_name)? },
        jvalue { l: env.new_text(&flush.file_path.to_string_lossy())? },
        jvalue { j: flush.thread_id as jlong },
        jvalue { i: flush.job_id },
        jvalue { z: flush.triggered_writes_slowdown },
        jvalue { z: flush.triggered_writes_stop },
        jvalue { j: flush.smallest_seqno.0 as jlong },
        jvalue { j: flush.largest_seqno.0 as jlong },
        jvalue { l: tables::properties(env, &flush.properties)? },
        jvalue { b: flush.reason as i8 },
    ];
    let signature = "(JLjava/lang/String;Ljava/lang/String;JIZZJJLorg/rocksdb/TableProperties;B)V";
    env.new_object("org/rocksdb/FlushJobInfo", signature, &arguments)
}

/// The last arguments of the constructors of both objects about a table's creation.
fn creation(env: Env, table: &TableFileCreationStartedInfo) -> Answer<[jvalue; 5]> {
    Ok([
        jvalue { l: env.new_text(&table.db_path.to_string_lossy())? },
        jvalue { l: env.new_text(&table.cf_name)? },
        jvalue { l: env.new_text(&table.file_path.to_string_lossy())? },
        jvalue { i: table.job_id },
        jvalue { b: table.reason as i8 },
    ])
}

/// An error, or OK.
fn status_of(env: Env, error: Option<&Error>) -> Answer<jobject> {
    let ok = Status { code: 0, subcode: 0, state: None };
    env.new_status(&error.map_or(ok, |error| Status::parse(&error.to_string())))
}

impl EventListener for JavaListener {
    fn table_file_creation_started(&self, table: &TableFileCreationStartedInfo) {
        self.tell(self.table_started, |env| {
            let class = "org/rocksdb/TableFileCreationBriefInfo";
            let signature = "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IB)V";
            Ok(vec![jvalue { l: env.new_object(class, signature, &creation(env, table)?)? }])
        });
    }

    fn table_file_created(&self, table: &TableFileCreationInfo) {
        self.tell(self.table_created, |env| {
            let own = [
                jvalue { j: table.file_size as jlong },
                jvalue { l: tables::properties(env, &table.properties)? },
                jvalue { l: status_of(env, table.status.as_ref())? },
            ];
            let arguments = [&own[..], &creation(env, &table.started)?].concat();
            let signature = "(JLorg/rocksdb/TableProperties;Lorg/rocksdb/Status;\
                             Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IB)V";
            let info = env.new_object("org/rocksdb/TableFileCreationInfo", signature, &arguments)?;
            Ok(vec![jvalue { l: info }])
        });
    }

    fn table_file_deleted(&self, table: &TableFileDeletionInfo) {
        self.tell(self.table_deleted, |env| {
            let arguments = [
                jvalue { l: env.new_text(&table.db_path.to_string_lossy())? },
                jvalue { l: env.new_text(&table.file_path.to_string_lossy())? },
                jvalue { i: table.job_id },
                jvalue { l: status_of(env, table.status.as_ref())? },
            ];
            let signature = "(Ljava/lang/String;Ljava/lang/String;ILorg/rocksdb/Status;)V";
            let info = env.new_object("org/rocksdb/TableFileDeletionInfo", signature, &arguments)?;
            Ok(vec![jvalue { l: info }])
        });
    }

    fn flush_begin(&self, db: &Arc<Db>, flush: &FlushJobInfo) {
        self.tell_of(self.flush_begin, db, |env| flush_info(env, flush));
    }

    fn flush_completed(&self, db: &Arc<Db>, flush: &FlushJobInfo) {
        self.tell_of(self.flush_completed, db, |env| flush_info(env, flush));
    }

    fn compaction_begin(&self, db: &Arc<Db>, compaction: &CompactionJobInfo) {
        // The object of Java's is about the one here, and owns nothing of it.
        let own = rocksdb_compactionjobinfo_t::new(compaction);
        self.tell_of(self.compaction_begin, db, |env| {
            env.new_object("org/rocksdb/CompactionJobInfo", "(J)V", &[jvalue { j: &raw const own as jlong }])
        });
    }

    fn compaction_completed(&self, db: &Arc<Db>, compaction: &CompactionJobInfo) {
        let own = rocksdb_compactionjobinfo_t::new(compaction);
        self.tell_of(self.compaction_completed, db, |env| {
            env.new_object("org/rocksdb/CompactionJobInfo", "(J)V", &[jvalue { j: &raw const own as jlong }])
        });
    }

    fn external_file_ingested(&self, db: &Arc<Db>, file: &ExternalFileIngestionInfo) {
        self.tell_of(self.file_ingested, db, |env| {
            let arguments = [
                jvalue { l: env.new_text(&file.cf_name)? },
                jvalue { l: env.new_text(&file.external_file_path.to_string_lossy())? },
                jvalue { l: env.new_text(&file.internal_file_path.to_string_lossy())? },
                jvalue { j: file.global_seqno.0 as jlong },
                jvalue { l: tables::properties(env, &file.properties)? },
            ];
            let signature =
                "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;JLorg/rocksdb/TableProperties;)V";
            env.new_object("org/rocksdb/ExternalFileIngestionInfo", signature, &arguments)
        });
    }

    fn background_error(&self, reason: BackgroundErrorReason, status: &mut Option<Error>) {
        self.tell(self.background_error, |env| {
            let status = status_of(env, status.as_ref())?;
            Ok(vec![jvalue { b: reason as i8 }, jvalue { l: status }])
        });
    }

    fn error_recovery_begin(
        &self,
        _: &Arc<Db>,
        reason: BackgroundErrorReason,
        error: &Error,
        auto_recovery: &mut bool,
    ) {
        let Some(method) = self.recovery_begin else { return };
        let wanted = self.object.run(|env, listener| {
            let status = status_of(env, Some(error))?;
            method.call_bool(env, listener, &[jvalue { b: reason as i8 }, jvalue { l: status }])
        });
        // After an exception the database does as if there was no listener.
        *auto_recovery &= wanted.unwrap_or(true);
    }

    fn error_recovery_end(&self, _: &Arc<Db>, recovery: &BackgroundErrorRecoveryInfo) {
        self.tell(self.recovery_completed, |env| {
            Ok(vec![jvalue { l: status_of(env, Some(&recovery.old_bg_error))? }])
        });
    }

    fn stall_conditions_changed(&self, stall: &WriteStallInfo) {
        self.tell(self.stall_changed, |env| {
            let number = |condition| match condition {
                StallCondition::Delayed => 0,
                StallCondition::Stopped => 1,
                StallCondition::Normal => 2,
            };
            let arguments = [
                jvalue { l: env.new_text(&stall.cf_name)? },
                jvalue { b: number(stall.current) },
                jvalue { b: number(stall.previous) },
            ];
            let info = env.new_object("org/rocksdb/WriteStallInfo", "(Ljava/lang/String;BB)V", &arguments)?;
            Ok(vec![jvalue { l: info }])
        });
    }

    fn memtable_sealed(&self, memtable: &MemTableInfo) {
        self.tell(self.memtable_sealed, |env| {
            let arguments = [
                jvalue { l: env.new_text(&memtable.cf_name)? },
                jvalue { j: memtable.first_seqno.0 as jlong },
                jvalue { j: memtable.earliest_seqno.0 as jlong },
                jvalue { j: memtable.num_entries as jlong },
                jvalue { j: memtable.num_deletes as jlong },
            ];
            let info = env.new_object("org/rocksdb/MemTableInfo", "(Ljava/lang/String;JJJJ)V", &arguments)?;
            Ok(vec![jvalue { l: info }])
        });
    }
}
