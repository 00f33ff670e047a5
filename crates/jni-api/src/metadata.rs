//! Facts about an open database: its files, column families, options in force, work in the background.

use crate::args::Bytes;
use crate::db::{JavaDb, Layer, engine, family};
use crate::env::Env;
use crate::glue::{Answer, Thrown, c_text, checked, handle, object};
use crate::lent::{self, Part};
use crate::slices::JavaSlice;
use crate::status::Status;
use jni_sys::{jint, jlong, jobject, jvalue};
use outcrop::{ColumnFamilyHandle, LiveFile, LiveFilesOptions, StorageFileKind};
use outcrop_capi as c;
use outcrop_capi::{rocksdb_column_family_handle_t, rocksdb_options_t};
use outcrop_options::kept::{CF_KEPT, DB_KEPT};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

/// The engine's handle of a column family, the default one for 0.
pub(crate) fn engine_family<'a>(db: jlong, own: jlong) -> &'a ColumnFamilyHandle {
    &object::<rocksdb_column_family_handle_t>(family(db, own) as jlong).0
}

fn checksum(env: Env, file: &LiveFile) -> Answer<jobject> {
    match &file.file_checksum {
        None => env.new_bytes(&[]),
        Some(checksum) => env.new_bytes(&checksum.checksum),
    }
}

/// Arguments of a file's class, from its name on.
fn file_arguments(env: Env, file: &LiveFile) -> Answer<Vec<jvalue>> {
    Ok(vec![
        jvalue { l: env.new_text(&format!("/{}", file.name))? },
        jvalue { l: env.new_text(&file.directory.to_string_lossy())? },
        jvalue { j: file.size as jlong },
        jvalue { j: file.smallest_seq as jlong },
        jvalue { j: file.largest_seq as jlong },
        jvalue { l: env.new_bytes(&file.smallest_key)? },
        jvalue { l: env.new_bytes(&file.largest_key)? },
        // Reads are not sampled by file, and nobody is told which files are being compacted.
        jvalue { j: 0 },
        jvalue { z: false },
        jvalue { j: file.num_entries as jlong },
        jvalue { j: file.num_deletions as jlong },
        jvalue { l: checksum(env, file)? },
    ])
}

/// `LiveFileMetaData` of every table.
pub(crate) fn live_files(env: Env, db: jlong) -> Answer<jobject> {
    let files: Answer<Vec<jobject>> = engine(db)
        .live_files()
        .iter()
        .map(|file| {
            let mut arguments = vec![
                jvalue { l: env.new_bytes(file.column_family.as_bytes())? },
                jvalue { i: file.level as jint },
            ];
            arguments.extend(file_arguments(env, file)?);
            let signature = "([BILjava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V";
            env.new_object("org/rocksdb/LiveFileMetaData", signature, &arguments)
        })
        .collect();
    env.new_array("org/rocksdb/LiveFileMetaData", files?)
}

/// `ColumnFamilyMetaData`.
pub(crate) fn column_family(env: Env, db: jlong, own: jlong) -> Answer<jobject> {
    let (db, family) = (engine(db), engine_family(db, own));
    let files = db.live_files_cf(family);
    let levels: Answer<Vec<jobject>> = (0..db.num_levels_cf(family))
        .map(|level| {
            let of_level: Vec<&LiveFile> = files.iter().filter(|file| file.level == level).collect();
            let tables: Answer<Vec<jobject>> = of_level
                .iter()
                .map(|file| {
                    let signature = "(Ljava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V";
                    env.new_object("org/rocksdb/SstFileMetaData", signature, &file_arguments(env, file)?)
                })
                .collect();
            let arguments = [
                jvalue { i: level as jint },
                jvalue { j: of_level.iter().map(|file| file.size).sum::<u64>() as jlong },
                jvalue { l: env.new_array("org/rocksdb/SstFileMetaData", tables?)? },
            ];
            env.new_object("org/rocksdb/LevelMetaData", "(IJ[Lorg/rocksdb/SstFileMetaData;)V", &arguments)
        })
        .collect();
    let arguments = [
        jvalue { j: files.iter().map(|file| file.size).sum::<u64>() as jlong },
        jvalue { j: files.len() as jlong },
        jvalue { l: env.new_bytes(family.name().as_bytes())? },
        jvalue { l: env.new_array("org/rocksdb/LevelMetaData", levels?)? },
    ];
    env.new_object("org/rocksdb/ColumnFamilyMetaData", "(JJ[B[Lorg/rocksdb/LevelMetaData;)V", &arguments)
}

