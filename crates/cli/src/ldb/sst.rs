//! `outcrop ldb` verbs about table files that come from outside, or go.

use super::LdbArguments;
use super::open::current_manifest;
use super::text::line;
use crate::inspect::open_table;
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyParts, Env, Error, IngestExternalFileOptions, SstFileWriter,
};
use outcrop_base::{ParsedKey, SeqNum, ValueType};
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit, file_name};
use outcrop_record::{LogReader, ReadOutcome};
use outcrop_table::blob::BlobIndex;
use outcrop_table::{Loading, TableIterOptions};
use std::path::Path;

/// Flags of ingest_extern_sst.
#[derive(clap::Args)]
#[command(rename_all = "snake_case")]
pub struct IngestArguments {
    /// Link the file and remove it where it was.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    move_files: Option<bool>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    snapshot_consistency: Option<bool>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_global_seqno: Option<bool>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_blocking_flush: Option<bool>,
    /// Existing keys hide those of the file.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ingest_behind: Option<bool>,
    /// Taken with a warning: files are not written to. Only RocksDB before 5.16 would miss the number in them.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    write_global_seqno: Option<bool>,
}

impl LdbArguments {
    /// Makes a table of the rows on standard input, in the order of the column family.
    pub(super) fn write_extern_sst(&self, path: &str) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        let parts = ColumnFamilyParts { comparator: cf.comparator.clone(), ..ColumnFamilyParts::default() };
        let options = (*cf.options()).clone();
        let descriptor = ColumnFamilyDescriptor { name: cf.name().to_string(), options, parts };
        let mut writer = SstFileWriter::create(path, &Env::posix(), &descriptor)
            .map_err(|error| error.within("failed to open SST file"))?;
        let bad = self.read_rows(|key, value| {
            writer.put(key, value).map_err(|error| error.within("failed to write record to file"))
        })?;
        writer.finish().map_err(|error| error.within("Failed to finish writing to file"))?;
        if bad > 0 {
            eprintln!("Warning: {bad} bad lines ignored.");
        }
        eprintln!("external SST file written to {path}");
        drop(cf);
        db.close()
    }

    pub(super) fn ingest_extern_sst(&self, path: &str) -> Result<(), Error> {
        let flags = &self.ingest;
        let allowed = flags.allow_global_seqno.unwrap_or(true);
        match flags.write_global_seqno {
            Some(true) if !allowed => {
                return Err(Error::invalid_argument(
                    "ldb cannot write global_seqno to the ingested SST when global_seqno is not allowed",
                ));
            }
            // The MANIFEST has it, where every version looks that this engine hands databases to.
            Some(_) => eprintln!(
                "Warning: not writing global_seqno to the ingested SST can\n\
                 prevent older versions of RocksDB from being able to open it"
            ),
            None => {}
        }
        let defaults = IngestExternalFileOptions::default();
        let options = IngestExternalFileOptions {
            move_files: flags.move_files.unwrap_or(defaults.move_files),
            snapshot_consistency: flags.snapshot_consistency.unwrap_or(defaults.snapshot_consistency),
            allow_global_seqno: flags.allow_global_seqno.unwrap_or(defaults.allow_global_seqno),
            allow_blocking_flush: flags.allow_blocking_flush.unwrap_or(defaults.allow_blocking_flush),
            ingest_behind: flags.ingest_behind.unwrap_or(defaults.ingest_behind),
            ..defaults
        };
        let (db, cf) = self.open()?;
        db.ingest_external_files_cf_with(&cf, &[path], &options)
            .map_err(|error| error.within("failed to ingest external SST"))?;
        eprintln!("external SST files ingested");
        drop(cf);
        db.close()
    }

    /// Prints the entries of one table.
    pub(super) fn dump_table(&self, path: &Path) -> Result<(), Error> {
        let table = open_table(&Env::posix(), path, SeqNum::MAX)?;
        println!("Process {}", path.display());
        println!("Sst file format: block-based");
        let options = TableIterOptions { loading: Loading::NotKept, ..TableIterOptions::default() };
        let mut iter = table.iter(options);
        iter.seek_to_first();
        while iter.valid() {
            let key = ParsedKey::parse(iter.key())?;
            let value = match key.value_type {
                ValueType::BlobIndex if self.dump.decode_blob_index => {
                    super::dump::blob_text(&BlobIndex::decode(iter.value())?).into_bytes()
                }
                _ => self.value_text(iter.value()),
            };
            let meta = format!("' seq:{}, type:{} => ", key.seq, key.value_type as u8);
            line(&[b"'".to_vec(), self.key_text(key.user_key), meta.into_bytes(), value].concat());
            iter.next();
        }
        iter.status()
    }

    /// Takes a table out of the MANIFEST, whatever is in it; its file goes when the database is opened next.
    pub(super) fn unsafe_remove_sst_file(&self, number: &str) -> Result<(), Error> {
        let wrong = || Error::invalid_argument(format!("Failed to parse SST file number {number}"));
        let number = FileNumber(number.parse().map_err(|_| wrong())?);
        let (env, dir) = (Env::posix(), self.dir()?);
        let _lock = env.fs.lock(&file_name::lock(dir))?;
        let recovered = outcrop_manifest::recover(&*env.fs, dir, &|_| None, &|_| 64, false)?;
        let found = recovered.column_families.iter().find_map(|cf| {
            let level = cf.version.files().find(|(_, file)| file.number == number)?.0;
            Some((cf.id, level as u32))
        });
        let (id, level) = found
            .ok_or_else(|| Error::new(outcrop_base::ErrorKind::NotFound, "SST file not found in MANIFEST"))?;
        let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
        let mut reader = LogReader::of_manifest(env.fs.open_read(&current_manifest(&env, dir)?, read)?);
        let mut edits = Vec::new();
        loop {
            match reader.next()? {
                ReadOutcome::End => break,
                ReadOutcome::Damaged(damage) => return Err(damage.error),
                ReadOutcome::Record(bytes, _) => edits.push(VersionEdit::decode(bytes)?),
            }
        }
        let manifest = recovered.next_file_number;
        let mut edit = VersionEdit::for_column_family(id);
        edit.deleted_files.push((level, number));
        edit.next_file_number = Some(manifest.next());
        edits.push(edit);
        ManifestWriter::create(&*env.fs, dir, manifest, &edits)?;
        println!("OK");
        Ok(())
    }
}
