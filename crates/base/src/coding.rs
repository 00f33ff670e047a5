//! Number layouts shared by all files: little-endian fixed widths, varints, zigzag, length-prefixed slices.
//!
//! Decoding never trusts its input: [`Decoder`] returns `None` at the first byte that does not fit and
//! allocates nothing. Bytes: `docs/format/coding.md`.

/// Appends `value` as a varint of 1 to 5 bytes.
#[inline]
pub fn put_varint32(out: &mut Vec<u8>, value: u32) {
    put_varint64(out, u64::from(value));
}

/// Appends `value` as a varint of 1 to 10 bytes.
#[inline]
pub fn put_varint64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` zigzag-coded, so that small negative numbers stay short.
#[inline]
pub fn put_zigzag64(out: &mut Vec<u8>, value: i64) {
    put_varint64(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends the length of `slice` as a varint, then its bytes.
///
/// # Panics
/// If the slice is 4 GiB or longer; the write path refuses such keys and values before.
#[inline]
pub fn put_length_prefixed(out: &mut Vec<u8>, slice: &[u8]) {
    put_varint32(out, u32::try_from(slice.len()).expect("slices are shorter than 4 GiB"));
    out.extend_from_slice(slice);
}

/// Number of bytes [`put_varint64`] writes for `value`.
#[inline]
pub fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads a varint of at most 5 bytes from the front of `bytes`: (value, bytes used).
#[inline]
pub fn get_varint32(bytes: &[u8]) -> Option<(u32, usize)> {
    match bytes.first() {
        Some(&byte) if byte < 0x80 => Some((u32::from(byte), 1)),
        _ => get_varint64(&bytes[..bytes.len().min(5)]).and_then(|(v, n)| Some((u32::try_from(v).ok()?, n))),
    }
}

/// Reads a varint of at most 10 bytes from the front of `bytes`: (value, bytes used).
#[inline]
pub fn get_varint64(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().take(10).enumerate() {
        if i == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte < 0x80 {
            return Some((value, i + 1));
        }
    }
    None
}

/// The little-endian u32 at `offset`. Panics if out of range: for bytes whose length was checked.
#[inline]
pub fn fixed32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("4 bytes"))
}

/// The little-endian u64 at `offset`. Panics if out of range: for bytes whose length was checked.
#[inline]
pub fn fixed64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("8 bytes"))
}

/// A cursor over bytes from disk. Every read returns `None` when the bytes run out or do not decode;
/// the caller turns that into a corruption error naming file and offset.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A cursor at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    /// The bytes not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// True once everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|b| b[0])
    }

    /// A fixed-width u16.
    pub fn fixed16(&mut self) -> Option<u16> {
        self.bytes(2).map(|b| u16::from_le_bytes([b[0], b[1]]))
    }

    /// A fixed-width u32.
    pub fn fixed32(&mut self) -> Option<u32> {
        self.bytes(4).map(|b| fixed32_at(b, 0))
    }

    /// A fixed-width u64.
    pub fn fixed64(&mut self) -> Option<u64> {
        self.bytes(8).map(|b| fixed64_at(b, 0))
    }

    /// A varint of at most 32 bits.
    #[inline]
    pub fn varint32(&mut self) -> Option<u32> {
        let (value, used) = get_varint32(self.rest)?;
        self.rest = &self.rest[used..];
        Some(value)
    }

    /// A varint of at most 64 bits.
    #[inline]
    pub fn varint64(&mut self) -> Option<u64> {
        let (value, used) = get_varint64(self.rest)?;
        self.rest = &self.rest[used..];
        Some(value)
    }

    /// A zigzag-coded signed number.
    pub fn zigzag64(&mut self) -> Option<i64> {
        self.varint64().map(|v| (v >> 1) as i64 ^ -((v & 1) as i64))
    }

    /// A length-prefixed slice.
    #[inline]
    pub fn length_prefixed(&mut self) -> Option<&'a [u8]> {
        let len = self.varint32()? as usize;
        self.bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_length() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint64(&mut out, value);
                assert_eq!(out.len(), varint_len(value));
                assert_eq!(get_varint64(&out), Some((value, out.len())));
            }
        }
    }

    #[test]
    fn zigzag_round_trips_signs() {
        for value in [0, -1, 1, i64::MIN, i64::MAX, -300] {
            let mut out = Vec::new();
            put_zigzag64(&mut out, value);
            assert_eq!(Decoder::new(&out).zigzag64(), Some(value));
        }
    }

    #[test]
    fn truncated_and_overlong_input_is_none() {
        assert_eq!(get_varint64(&[0x80; 9]), None);
        assert_eq!(get_varint64(&[0xFF; 11]), None);
        assert_eq!(get_varint32(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]), None);
        assert_eq!(get_varint32(&[]), None);
        assert_eq!(Decoder::new(&[5, b'a']).length_prefixed(), None);
    }
}
