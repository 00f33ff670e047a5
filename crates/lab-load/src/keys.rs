//! Keys: the number in big-endian, then ASCII zeros, as db_bench makes them.

/// Writes the key of `number` into `key`, whose length is the key size.
///
/// The first 8 bytes are the number, most significant first, so that byte order is numeric order; in shorter
/// keys its low bytes are kept. All bytes after that are `'0'`.
/// Source: RocksDB `tools/db_bench_tool.cc`, `GenerateKeyFromInt`.
#[inline]
pub fn write_key(number: u64, key: &mut [u8]) {
    let bytes = number.to_be_bytes();
    let len = key.len().min(8);
    key[..len].copy_from_slice(&bytes[8 - len..]);
    key[len..].fill(b'0');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_db_bench() {
        let mut key = [0; 20];
        write_key(0x0102, &mut key);
        assert_eq!(&key, b"\0\0\0\0\0\0\x01\x02000000000000");
        let mut short = [0; 4];
        write_key(0x0102_0304_0506, &mut short);
        assert_eq!(&short, b"\x03\x04\x05\x06");
    }
}