/// Paths from the database's directory on, and the size of the MANIFEST last. WALs are not among them, as in RocksDB.
pub(crate) fn live_names(env: Env, db: jlong, flush: bool) -> Answer<jobject> {
    // Flushing if the WALs have so many bytes: always, or never.
    let wal_size_for_flush = if flush { 0 } else { u64::MAX };
    let options = LiveFilesOptions { wal_size_for_flush, ..LiveFilesOptions::default() };
    let mut files = engine(db).live_files_storage_info(&options)?.files;
    files.retain(|file| file.kind != StorageFileKind::Wal);
    // RocksDB's order: tables, CURRENT, MANIFEST, OPTIONS.
    files.sort_by_key(|file| match file.kind {
        StorageFileKind::Current => 1,
        StorageFileKind::Manifest => 2,
        StorageFileKind::Options => 3,
        _ => 0,
    });
    let names = files.iter().map(|file| format!("/{}", file.name));
    let manifest =
        files.iter().find(|file| file.kind == StorageFileKind::Manifest).map_or(0, |file| file.size);
    env.new_array("java/lang/String", names.chain([manifest.to_string()]))
}

/// `LogFile` of each WAL, ascending.
pub(crate) fn wal_files(env: Env, db: jlong) -> Answer<jobject> {
    let files: Answer<Vec<jobject>> = engine(db)
        .wal_files()?
        .iter()
        .map(|file| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            let directory = if file.is_archived { "/archive" } else { "" };
            let arguments = [
                jvalue { l: env.new_text(&format!("{directory}/{name}"))? },
                jvalue { j: file.number as jlong },
                jvalue { b: i8::from(!file.is_archived) },
                jvalue { j: file.start_sequence.0 as jlong },
                jvalue { j: file.size_bytes as jlong },
            ];
            env.new_object("org/rocksdb/LogFile", "(Ljava/lang/String;JBJJ)V", &arguments)
        })
        .collect();
    env.new_array("org/rocksdb/LogFile", files?)
}

/// The sum of a number of all column families.
pub(crate) fn summed_property(env: Env, db: jlong, name: jobject) -> Answer<jlong> {
    let (db, name) = (engine(db), env.text(name)?);
    let numbers: Option<Vec<u64>> =
        db.column_families().iter().map(|family| db.property_int_cf(family, &name)).collect();
    // It is one of a database, which each of them gives as it is.
    let numbers = numbers.ok_or_else(|| Thrown::Status(Status::parse("NotFound")))?;
    Ok(numbers.iter().sum::<u64>() as jlong)
}

pub(crate) fn map_property(env: Env, (db, family): (jlong, jlong), name: jobject) -> Answer<jobject> {
    let name = env.text(name)?;
    let map = engine(db).property_map_cf(engine_family(db, family), &name);
    let map = map.ok_or_else(|| Thrown::Status(Status::parse("NotFound")))?;
    env.new_map(map.iter().map(|(key, value)| Ok((env.new_text(key)?, env.new_text(value)?))))
}

/// Options as `name=value;`, those of the database or of a column family.
pub(crate) fn options(db: jlong, own: Option<jlong>) -> Answer<String> {
    let db_options = engine(db).db_options();
    let families: Vec<_> = own
        .iter()
        .map(|own| ("default".to_string(), engine_family(db, *own).options().as_ref().clone()))
        .collect();
    let text = outcrop_options::file::print(&db_options, &families);
    let section = if own.is_some() { "[CFOptions \"default\"]" } else { "[DBOptions]" };
    let lines = text.lines().map(str::trim).skip_while(|line| *line != section).skip(1);
    let mut pairs: Vec<String> = lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.contains('=') && !line.starts_with('#'))
        .map(ToString::to_string)
        .collect();
    // The file leaves out what is only kept and was not set.
    let kept = if own.is_some() { CF_KEPT } else { DB_KEPT };
    // Without those that are empty, which RocksJava cannot read.
    for row in kept.iter().filter(|row| !row.default.is_empty()) {
        let start = format!("{}=", row.name);
        if !pairs.iter().any(|pair| pair.starts_with(&start)) {
            pairs.push(format!("{start}{}", row.default));
        }
    }
    Ok(pairs.into_iter().map(|pair| pair + ";").collect())
}

