//! `outcrop ldb` verbs that print many rows, and that read them again.

use super::LdbArguments;
use super::text::{digits, from_hex, line};
use outcrop::{Error, HistogramKind, KeyVersion, Statistics, WriteOptions};
use outcrop_base::{ValueType, wide_columns};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_options::CompressionType;
use outcrop_table::blob::BlobIndex;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::path::Path;

/// Flags of these verbs.
#[derive(clap::Args)]
#[command(rename_all = "snake_case")]
pub struct DumpArguments {
    /// Print no values.
    #[arg(long)]
    pub(super) no_value: bool,
    /// Only count.
    #[arg(long)]
    count_only: bool,
    /// Count keys by what is before this in them.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = ".")]
    count_delim: Option<String>,
    /// Print statistics first.
    #[arg(long)]
    stats: bool,
    /// --from and --to are hexadecimal.
    #[arg(long)]
    input_key_hex: bool,
    /// Print what references into blob files say.
    #[arg(long)]
    pub(super) decode_blob_index: bool,
    /// Print values of blob files as they were put, and not as they are stored.
    #[arg(long)]
    pub(super) dump_uncompressed_blobs: bool,
    /// Write past the WAL.
    #[arg(long)]
    disable_wal: bool,
    /// Load under options for that: no automatic compactions.
    #[arg(long)]
    bulk_load: bool,
    /// Compact after loading.
    #[arg(long)]
    compact: bool,
}

/// The histogram that sizes of values are counted in.
const SIZES: HistogramKind = HistogramKind::BytesPerRead;

/// Rows counted by what is before a delimiter.
struct Counts {
    delimiter: u8,
    group: Vec<u8>,
    count: u64,
    size: u64,
}

impl Counts {
    fn new(delimiter: &str) -> Counts {
        Counts { delimiter: delimiter.bytes().next().unwrap_or(b'.'), group: Vec::new(), count: 0, size: 0 }
    }

    fn add(&mut self, key: &[u8], size: u64) {
        let end = key.iter().position(|byte| *byte == self.delimiter || *byte == 0).unwrap_or(key.len());
        let group = &key[..end];
        if self.count > 0 && !self.group.is_empty() && self.group != group {
            self.print();
            (self.count, self.size) = (0, 0);
        }
        self.group = group.to_vec();
        self.count += 1;
        self.size += size;
    }

    fn print(&self) {
        let counted = format!(" => count:{}\tsize:{}", self.count, self.size);
        line(&[&self.group[..], counted.as_bytes()].concat());
    }
}

impl LdbArguments {
    /// All rows between the bounds, and how many.
    pub(super) fn dump(&self) -> Result<(), Error> {
        if let Some(path) = &self.path {
            return self.dump_file(path);
        }
        for (given, flag) in [
            (self.dump.decode_blob_index, "decode_blob_index"),
            (self.dump.dump_uncompressed_blobs, "dump_uncompressed_blobs"),
        ] {
            if given {
                return Err(Error::invalid_argument(format!(
                    "--{flag}: only for the file of --path, or idump"
                )));
            }
        }
        let (db, cf) = self.open_to_read()?;
        if self.dump.stats {
            println!("{}", db.property_cf(&cf, "rocksdb.stats").unwrap_or_default());
        }
        let mut iter = db.cursor_cf_with(&cf, &self.bounds()?)?;
        let mut counts = self.dump.count_delim.as_deref().map(Counts::new);
        let mut rows = 0;
        let sizes = Statistics::new();
        iter.seek_to_first();
        while iter.valid() && self.max_keys.is_none_or(|most| rows < most) {
            rows += 1;
            match &mut counts {
                Some(counts) => counts.add(iter.key(), (iter.key().len() + iter.value().len()) as u64),
                None if self.dump.count_only => sizes.record(SIZES, iter.value().len() as u64),
                None => line(&self.row_text(iter.key(), iter.value(), &iter.columns()?)),
            }
            iter.next();
        }
        iter.status().map_err(|error| error.within("Iterator error"))?;
        match &counts {
            Some(counts) => counts.print(),
            None => println!("Keys in range: {rows}"),
        }
        if self.dump.count_only && counts.is_none() {
            println!("Value size distribution: \n{}", sizes.histogram(SIZES));
        }
        Ok(())
    }

    /// A file without its database, by what its name says it is.
    fn dump_file(&self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match file_name::parse(&name) {
            Some(FileKind::Wal(_)) => self.dump_wals(&[path.to_path_buf()], (true, true)),
            Some(FileKind::Table(_)) => self.dump_table(path),
            Some(FileKind::Manifest(_)) => self.manifest_dump(),
            Some(FileKind::Blob(_)) => self.dump_blob_file(path, self.dump.dump_uncompressed_blobs),
            _ => Err(Error::invalid_argument(format!(
                "{name}: Invalid file name, or not one that can be dumped"
            ))),
        }
    }

