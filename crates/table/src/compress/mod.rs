//! Codecs: the conversion between a block's contents and its stored bytes.
//!
//! ```text
//! Snappy: its own stream | all others: v32 uncompressed size | stream
//! ```
//! The framing is that of format_version 2 and later, and of blob files. Zlib streams are raw deflate. The
//! codecs that refer back (Zlib, LZ4, ZSTD) can use a table's dictionary as if it stood before each block;
//! Snappy and BZip2 cannot.
//!
//! Concurrency: a [`Compressor`] belongs to one table under construction; [`decompress`] keeps one context per
//! thread, because creating one costs more than decompressing a block.
//! Next: `decode.rs` for the other direction, `samples.rs` for where dictionaries come from.

mod decode;
mod lz4hc;
mod samples;

pub use decode::{Dictionary, decompress};
pub use samples::{Sampler, build_dictionary};

use outcrop_base::coding::put_varint32;
use outcrop_base::{Error, Result};
use outcrop_options::{CompressionOptions, CompressionType};
use zstd::zstd_safe::{self, CCtx, CParameter};

/// The level of an option that says "the codec's default".
const DEFAULT_LEVEL: i32 = 32767;
/// The distance that dictionaries of LZ4 can reach back.
const LZ4_WINDOW: usize = 64 << 10;
/// Blocks from this size on are stored as they are.
const TOO_LARGE: usize = 1 << 31;

/// Compresses the blocks of one table.
pub struct Compressor {
    codec: CompressionType,
    options: CompressionOptions,
    dictionary: Vec<u8>,
    zstd: Option<CCtx<'static>>,
    deflate: Option<flate2::Compress>,
    lz4hc: Option<lz4hc::Encoder>,
    /// Decompress and compare what was compressed.
    verify: bool,
}

impl Compressor {
    /// A compressor with `codec`.
    pub fn new(codec: CompressionType, options: &CompressionOptions) -> Compressor {
        Compressor {
            codec,
            options: options.clone(),
            dictionary: Vec::new(),
            zstd: None,
            deflate: None,
            lz4hc: None,
            verify: false,
        }
    }

    /// The same, decompressing each block again to compare it.
    pub fn verifying(self, verify: bool) -> Compressor {
        Compressor { verify, ..self }
    }

    /// The same, for blocks that follow `dictionary`; for codecs that have dictionaries.
    pub fn with_dictionary(
        codec: CompressionType,
        options: &CompressionOptions,
        dictionary: Vec<u8>,
    ) -> Compressor {
        Compressor { dictionary, ..Compressor::new(codec, options) }
    }

    /// True if [`Compressor::compress`] tries to compress `contents`.
    pub fn tries(&self, contents: &[u8]) -> bool {
        self.codec != CompressionType::None && contents.len() < TOO_LARGE
    }

    /// Compresses `contents` into `out` (cleared first). [`CompressionType::None`] if it did not get as small
    /// as the options ask: the block is then stored as it is.
    ///
    /// # Errors
    /// InvalidArgument if the codec refuses its settings; Corruption if verification fails.
    pub fn compress(&mut self, contents: &[u8], out: &mut Vec<u8>) -> Result<CompressionType> {
        if !self.tries(contents) {
            return Ok(CompressionType::None);
        }
        self.encode(contents, out)?;
        let per_kb = u64::from(self.options.max_compressed_bytes_per_kb.min(1023));
        if out.len() as u64 > contents.len() as u64 * per_kb / 1024 {
            return Ok(CompressionType::None);
        }
        if self.verify {
            self.check(contents, out)?;
        }
        Ok(self.codec)
    }

    /// Compresses `contents` into `out` (cleared first), however large it gets; for readers that know the
    /// codec from elsewhere.
    ///
    /// # Errors
    /// InvalidArgument for 4 GiB and more, or if the codec refuses its settings.
    pub fn encode(&mut self, contents: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let len = u32::try_from(contents.len())
            .map_err(|_| Error::invalid_argument("values of 4 GiB and more cannot be compressed"))?;
        if !matches!(self.codec, CompressionType::Snappy | CompressionType::None) {
            put_varint32(out, len);
        }
        match self.codec {
            CompressionType::None => out.extend_from_slice(contents),
            CompressionType::Snappy => snappy(contents, out)?,
            CompressionType::Zlib => self.zlib(contents, out)?,
            CompressionType::BZip2 => bzip2(contents, out)?,
            CompressionType::Lz4 => lz4(contents, &self.dictionary, out)?,
            CompressionType::Lz4hc => self.lz4hc(contents, out),
            CompressionType::Zstd => self.zstd(contents, out)?,
        }
        Ok(())
    }

    fn check(&self, contents: &[u8], stored: &[u8]) -> Result<()> {
        let dictionary = match self.dictionary.is_empty() {
            true => None,
            false => Some(Dictionary::new(self.dictionary.clone())?),
        };
        let mut back = Vec::new();
        decompress(self.codec as u8, dictionary.as_ref(), stored, &mut back)?;
        if back == contents {
            return Ok(());
        }
        Err(Error::corruption(format!("{:?} does not give back what it compressed", self.codec)))
    }

