//! `outcrop ldb` verbs about the files of a database.

use super::LdbArguments;
use super::open::current_manifest;
use super::text::digits;
use crate::inspect::open_table;
use outcrop::{Db, Env, Error, LiveFile};
use outcrop_base::SeqNum;
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::VersionEdit;
use outcrop_manifest::file_name;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::Path;

impl LdbArguments {
    /// The state that the MANIFEST's edits add up to; with `--verbose` every edit of it before.
    pub(super) fn manifest_dump(&self) -> Result<(), Error> {
        let env = Env::posix();
        let path = match &self.path {
            Some(path) => path.clone(),
            None => current_manifest(&env, self.dir()?)?,
        };
        if self.json {
            return Err(Error::not_supported("manifest_dump --json"));
        }
        println!("Processing Manifest file {}", path.display());
        let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
        let mut reader = LogReader::of_manifest(env.fs.open_read(&path, read)?);
        let mut edits = Vec::new();
        loop {
            match reader.next()? {
                ReadOutcome::Record(bytes, offset) => {
                    let edit = VersionEdit::decode(bytes)
                        .map_err(|error| error.within(format!("offset {offset}")))?;
                    if self.verbose {
                        println!("offset {offset}: {edit:?}");
                    }
                    edits.push(edit);
                }
                ReadOutcome::Damaged(damage) => return Err(damage.error),
                ReadOutcome::End => break,
            }
        }
        self.print_structure(&path, &edits)?;
        println!("Processing Manifest file {} done", path.display());
        Ok(())
    }

    /// The column families that the edits come to, as if they were a MANIFEST by themselves: it need not be in charge.
    fn print_structure(&self, path: &Path, edits: &[VersionEdit]) -> Result<(), Error> {
        let memory = Env::memory();
        let dir = Path::new("/manifest");
        memory.fs.create_dir_all(dir)?;
        outcrop_manifest::ManifestWriter::create(&*memory.fs, dir, outcrop_manifest::FileNumber(1), edits)
            .map_err(|error| error.within(path.display()))?;
        let recovered = outcrop_manifest::recover(&*memory.fs, dir, &|_| None, &|_| 64, false)
            .map_err(|error| error.within(path.display()))?;
        for cf in &recovered.column_families {
            println!("--------------- Column family \"{}\"  (ID {}) --------------", cf.name, cf.id);
            println!("log number: {}", cf.log_number);
            println!("comparator: {}", cf.comparator_name.as_deref().unwrap_or("leveldb.BytewiseComparator"));
            for (number, level) in cf.version.levels.iter().enumerate() {
                println!("--- level {number} --- version# 1 ---");
                for file in &level.files[..] {
                    let bound = |key: &[u8]| {
                        let (user, trailer) = outcrop_base::keys::split(key);
                        let user = match self.hex_keys() {
                            true => digits(user),
                            false => String::from_utf8_lossy(user).into_owned(),
                        };
                        format!("'{user}' seq:{}, type:{}", trailer.seq().0, trailer.type_byte())
                    };
                    println!(
                        " {}:{}[{} .. {}][{} .. {}]",
                        file.number.0,
                        file.size,
                        file.smallest_seq,
                        file.largest_seq,
                        bound(&file.smallest),
                        bound(&file.largest)
                    );
                }
            }
        }
        println!(
            "next_file_number {} last_sequence {}  prev_log_number 0 max_column_family {} min_log_number_to_keep {}",
            recovered.next_file_number,
            recovered.last_sequence,
            recovered.max_column_family,
            recovered.min_log_number_to_keep
        );
        Ok(())
    }

    pub(super) fn list_live_files_metadata(&self) -> Result<(), Error> {
        let (db, _) = self.open_to_read()?;
        let dir = self.normal_dir()?;
        let mut files = db.live_files();
        files.sort_by(|a, b| (a.level, &a.name).cmp(&(b.level, &b.name)));
        let path = |dir: &str, name: &str| format!("{dir}/{}", name.trim_start_matches('/'));
        let table_path = |file: &LiveFile| path(&self.dir_of(file, &dir), &file.name);
        let blobs = self.blob_files(&db, &dir)?;
        if self.copies.sort_by_filename {
            println!("Live SST and Blob Files:");
            let table = |file: &LiveFile| {
                let level = file.level;
                (table_path(file), format!(" : level {level}, column family '{}'", file.column_family))
            };
            let mut all: Vec<(String, String)> = files.iter().map(table).collect();
            all.extend(blobs.iter().map(|(cf, path)| (path.clone(), format!(", column family '{cf}'"))));
            all.sort();
            all.iter().for_each(|(name, rest)| println!("{name}{rest}"));
        } else {
            for cf in db.column_families() {
                println!("===== Column Family: {} =====", cf.name());
                println!("Live SST Files:");
                for level in 0..db.num_levels_cf(&cf) {
                    println!("---------- level {level} ----------");
                    let here =
                        files.iter().filter(|file| file.level == level && file.column_family == cf.name());
                    here.for_each(|file| println!("{}", table_path(file)));
                }
                println!("Live Blob Files:");
                blobs.iter().filter(|(of, _)| of == cf.name()).for_each(|(_, path)| println!("{path}"));
            }
        }
        println!("------------------------------");
        Ok(())
    }

