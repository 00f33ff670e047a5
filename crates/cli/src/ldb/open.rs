//! Opening a database for `outcrop ldb`: under its own OPTIONS file, and what flags change of it.

use super::LdbArguments;
use crate::wal_dir::{self, Purpose};
use outcrop::options::LoadedOptions;
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyOptions, ColumnFamilyParts, Db, DbOptions, Env,
    Error,
};
use outcrop_base::{Comparator, ErrorKind, builtin_merge};
use outcrop_manifest::file_name::{self, FileKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Tables that are open at the same time while a database is read.
const OPEN_FILES: i32 = 256;

/// Flags that change options. Source: RocksDB `tools/ldb_cmd.cc`, `LDBCommand::OverrideBaseCFOptions`.
#[derive(clap::Args, Default)]
#[command(rename_all = "snake_case")]
pub struct OptionArguments {
    /// Take options from the newest OPTIONS file. Default true, unless the database is created.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    try_load_options: Option<bool>,
    /// Pass over options in that file that are not known.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_unknown_options: Option<bool>,
    /// Directory of the WALs, in place of the one in the OPTIONS file.
    #[arg(long)]
    pub(super) wal_dir: Option<PathBuf>,
    /// Open although tables break the rules of their levels.
    #[arg(long)]
    disable_consistency_checks: bool,
    /// Open as one that follows the process that writes the database; the directory is not used.
    #[arg(long)]
    pub(super) secondary_path: Option<String>,
    #[arg(long, hide_short_help = true)]
    bloom_bits: Option<u32>,
    #[arg(long, hide_short_help = true)]
    fix_prefix_len: Option<u32>,
    /// no, snappy, zlib, bzip2, lz4, lz4hc or zstd.
    #[arg(long, hide_short_help = true)]
    compression_type: Option<String>,
    #[arg(long, hide_short_help = true)]
    compression_max_dict_bytes: Option<u32>,
    #[arg(long, hide_short_help = true)]
    block_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    auto_compaction: Option<bool>,
    #[arg(long, hide_short_help = true)]
    db_write_buffer_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    write_buffer_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    file_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    enable_blob_files: bool,
    #[arg(long, hide_short_help = true)]
    min_blob_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    blob_file_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    blob_compression_type: Option<String>,
    #[arg(long, hide_short_help = true)]
    enable_blob_garbage_collection: bool,
    #[arg(long, hide_short_help = true)]
    blob_garbage_collection_age_cutoff: Option<f64>,
    #[arg(long, hide_short_help = true)]
    blob_garbage_collection_force_threshold: Option<f64>,
    #[arg(long, hide_short_help = true)]
    blob_compaction_readahead_size: Option<u64>,
    #[arg(long, hide_short_help = true)]
    blob_file_starting_level: Option<i32>,
}

impl OptionArguments {
    /// The flags as a string of RocksDB's options.
    fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!("{name}={value};");
            }
        };
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let mut table = String::new();
        table += &number(self.block_size).map_or_else(String::new, |size| format!("block_size={size};"));
        table += &self
            .bloom_bits
            .map_or_else(String::new, |bits| format!("filter_policy=bloomfilter:{bits}:false;"));
        add("block_based_table_factory", (!table.is_empty()).then(|| format!("{{{table}}}")));
        add("prefix_extractor", self.fix_prefix_len.map(|len| format!("fixed:{len}")));
        add("compression", self.compression_type.as_deref().map(compression).transpose()?);
        let dictionary = self.compression_max_dict_bytes;
        add("compression_opts", dictionary.map(|bytes| format!("{{max_dict_bytes={bytes}}}")));
        add("disable_auto_compactions", self.auto_compaction.map(|auto| (!auto).to_string()));
        add("db_write_buffer_size", number(self.db_write_buffer_size));
        add("write_buffer_size", number(self.write_buffer_size));
        add("target_file_size_base", number(self.file_size));
        add("enable_blob_files", self.enable_blob_files.then(|| "true".to_string()));
        add("min_blob_size", number(self.min_blob_size));
        add("blob_file_size", number(self.blob_file_size));
        add("blob_compression_type", self.blob_compression_type.as_deref().map(compression).transpose()?);
        let collects = self.enable_blob_garbage_collection.then(|| "true".to_string());
        add("enable_blob_garbage_collection", collects);
        let share = |value: Option<f64>| value.map(|value| value.to_string());
        add("blob_garbage_collection_age_cutoff", share(self.blob_garbage_collection_age_cutoff));
        add("blob_garbage_collection_force_threshold", share(self.blob_garbage_collection_force_threshold));
        add("blob_compaction_readahead_size", number(self.blob_compaction_readahead_size));
        add("blob_file_starting_level", self.blob_file_starting_level.map(|level| level.to_string()));
        add("force_consistency_checks", self.disable_consistency_checks.then(|| "false".to_string()));
        Ok(text)
    }
}