    fn level(&self, default: i32) -> i32 {
        if self.options.level == DEFAULT_LEVEL { default } else { self.options.level }
    }

    fn zlib(&mut self, contents: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let failed = |what: &dyn std::fmt::Display| Error::invalid_argument(format!("zlib: {what}"));
        // RocksDB reads with a window of 2^14 bytes, whatever wrote the block.
        let window_bits = self.options.window_bits.unsigned_abs().clamp(9, 14) as u8;
        let level = self.level(6).clamp(0, 9) as u32;
        let deflate = self.deflate.get_or_insert_with(|| {
            flate2::Compress::new_with_window_bits(flate2::Compression::new(level), false, window_bits)
        });
        deflate.reset();
        if !self.dictionary.is_empty() {
            deflate.set_dictionary(&self.dictionary).map_err(|error| failed(&error))?;
        }
        // Deflate grows what it cannot shrink by 5 bytes for each 16 KiB at most.
        out.reserve(contents.len() + contents.len() / 1024 + 64);
        let status = deflate
            .compress_vec(contents, out, flate2::FlushCompress::Finish)
            .map_err(|error| failed(&error))?;
        if status == flate2::Status::StreamEnd { Ok(()) } else { Err(failed(&"the stream does not end")) }
    }

    fn lz4hc(&mut self, contents: &[u8], out: &mut Vec<u8>) {
        let level = self.level(lz4hc::DEFAULT_LEVEL);
        let encoder = self.lz4hc.get_or_insert_with(|| lz4hc::Encoder::new(level));
        encoder.encode(lz4_reach(&self.dictionary), contents, out);
    }

    fn zstd(&mut self, contents: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.zstd.is_none() {
            self.zstd = Some(self.zstd_context()?);
        }
        let context = self.zstd.as_mut().expect("just built");
        let start = out.len();
        out.resize(start + zstd_safe::compress_bound(contents.len()), 0);
        let len = context.compress2(&mut out[start..], contents).map_err(zstd_error)?;
        out.truncate(start + len);
        Ok(())
    }

    fn zstd_context(&self) -> Result<CCtx<'static>> {
        let mut context = CCtx::create();
        let level = self.level(3);
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(zstd_error)?;
        context.set_parameter(CParameter::ChecksumFlag(self.options.checksum)).map_err(zstd_error)?;
        if !self.dictionary.is_empty() {
            context.load_dictionary(&self.dictionary).map_err(zstd_error)?;
        }
        Ok(context)
    }
}

fn zstd_error(code: usize) -> Error {
    Error::invalid_argument(format!("zstd: {}", zstd_safe::get_error_name(code)))
}

fn snappy(contents: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.resize(snap::raw::max_compress_len(contents.len()), 0);
    let len = snap::raw::Encoder::new()
        .compress(contents, out)
        .map_err(|error| Error::invalid_argument(format!("snappy: {error}")))?;
    out.truncate(len);
    Ok(())
}

fn bzip2(contents: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |what: &dyn std::fmt::Display| Error::invalid_argument(format!("bzip2: {what}"));
    // RocksDB's parameters: blocks of 100 kB, and the library's usual work factor.
    let mut encoder = bzip2::Compress::new(bzip2::Compression::new(1), 30);
    // The bound of bzip2's manual: 1 % and 600 bytes more than there was.
    out.reserve(contents.len() + contents.len() / 100 + 600);
    let status =
        encoder.compress_vec(contents, out, bzip2::Action::Finish).map_err(|error| failed(&error))?;
    if status == bzip2::Status::StreamEnd { Ok(()) } else { Err(failed(&"the stream does not end")) }
}

fn lz4(contents: &[u8], dictionary: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(contents.len()), 0);
    let target = &mut out[start..];
    let len = if dictionary.is_empty() {
        lz4_flex::block::compress_into(contents, target)
    } else {
        lz4_flex::block::compress_into_with_dict(contents, target, lz4_reach(dictionary))
    };
    let len = len.map_err(|error| Error::invalid_argument(format!("lz4: {error}")))?;
    out.truncate(start + len);
    Ok(())
}

/// The part of a dictionary that LZ4 can refer to.
fn lz4_reach(dictionary: &[u8]) -> &[u8] {
    &dictionary[dictionary.len().saturating_sub(LZ4_WINDOW)..]
}

/// True for codecs that can use a dictionary.
pub fn has_dictionary(codec: CompressionType) -> bool {
    use CompressionType::{Lz4, Lz4hc, Zlib, Zstd};
    matches!(codec, Zlib | Lz4 | Lz4hc | Zstd)
}

/// The settings as the properties block has them, for people.
pub fn property_options(options: &CompressionOptions) -> String {
    format!(
        "window_bits={}; level={}; strategy=0; max_dict_bytes={}; zstd_max_train_bytes={}; enabled=0; \
         max_dict_buffer_bytes={}; use_zstd_dict_trainer=1; max_compressed_bytes_per_kb={}; checksum={}; ",
        options.window_bits,
        options.level,
        options.max_dict_bytes,
        options.zstd_max_train_bytes,
        options.max_dict_buffer_bytes,
        options.max_compressed_bytes_per_kb,
        u8::from(options.checksum)
    )
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

#[cfg(test)]
mod tests;