/// The column family's name and options.
pub(crate) fn descriptor(env: Env, own: jlong) -> Answer<jobject> {
    let family = &object::<rocksdb_column_family_handle_t>(own).0;
    let mut options = rocksdb_options_t::default();
    options.cf = family.options().as_ref().clone();
    options.parts.comparator = family.comparator.clone();
    options.parts.merge_operator.clone_from(&family.merge_operator);
    options.parts.compaction_filter.clone_from(&family.compaction_filter);
    options.parts.compaction_filter_factory.clone_from(&family.compaction_filter_factory);
    new_descriptor(env, family.name().as_bytes(), options)
}

/// `ColumnFamilyDescriptor`.
pub(crate) fn new_descriptor(env: Env, name: &[u8], options: rocksdb_options_t) -> Answer<jobject> {
    let options =
        env.new_object("org/rocksdb/ColumnFamilyOptions", "(J)V", &[jvalue { j: handle(options) }])?;
    let arguments = [jvalue { l: env.new_bytes(name)? }, jvalue { l: options }];
    let signature = "([BLorg/rocksdb/ColumnFamilyOptions;)V";
    env.new_object("org/rocksdb/ColumnFamilyDescriptor", signature, &arguments)
}

pub(crate) fn compact_files(
    env: Env,
    (db, options, own): (jlong, jlong, jlong),
    files: jobject,
    (level, path): (jint, jint),
    info: jlong,
) -> Answer<jobject> {
    let files = env.texts(files)?.into_iter().map(c_text).collect::<Answer<Vec<_>>>()?;
    let names: Vec<_> = files.iter().map(|file| file.as_ptr()).collect();
    let (mut made, mut count) = (null_mut(), 0);
    // SAFETY: see `glue`.
    unsafe {
        checked(|error| {
            c::rocksdb_compact_files_cf(
                crate::db::db(db),
                family(db, own),
                options as *const _,
                names.as_ptr(),
                names.len(),
                level,
                path,
                &mut made,
                &mut count,
                info as *mut _,
                error,
            );
        })?;
        let paths: Vec<String> = (0..count)
            .map(|i| std::ffi::CStr::from_ptr(*made.add(i)).to_string_lossy().into_owned())
            .collect();
        c::rocksdb_compact_files_output_file_names_destroy(made, count);
        env.new_array("java/lang/String", paths)
    }
}

pub(crate) fn promote(db: jlong, own: jlong, level: jint) -> Answer<()> {
    let level = usize::try_from(level).unwrap_or(usize::MAX);
    Ok(engine(db).promote_l0_cf(engine_family(db, own), level)?)
}

pub(crate) fn export(env: Env, checkpoint: jlong, family: jlong, path: jobject) -> Answer<jlong> {
    let path = c_text(env.text(path)?)?;
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_checkpoint_export_column_family(
            checkpoint as *mut _,
            family as *mut _,
            path.as_ptr(),
            error,
        ) as jlong
    })
}

pub(crate) fn import(
    env: Env,
    db: jlong,
    (name, len): (jobject, jint),
    (options, how): (jlong, jlong),
    metadata: jobject,
) -> Answer<jlong> {
    let name = String::from_utf8_lossy(&env.bytes(name, 0, len)?).into_owned();
    let handles = env.longs(metadata)?;
    let exported: Vec<_> =
        handles.iter().map(|own| &object::<c::rocksdb_export_import_files_metadata_t>(*own).0).collect();
    let descriptor = object::<rocksdb_options_t>(options).descriptor(&name)?;
    let how = object::<c::rocksdb_import_column_family_options_t>(how).options;
    let made = match object::<JavaDb>(db).layer {
        // It has locks for the new keys.
        Layer::Transactional(layer) => {
            // SAFETY: see `glue`.
            let layer = unsafe { &*layer };
            layer.db.create_column_family_with_import(descriptor, how, &exported)?
        }
        _ => engine(db).create_column_family_with_import(descriptor, how, &exported)?,
    };
    Ok(handle(rocksdb_column_family_handle_t(made)))
}