/// RocksDB's name of a codec by that of the tool.
fn compression(name: &str) -> Result<String, Error> {
    let known = match name {
        "no" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "zlib" => "kZlibCompression",
        "bzip2" => "kBZip2Compression",
        "lz4" => "kLZ4Compression",
        "lz4hc" => "kLZ4HCCompression",
        "zstd" => "kZSTD",
        _ => return Err(Error::invalid_argument(format!("Unknown compression algorithm: {name}"))),
    };
    Ok(known.to_string())
}

impl LdbArguments {
    /// Opens it to write.
    pub(super) fn open(&self) -> Result<(Db, ColumnFamilyHandle), Error> {
        self.open_under("")
    }

    /// The same, with more options in a string.
    pub(super) fn open_under(&self, more: &str) -> Result<(Db, ColumnFamilyHandle), Error> {
        let env = Env::posix();
        let dir = self.dir()?;
        let names = match Db::list_column_families_in(dir, &env) {
            Ok(names) => names,
            Err(error) if error.is_missing_file() && self.create_if_missing.unwrap_or(false) => {
                vec!["default".to_string()]
            }
            Err(error) => return Err(error),
        };
        let (mut options, mut families) = self.settings(&env, names, more, Purpose::Write)?;
        self.take_paths(&env, &mut options, &mut families)?;
        let create_if_missing = self.create_if_missing.unwrap_or(false);
        let options = DbOptions {
            create_if_missing,
            error_if_exists: false,
            create_missing_column_families: false,
            ..options
        };
        let db = Db::builder(dir).options(options).env(env).column_families(families).open()?;
        self.named_family(db)
    }

    /// Opens it to read: tables are opened when they are needed, so that a damaged one hides no other.
    pub(super) fn open_to_read(&self) -> Result<(Db, ColumnFamilyHandle), Error> {
        self.open_to_read_with(OPEN_FILES)
    }

    /// The same, with all tables opened at once: some properties are sums over those that are open.
    pub(super) fn open_all_to_read(&self) -> Result<(Db, ColumnFamilyHandle), Error> {
        self.open_to_read_with(-1)
    }

    fn open_to_read_with(&self, open_files: i32) -> Result<(Db, ColumnFamilyHandle), Error> {
        let env = Env::posix();
        let dir = self.dir()?;
        let names = Db::list_column_families_in(dir, &env)?;
        let (mut options, mut families) = self.settings(&env, names, "", Purpose::Read)?;
        self.take_paths(&env, &mut options, &mut families)?;
        let max_open_files = if self.options.secondary_path.is_some() { -1 } else { open_files };
        let options = DbOptions { max_open_files, ..options };
        let builder = Db::builder(dir).options(options).env(env).column_families(families);
        self.named_family(match self.options.secondary_path {
            Some(_) => builder.open_secondary()?,
            None => builder.open_read_only()?,
        })
    }

    fn named_family(&self, db: Db) -> Result<(Db, ColumnFamilyHandle), Error> {
        let cf = db.column_family(&self.column_family).ok_or_else(|| {
            Error::invalid_argument(format!("column family {} does not exist", self.column_family))
        })?;
        Ok((db, cf))
    }

