//! From stored bytes to a block's contents.
//!
//! Invariant: the output is exactly as long as the stored size says, or there is an error. A size that no
//! block has is refused before memory is taken for it.

use super::lz4_reach;
use outcrop_base::coding::get_varint32;
use outcrop_base::{Error, Result};
use outcrop_options::CompressionType;
use std::cell::RefCell;
use zstd::zstd_safe::{DCtx, DDict};

/// The largest block that is decompressed: bounds what a forged size can make us allocate.
const MAX_BLOCK_BYTES: usize = 1 << 30;
/// A stored byte of LZ4 adds at most this many bytes.
const LZ4_MAX_RATIO: usize = 255;
/// A stored byte of deflate stands for at most this many bytes.
const DEFLATE_MAX_RATIO: usize = 1032;
/// The largest size of one block inside a frame of zstd. One that repeats a byte takes 4 bytes.
const ZSTD_BLOCK_BYTES: usize = 128 << 10;
const ZSTD_MAX_RATIO: usize = ZSTD_BLOCK_BYTES / 4;
/// A frame of zstd that claims to expand further than this must have the blocks for it.
const ZSTD_CREDIBLE_RATIO: usize = 255;
/// How much bzip2 puts out before memory for more is taken: its runs of equal bytes have no useful bound.
const BZIP2_STEP_BYTES: usize = 1 << 20;
/// A copy of 64 bytes takes 3.
const SNAPPY_MAX_RATIO: usize = 32;

/// Bytes that each data block of a table may refer back to, as if they preceded it.
pub struct Dictionary {
    bytes: Vec<u8>,
    /// Prepared for ZSTD, if that can use it.
    zstd: Option<DDict<'static>>,
}

impl Dictionary {
    /// Prepares the contents of a table's dictionary block.
    ///
    /// # Errors
    /// Corruption if it is empty.
    pub fn new(bytes: Vec<u8>) -> Result<Dictionary> {
        if bytes.is_empty() {
            return Err(Error::corruption("the compression dictionary is empty"));
        }
        let zstd = DDict::try_create(&bytes);
        Ok(Dictionary { bytes, zstd })
    }

    /// Bytes it takes in memory.
    pub fn memory_usage(&self) -> usize {
        self.bytes.len() + self.zstd.as_ref().map_or(0, DDict::sizeof)
    }
}

thread_local! {
    static ZSTD: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    static INFLATE: RefCell<flate2::Decompress> = RefCell::new(flate2::Decompress::new(false));
}

/// Decompresses a stored block into `out` (cleared first).
///
/// # Errors
/// Corruption or NotSupported saying what is wrong, without the file's name.
pub fn decompress(
    codec: u8,
    dictionary: Option<&Dictionary>,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    match CompressionType::from_byte(codec)? {
        CompressionType::None => out.extend_from_slice(stored),
        CompressionType::Snappy => snappy(stored, out)?,
        CompressionType::Zlib => {
            let stream = sized_output(stored, DEFLATE_MAX_RATIO, out)?;
            zlib(stream, dictionary, out)?;
        }
        CompressionType::BZip2 => bzip2(stored, out)?,
        CompressionType::Lz4 | CompressionType::Lz4hc => {
            let stream = sized_output(stored, LZ4_MAX_RATIO, out)?;
            let got = match dictionary {
                None => lz4_flex::block::decompress_into(stream, out),
                Some(dictionary) => {
                    lz4_flex::block::decompress_into_with_dict(stream, out, lz4_reach(&dictionary.bytes))
                }
            };
            exactly(got.map_err(|_| broken("lz4"))?, out)?;
        }
        CompressionType::Zstd => {
            check_zstd_size(stored)?;
            let stream = sized_output(stored, ZSTD_MAX_RATIO, out)?;
            let prepared = match dictionary.map(|dictionary| &dictionary.zstd) {
                Some(None) => return Err(Error::corruption("the dictionary is none that zstd can load")),
                Some(Some(prepared)) => Some(prepared),
                None => None,
            };
            let got = ZSTD.with_borrow_mut(|context| match prepared {
                None => context.decompress(&mut out[..], stream),
                Some(prepared) => context.decompress_using_ddict(&mut out[..], stream, prepared),
            });
            exactly(got.map_err(|_| broken("zstd"))?, out)?;
        }
    }
    Ok(())
}

fn broken(what: &str) -> Error {
    Error::corruption(format!("{what} block does not decompress"))
}

fn snappy(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let len = snap::raw::decompress_len(stored).map_err(|_| broken("snappy"))?;
    out.resize(checked_len(len, SNAPPY_MAX_RATIO, stored.len())?, 0);
    let got = snap::raw::Decoder::new().decompress(stored, out).map_err(|_| broken("snappy"))?;
    exactly(got, out)
}