/// Bytes by the numbers of `MemoryUsageType`.
pub(crate) fn memory(env: Env, databases: jobject, caches: jobject) -> Answer<jobject> {
    let list = |array: jobject| if array.is_null() { Ok(Vec::new()) } else { env.longs(array) };
    let (databases, caches) = (list(databases)?, list(caches)?);
    let has = |handles: &[jlong]| handles.iter().any(|own| *own != 0);
    // As in RocksDB, kinds that nothing was asked about are left out.
    let asked = [has(&databases), has(&databases), has(&databases), has(&caches)];
    // SAFETY: see `glue`.
    let numbers = unsafe {
        let consumers = c::rocksdb_memory_consumers_create();
        for own in databases.into_iter().filter(|own| *own != 0) {
            c::rocksdb_memory_consumers_add_db(consumers, object::<JavaDb>(own).db);
        }
        for own in caches.into_iter().filter(|own| *own != 0) {
            c::rocksdb_memory_consumers_add_cache(consumers, own as *mut _);
        }
        let usage = checked(|error| c::rocksdb_approximate_memory_usage_create(consumers, error));
        c::rocksdb_memory_consumers_destroy(consumers);
        let usage = usage?;
        let numbers = [
            c::rocksdb_approximate_memory_usage_get_mem_table_total(usage),
            c::rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage),
            c::rocksdb_approximate_memory_usage_get_mem_table_readers_total(usage),
            c::rocksdb_approximate_memory_usage_get_cache_total(usage),
        ];
        c::rocksdb_approximate_memory_usage_destroy(usage);
        numbers
    };
    let numbers = numbers.iter().enumerate().filter(|(kind, _)| asked[*kind]);
    env.new_map(numbers.map(|(kind, bytes)| {
        let kind = env.new_object("java/lang/Byte", "(B)V", &[jvalue { b: kind as i8 }])?;
        Ok((kind, env.new_object("java/lang/Long", "(J)V", &[jvalue { j: *bytes as jlong }])?))
    }))
}

/// Ranges that should be compacted: RocksDB marks the tables around the empty key, and so RocksJava's answer is the range from there to there.
pub(crate) fn suggest(db: jlong, own: jlong) -> Answer<Vec<jlong>> {
    engine(db).suggest_compact_range_cf(engine_family(db, own), Some(b""), Some(b""))?;
    let end = || handle(crate::slices::JavaSlice::of(Vec::new()));
    Ok(vec![end(), end()])
}

pub(crate) fn enable_auto_compaction(env: Env, db: jlong, families: jobject) -> Answer<()> {
    for own in env.longs(families)? {
        engine(db).set_options_cf(engine_family(db, own), &[("disable_auto_compactions", "false")])?;
    }
    Ok(())
}

/// Entries and bytes of a range in memtables.
pub(crate) fn memtable_stats(db: jlong, family: jlong, begin: jlong, end: jlong) -> Answer<Vec<jlong>> {
    let (begin, end) = (object::<JavaSlice>(begin).bytes(), object::<JavaSlice>(end).bytes());
    let stats = engine(db).approximate_memtable_stats_cf(engine_family(db, family), begin, end)?;
    Ok(vec![stats.entries as jlong, stats.bytes as jlong])
}

pub(crate) fn clip(env: Env, (db, family): (jlong, jlong), begin: Bytes, end: Bytes) -> Answer<()> {
    let (begin, end) = (begin.get(env)?, end.get(env)?);
    Ok(engine(db).clip_column_family(engine_family(db, family), &*begin, &*end)?)
}

/// The environment: that of [`default_environment`], or an object that goes with the database's.
pub(crate) fn environment(db: jlong) -> Answer<jlong> {
    let env = engine(db).env();
    match Arc::ptr_eq(&env.scheduler, &outcrop::Env::posix().scheduler) {
        true => Ok(default_environment()),
        false => Ok(lent::give(db, Part::Environment, outcrop_capi::rocksdb_env_t::of(env.clone()))),
    }
}

/// One object for the default environment: the jar compares handles.
pub(crate) fn default_environment() -> jlong {
    static DEFAULT: OnceLock<jlong> = OnceLock::new();
    *DEFAULT.get_or_init(|| outcrop_capi::rocksdb_create_default_env() as jlong)
}