    /// All entries between the bounds, as they are stored.
    pub(super) fn idump(&self) -> Result<(), Error> {
        let bound = |text: &Option<String>| {
            let read = |text: &str| match self.dump.input_key_hex {
                true => from_hex(text),
                false => self.key(text),
            };
            text.as_deref().map(read).transpose()
        };
        let (from, to) = (bound(&self.from)?, bound(&self.to)?);
        let (db, cf) = self.open_to_read()?;
        if self.dump.stats {
            println!("{}", db.property_cf(&cf, "rocksdb.stats").unwrap_or_default());
        }
        let mut counts = self.dump.count_delim.as_deref().map(Counts::new);
        let mut entries = 0u64;
        let mut failed = Ok(());
        let each = |version: &KeyVersion<'_>| {
            let ends = to.as_deref().is_some_and(|to| cf.comparator.compare(version.user_key, to).is_ge());
            if ends || self.max_keys.is_some_and(|most| most > 0 && entries >= most) {
                return ControlFlow::Break(());
            }
            entries += 1;
            match &mut counts {
                Some(counts) => {
                    counts.add(version.user_key, (version.user_key.len() + version.value.len()) as u64)
                }
                None if self.dump.count_only => {}
                None => match self.entry_text(version) {
                    Ok(text) => line(&text),
                    Err(error) => failed = Err(error),
                },
            }
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        db.each_key_version_cf(&cf, from.as_deref(), each)?;
        failed?;
        match &counts {
            Some(counts) => counts.print(),
            None => println!("Internal keys in range: {entries}"),
        }
        Ok(())
    }

    /// `'key' seq:1, type:1 => value`. Hexadecimal here comes without `0x`.
    fn entry_text(&self, version: &KeyVersion<'_>) -> Result<Vec<u8>, Error> {
        let part = |bytes: &[u8], hex: bool| if hex { digits(bytes).into_bytes() } else { bytes.to_vec() };
        let kind = ValueType::from_byte(version.value_type);
        let value = match kind {
            Some(ValueType::BlobIndex) if self.dump.decode_blob_index => {
                let index = BlobIndex::decode(version.value)?;
                blob_text(&index).into_bytes()
            }
            Some(ValueType::WideColumnEntity) => {
                let columns = wide_columns::decode(version.value)?;
                self.columns_text(columns.iter().map(|column| (column.name, column.value)))
            }
            _ => part(version.value, self.hex_values()),
        };
        let meta = format!("' seq:{}, type:{} => ", version.seq, version.value_type);
        Ok([&b"'"[..], &part(version.user_key, self.hex_keys()), meta.as_bytes(), &value].concat())
    }

    /// Puts the rows that `dump` printed, from standard input.
    pub(super) fn load(&self) -> Result<(), Error> {
        let bulk = if self.dump.bulk_load { "disable_auto_compactions=true;" } else { "" };
        let (db, cf) = self.open_under(bulk)?;
        let options = WriteOptions { disable_wal: self.dump.disable_wal, ..WriteOptions::default() };
        let bad = self.read_rows(|key, value| {
            db.put_cf_with(&cf, key, value, &options).map_err(|error| error.within("Load failed"))
        })?;
        if bad > 0 {
            println!("Warning: {bad} bad lines ignored.");
        }
        if self.dump.disable_wal {
            // Or they would be gone with this process.
            db.flush_cf(&cf)?;
        }
        if self.dump.compact {
            db.compact_range_cf(&cf, None, None).map_err(|error| error.within("Compaction failed"))?;
        }
        drop(cf);
        db.close()
    }

    /// Calls `each` for every row on standard input; gives the number of lines that are none.
    pub(super) fn read_rows(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mut bad = 0;
        for text in std::io::stdin().lock().split(b'\n') {
            let text = text.map_err(|error| Error::io("standard input", error))?;
            match self.parse_row(&text)? {
                Some((key, value)) => each(&key, &value)?,
                None if text.starts_with(b"Keys in range:") => {}
                None if text.starts_with(b"Created bg thread 0x") => {}
                None => bad += 1,
            }
        }
        Ok(bad)
    }
}

/// Source: RocksDB `db/blob/blob_index.h`, `BlobIndex::DebugString`.
pub fn blob_text(index: &BlobIndex) -> String {
    format!(
        "[blob ref] file:{} offset:{} size:{} compression: {}",
        index.file_number,
        index.offset,
        index.size,
        codec_name(index.codec)
    )
}

/// Source: RocksDB `util/compression.h`, `CompressionTypeToString`.
fn codec_name(codec: CompressionType) -> &'static str {
    match codec {
        CompressionType::None => "NoCompression",
        CompressionType::Snappy => "Snappy",
        CompressionType::Zlib => "Zlib",
        CompressionType::BZip2 => "BZip2",
        CompressionType::Lz4 => "LZ4",
        CompressionType::Lz4hc => "LZ4HC",
        CompressionType::Zstd => "ZSTD",
    }
}