    /// The settings of the newest OPTIONS file, with WALs where they are, and the column families `names` with theirs, in the key order
    /// that the MANIFEST names, all as far as it is built in; then what flags and `more` change of them.
    pub(super) fn settings(
        &self,
        env: &Env,
        names: Vec<String>,
        more: &str,
        purpose: Purpose,
    ) -> Result<(DbOptions, Vec<ColumnFamilyDescriptor>), Error> {
        let dir = self.dir()?;
        let LoadedOptions { mut db, families, .. } = self.stored_options(env)?;
        db.wal_dir = match &self.options.wal_dir {
            Some(dir) => Some(dir.clone()),
            None => wal_dir::locate(env, dir, db.wal_dir, purpose)?,
        };
        let orders = key_orders(env, dir);
        let mut loaded: BTreeMap<String, ColumnFamilyOptions> = families.into_iter().collect();
        let text = self.options.text()? + more;
        let mut descriptors = Vec::new();
        for name in names {
            let mut options = loaded.remove(&name).unwrap_or_default();
            let built_in = |name: &String| builtin_merge::by_name(name).is_some();
            options.merge_operator = options.merge_operator.filter(built_in);
            outcrop_options::file::set_from_string(&mut db, &mut options, &text)?;
            options.comparator = None;
            let comparator = orders.get(&name).cloned().unwrap_or_default();
            let parts = ColumnFamilyParts { comparator, ..ColumnFamilyParts::default() };
            descriptors.push(ColumnFamilyDescriptor { name, options, parts });
        }
        Ok((db, descriptors))
    }

    /// Has tables looked for where they are. Nothing opens it without its paths: new tables would be where the application does not look.
    fn take_paths(
        &self,
        env: &Env,
        db: &mut DbOptions,
        families: &mut [ColumnFamilyDescriptor],
    ) -> Result<(), Error> {
        let Some(paths) = Db::recorded_paths_in(self.dir()?, env)? else { return Ok(()) };
        for family in families {
            family.options.cf_paths = paths.of(&family.name).to_vec();
        }
        db.db_paths = paths.db_paths;
        Ok(())
    }

    /// The settings in the newest OPTIONS file; defaults if there is none. One that cannot be read is an error: it may say that WALs are
    /// elsewhere.
    pub(super) fn stored_options(&self, env: &Env) -> Result<LoadedOptions, Error> {
        if !self.options.try_load_options.unwrap_or(true) {
            return Ok(LoadedOptions::default());
        }
        match Db::load_latest_options_in(self.dir()?, env) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(LoadedOptions::default()),
            Err(error) => {
                Err(error.within("--try_load_options=false opens it without its OPTIONS file; it fails"))
            }
            Ok(loaded) => match loaded.unknown() {
                Some((section, name)) if !self.options.ignore_unknown_options.unwrap_or(false) => {
                    Err(Error::invalid_argument(format!(
                        "the OPTIONS file has an option that is not known, {name} in [{section}]; \
                         --ignore_unknown_options passes over it"
                    )))
                }
                _ => Ok(loaded),
            },
        }
    }

    /// The directory of the database.
    pub(super) fn dir(&self) -> Result<&Path, Error> {
        let missing = || Error::invalid_argument("db must be specified.");
        self.db.as_deref().ok_or_else(missing)
    }
}

/// Built-in key orders by column family; a database that cannot be read has none, and opening it says why.
fn key_orders(env: &Env, db: &Path) -> BTreeMap<String, Comparator> {
    let recovered = outcrop_manifest::recover(&*env.fs, db, &|_| None, &|_| 64, false);
    let families = recovered.map_or_else(|_| Vec::new(), |recovered| recovered.column_families);
    let order_of =
        |name: Option<String>| name.and_then(|name| Comparator::by_name(&name)).unwrap_or_default();
    families.into_iter().map(|family| (family.name, order_of(family.comparator_name))).collect()
}

/// The MANIFEST that CURRENT names; without CURRENT the only one there is.
pub fn current_manifest(env: &Env, db: &Path) -> Result<std::path::PathBuf, Error> {
    let all: Vec<String> = env.fs.list(db)?.into_iter().filter(|name| is_manifest(name)).collect();
    if all.len() > 1 {
        return Err(Error::invalid_argument("Multiple MANIFEST files found; use --path to select one"));
    }
    let contents = env.fs.read_all(&file_name::current(db))?;
    Ok(db.join(String::from_utf8_lossy(&contents).trim_end()))
}

fn is_manifest(name: &str) -> bool {
    matches!(file_name::parse(name), Some(FileKind::Manifest(_)))
}