    /// The directory without a slash at its end.
    fn normal_dir(&self) -> Result<String, Error> {
        let dir = self.dir()?.display().to_string();
        let short = dir.trim_end_matches('/');
        Ok(if short.is_empty() { dir } else { short.to_string() })
    }

    /// The directory of a table of the database in `dir`.
    fn dir_of(&self, file: &LiveFile, dir: &str) -> String {
        match self.db.as_deref() {
            Some(own) if own != file.directory => file.directory.display().to_string(),
            _ => dir.to_string(),
        }
    }

    /// Paths of live blob files, with their column families, of the database in `dir`.
    fn blob_files(&self, db: &Db, dir: &str) -> Result<Vec<(String, String)>, Error> {
        let env = Env::posix();
        let recovered = outcrop_manifest::recover(&*env.fs, self.dir()?, &|_| None, &|_| 64, false)?;
        let of = |cf: &outcrop_manifest::RecoveredColumnFamily| {
            let name = cf.name.clone();
            let options = db.column_family(&name).map(|cf| cf.options());
            let first =
                options.and_then(|options| Some(options.cf_paths.first()?.path.display().to_string()));
            let dir = first.unwrap_or_else(|| dir.to_string());
            let numbers: Vec<_> = cf.version.blob_files.keys().copied().collect();
            numbers.into_iter().map(move |number| (name.clone(), format!("{dir}/{:06}.blob", number.0)))
        };
        Ok(recovered.column_families.iter().flat_map(of).collect())
    }

    /// MANIFEST, tables and WALs with what is in them.
    pub(super) fn dump_live_files(&self) -> Result<(), Error> {
        let heading = |text: &str| println!("{text}\n==============================");
        let (db, _) = self.open_to_read()?;
        let dir = self.normal_dir()?;
        heading("Manifest File");
        let manifest = current_manifest(&Env::posix(), self.dir()?)?;
        let name = manifest.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{dir}/{name}");
        self.manifest_dump()?;
        println!();
        let blobs = self.blob_files(&db, &dir)?;
        for cf in db.column_families() {
            heading(&format!("Column family name: {}", cf.name()));
            println!();
            heading("SST Files");
            let mut files = db.live_files_cf(&cf);
            files.sort_by_key(|file| file.level);
            for file in files {
                let path = format!("{}/{}", self.dir_of(&file, &dir), file.name.trim_start_matches('/'));
                println!("{path} level:{}\n------------------------------", file.level);
                let table = open_table(&Env::posix(), path.as_ref(), SeqNum::MAX)?;
                println!("column family name={}", table.properties().column_family_name);
                self.dump_table(path.as_ref())?;
                println!();
            }
            heading("Blob Files");
            for (_, path) in blobs.iter().filter(|(of, _)| of == cf.name()) {
                println!("{path}\n------------------------------");
                self.dump_blob_file(path.as_ref(), self.dump.dump_uncompressed_blobs)?;
                println!();
            }
        }
        println!();
        heading("Write Ahead Log Files");
        for wal in db.wal_files()?.into_iter().filter(|wal| !wal.is_archived) {
            println!("{}", wal.path.display());
            self.dump_wals(&[wal.path], (true, true))?;
        }
        Ok(())
    }

    /// Range tombstones of each table. Source: RocksDB `Version::TablesRangeTombstoneSummary`.
    pub(super) fn list_file_range_deletes(&self) -> Result<(), Error> {
        let (db, cf) = self.open_to_read()?;
        let mut left = self.max_keys.unwrap_or(1000);
        for file in db.live_files_cf(&cf) {
            let path = file_name::table(&file.directory, outcrop_manifest::FileNumber(file.number));
            let table = open_table(&Env::posix(), &path, SeqNum::MAX)?;
            let tombstones = table.range_tombstones();
            if tombstones.is_empty() {
                continue;
            }
            println!("=== file : {} ===", path.display());
            for tombstone in tombstones.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                let (begin, end) = (digits(&tombstone.begin), digits(&tombstone.end));
                println!("start: {begin} end: {end} seq: {}", tombstone.seq);
                left -= 1;
            }
        }
        Ok(())
    }

    /// Checksums of whole tables, as far as the MANIFEST has them.
    pub(super) fn file_checksum_dump(&self) -> Result<(), Error> {
        let env = Env::posix();
        let recovered = outcrop_manifest::recover(&*env.fs, self.dir()?, &|_| None, &|_| 64, false)?;
        let families = recovered.column_families.iter();
        let mut files: Vec<_> = families.flat_map(|cf| cf.version.files().map(|(_, file)| file)).collect();
        files.sort_by_key(|file| file.number);
        for file in files {
            let (function, checksum) = file.checksum();
            let function = if function.is_empty() { b"Unknown" } else { function };
            println!("{}, {}, 0x{}", file.number.0, String::from_utf8_lossy(function), digits(checksum));
        }
        println!("Print SST file checksum information finished ");
        Ok(())
    }
}
