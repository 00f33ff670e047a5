//! `outcrop ldb dump` of a blob file, record by record.
//!
//! Source: RocksDB `utilities/blob_db/blob_dump_tool.cc`, for its form.

use super::LdbArguments;
use super::text::{digits, line};
use outcrop::{Env, Error};
use outcrop_env::{Access, OpenRead};
use outcrop_options::CompressionType;
use outcrop_table::blob::{BlobReader, column_family_of};
use std::path::Path;

impl LdbArguments {
    /// Header, footer and records; with `raw` values as they were put, else as they are stored.
    pub(super) fn dump_blob_file(&self, path: &Path, raw: bool) -> Result<(), Error> {
        let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
        let file = Env::posix().fs.open_read(path, read)?;
        let family = column_family_of(&*file)?;
        let reader = BlobReader::open(file, family)?;
        println!("Blob log header:\n  Version          : 1\n  Column Family ID : {family}");
        println!("  Compression      : {}\n  Expiration range : nil", option_name(reader.codec()));
        println!("Blob log footer:\n  Blob count       : {}\n  Expiration Range : nil", reader.count());
        let shown = |bytes: &[u8], hex: bool| if hex { digits(bytes).into_bytes() } else { bytes.to_vec() };
        let (mut records, mut keys, mut stored, mut values) = (0u64, 0u64, 0u64, 0u64);
        reader.each_record(|record| {
            println!("Read record with offset 0x{:x} ({}):", record.offset, record.offset);
            println!("  key size   : {}", record.key.len());
            println!("  value size : {}\n  expiration : 0", record.stored.len());
            line(&[&b"  key        : "[..], &shown(record.key, self.hex_keys())].concat());
            let (name, value) =
                if raw { ("  raw blob   : ", record.value) } else { ("  blob       : ", record.stored) };
            line(&[name.as_bytes(), &shown(value, self.hex_values())].concat());
            records += 1;
            keys += record.key.len() as u64;
            stored += record.stored.len() as u64;
            values += record.value.len() as u64;
            Ok(())
        })?;
        println!(
            "Summary:\n  total records: {records}\n  total key size: {keys}\n  total blob size: {stored}"
        );
        if reader.codec() != CompressionType::None {
            println!("  total raw blob size: {values}");
        }
        Ok(())
    }
}

/// The codec's name in options.
fn option_name(codec: CompressionType) -> &'static str {
    match codec {
        CompressionType::None => "kNoCompression",
        CompressionType::Snappy => "kSnappyCompression",
        CompressionType::Zlib => "kZlibCompression",
        CompressionType::BZip2 => "kBZip2Compression",
        CompressionType::Lz4 => "kLZ4Compression",
        CompressionType::Lz4hc => "kLZ4HCCompression",
        CompressionType::Zstd => "kZSTD",
    }
}
