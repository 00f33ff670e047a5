//! Codecs: what stands between a block's contents and its stored bytes.
//!
//! From format_version 2 on every codec but Snappy is preceded by the uncompressed size as a varint. Contexts
//! are kept per thread: creating one costs more than compressing a block.

use outcrop_base::coding::{get_varint32, put_varint32};
use outcrop_base::{Error, Result};
use outcrop_options::{CompressionOptions, CompressionType};
use std::cell::RefCell;

/// The largest block that is decompressed: bounds what a forged size can make us allocate.
const MAX_BLOCK_BYTES: usize = 1 << 30;

/// The level a codec uses when the option says "default".
const DEFAULT_LEVEL: i32 = 32767;

/// Compresses `contents` into `out` (cleared first). False if it did not get smaller than the options ask:
/// the block is then stored as it is.
pub fn compress(
    codec: CompressionType,
    options: &CompressionOptions,
    contents: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool> {
    out.clear();
    match codec {
        CompressionType::None => return Ok(false),
        CompressionType::Snappy => {
            out.resize(snap::raw::max_compress_len(contents.len()), 0);
            let len = snap::raw::Encoder::new()
                .compress(contents, out)
                .map_err(|error| Error::invalid_argument(format!("snappy: {error}")))?;
            out.truncate(len);
        }
        CompressionType::Lz4 => {
            put_size(contents, out);
            let start = out.len();
            out.resize(start + lz4_flex::block::get_maximum_output_size(contents.len()), 0);
            let len = lz4_flex::block::compress_into(contents, &mut out[start..])
                .map_err(|error| Error::invalid_argument(format!("lz4: {error}")))?;
            out.truncate(start + len);
        }
        CompressionType::Zstd => compress_zstd(options, contents, out)?,
        other => return Err(Error::not_supported(format!("writing with compression {other:?}"))),
    }
    let limit = contents.len() as u64 * u64::from(options.max_compressed_bytes_per_kb.min(1023)) / 1024;
    Ok(out.len() as u64 <= limit)
}

fn put_size(contents: &[u8], out: &mut Vec<u8>) {
    put_varint32(out, u32::try_from(contents.len()).expect("blocks are far below 4 GiB"));
}

thread_local! {
    static ZSTD_OUT: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    static ZSTD_IN: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn compress_zstd(options: &CompressionOptions, contents: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |error: std::io::Error| Error::invalid_argument(format!("zstd: {error}"));
    let level = if options.level == DEFAULT_LEVEL { 3 } else { options.level };
    put_size(contents, out);
    ZSTD_OUT.with(|cell| {
        let mut cell = cell.borrow_mut();
        if cell.as_ref().is_none_or(|(built_for, _)| *built_for != level) {
            *cell = Some((level, zstd::bulk::Compressor::new(level).map_err(failed)?));
        }
        let (_, compressor) = cell.as_mut().expect("just built");
        let start = out.len();
        out.resize(start + zstd::zstd_safe::compress_bound(contents.len()), 0);
        let len = compressor.compress_to_buffer(contents, &mut out[start..]).map_err(failed)?;
        out.truncate(start + len);
        Ok(())
    })
}

/// Decompresses a stored block into `out` (cleared first). The message of an error says what is wrong.
pub fn decompress(codec: u8, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let broken = |what: &str| Error::corruption(format!("{what} block does not decompress"));
    match CompressionType::from_byte(codec)? {
        CompressionType::None => out.extend_from_slice(stored),
        CompressionType::Snappy => {
            let len = snap::raw::decompress_len(stored).map_err(|_| broken("snappy"))?;
            out.resize(checked_len(len)?, 0);
            let got = snap::raw::Decoder::new().decompress(stored, out).map_err(|_| broken("snappy"))?;
            out.truncate(got);
        }
        CompressionType::Lz4 | CompressionType::Lz4hc => {
            let stored = sized_output(stored, out)?;
            let got = lz4_flex::block::decompress_into(stored, out).map_err(|_| broken("lz4"))?;
            exactly(got, out)?;
        }
        CompressionType::Zstd => {
            let stored = sized_output(stored, out)?;
            let got = ZSTD_IN.with(|cell| {
                let mut cell = cell.borrow_mut();
                if cell.is_none() {
                    *cell = zstd::bulk::Decompressor::new().ok();
                }
                let decompressor = cell.as_mut().ok_or_else(|| broken("zstd"))?;
                decompressor.decompress_to_buffer(stored, &mut out[..]).map_err(|_| broken("zstd"))
            })?;
            exactly(got, out)?;
        }
        other => return Err(Error::not_supported(format!("reading blocks compressed with {other:?}"))),
    }
    Ok(())
}

/// Makes `out` as long as the size before the payload says; gives the payload.
fn sized_output<'s>(stored: &'s [u8], out: &mut Vec<u8>) -> Result<&'s [u8]> {
    let (len, used) =
        get_varint32(stored).ok_or_else(|| Error::corruption("a compressed block lacks its size"))?;
    out.resize(checked_len(len as usize)?, 0);
    Ok(&stored[used..])
}

fn checked_len(len: usize) -> Result<usize> {
    if len > MAX_BLOCK_BYTES {
        return Err(Error::corruption(format!("a compressed block claims {len} bytes")));
    }
    Ok(len)
}

fn exactly(got: usize, out: &[u8]) -> Result<()> {
    if got != out.len() {
        return Err(Error::corruption(format!("a compressed block holds {got} bytes, not {}", out.len())));
    }
    Ok(())
}

/// The name in the properties block.
pub fn property_name(codec: CompressionType) -> &'static str {
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