fn zlib(stream: &[u8], dictionary: Option<&Dictionary>, out: &mut [u8]) -> Result<()> {
    INFLATE.with_borrow_mut(|inflate| {
        inflate.reset(false);
        if let Some(dictionary) = dictionary {
            inflate.set_dictionary(&dictionary.bytes).map_err(|_| broken("zlib"))?;
        }
        let status =
            inflate.decompress(stream, out, flate2::FlushDecompress::Finish).map_err(|_| broken("zlib"))?;
        if status != flate2::Status::StreamEnd {
            return Err(broken("zlib"));
        }
        exactly(inflate.total_out() as usize, out)
    })
}

/// Takes memory as the stream fills it: only its contents tell how long it is.
fn bzip2(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (len, stream) = claimed_len(stored, usize::MAX)?;
    let mut decoder = bzip2::Decompress::new(false);
    out.resize(len.min(BZIP2_STEP_BYTES), 0);
    // The end of the stream, with its checksum, may take one more call than the data.
    let mut calls_when_full = 0;
    loop {
        let (read, written) = (decoder.total_in() as usize, decoder.total_out() as usize);
        let status = decoder.decompress(&stream[read..], &mut out[written..]).map_err(|_| broken("bzip2"))?;
        let now = decoder.total_out() as usize;
        if status == bzip2::Status::StreamEnd {
            out.truncate(now);
            return exactly_len(now, len);
        }
        if now < out.len() {
            return Err(broken("bzip2"));
        }
        if now < len {
            out.resize(len.min(now.saturating_mul(2)), 0);
        } else if calls_when_full == 1 {
            return Err(broken("bzip2"));
        } else {
            calls_when_full += 1;
        }
    }
}

/// Makes `out` as long as the size before the stream says; gives the stream.
fn sized_output<'s>(stored: &'s [u8], max_ratio: usize, out: &mut Vec<u8>) -> Result<&'s [u8]> {
    let (len, stream) = claimed_len(stored, max_ratio)?;
    out.resize(len, 0);
    Ok(stream)
}

/// The size before a stream, and the stream.
fn claimed_len(stored: &[u8], max_ratio: usize) -> Result<(usize, &[u8])> {
    let (len, used) =
        get_varint32(stored).ok_or_else(|| Error::corruption("a compressed block lacks its size"))?;
    Ok((checked_len(len as usize, max_ratio, stored.len())?, &stored[used..]))
}

/// A frame that says how much it holds must say the same as the size before it, and one that claims much
/// must have the blocks for it.
fn check_zstd_size(stored: &[u8]) -> Result<()> {
    let (len, stream) = claimed_len(stored, ZSTD_MAX_RATIO)?;
    match zstd::zstd_safe::get_frame_content_size(stream) {
        Ok(Some(held)) if held != len as u64 => return Err(broken("zstd")),
        Ok(_) => {}
        Err(_) => return Err(broken("zstd")),
    }
    let credible = len <= stored.len().saturating_mul(ZSTD_CREDIBLE_RATIO);
    if credible || zstd_bound(stream).is_some_and(|bound| len <= bound) {
        return Ok(());
    }
    Err(broken("zstd"))
}

/// The most that the blocks of a frame can hold (RFC 8878, 3.1.1); none if the frame is not whole.
fn zstd_bound(frame: &[u8]) -> Option<usize> {
    let descriptor = *frame.get(4)?;
    let single_segment = descriptor & 0x20 != 0;
    let window = usize::from(!single_segment);
    let dictionary_id = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = [usize::from(single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    let (mut at, mut bound) = (5 + window + dictionary_id + content_size, 0);
    loop {
        let header = frame.get(at..at + 3)?;
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let size = (header >> 3) as usize;
        let (stored, held) = match (header >> 1) & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, ZSTD_BLOCK_BYTES),
            _ => return None,
        };
        (at, bound) = (at + 3 + stored, bound + held);
        if at > frame.len() {
            return None;
        }
        if header & 1 == 1 {
            return Some(bound);
        }
    }
}

fn checked_len(len: usize, max_ratio: usize, stored: usize) -> Result<usize> {
    if len > MAX_BLOCK_BYTES.min(stored.saturating_mul(max_ratio)) {
        return Err(Error::corruption(format!("a compressed block of {stored} bytes claims {len} bytes")));
    }
    Ok(len)
}

fn exactly(got: usize, out: &[u8]) -> Result<()> {
    exactly_len(got, out.len())
}

fn exactly_len(got: usize, len: usize) -> Result<()> {
    if got != len {
        return Err(Error::corruption(format!("a compressed block holds {got} bytes, not {len}")));
    }
    Ok(())
}
