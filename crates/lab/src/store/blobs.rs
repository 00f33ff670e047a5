//! A column of numbers as bytes: differences, zigzag, variable length, Zstandard.
//!
//! ```text
//! zstd( count, n0, n1 - n0, n2 - n1, ... )    each as 7 bits a byte, low first, high bit: more follow
//! ```

/// A column longer than this is not one of ours.
const MAX_NUMBERS: u64 = 1 << 26;

/// Packs a column.
pub fn pack(numbers: &[i64]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(numbers.len() * 2 + 4);
    put(numbers.len() as u64, &mut raw);
    let mut last = 0i64;
    for &number in numbers {
        let difference = number.wrapping_sub(last);
        put(((difference << 1) ^ (difference >> 63)) as u64, &mut raw);
        last = number;
    }
    zstd::bulk::compress(&raw, 3).expect("compressing memory does not fail")
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Unpacks a column.
///
/// # Errors
/// If the bytes are none.
pub fn unpack(bytes: &[u8]) -> Result<Vec<i64>, String> {
    let limit = 10 * (MAX_NUMBERS as usize + 1);
    let raw = zstd::stream::Decoder::new(bytes)
        .and_then(|decoder| {
            let mut raw = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(decoder, limit as u64), &mut raw)?;
            Ok(raw)
        })
        .map_err(|error| format!("a column does not decompress: {error}"))?;
    let mut rest = raw.as_slice();
    let count = get(&mut rest)?;
    // A number takes a byte at least.
    if count > rest.len() as u64 {
        return Err(format!("a column of {count} numbers has only {} bytes", rest.len()));
    }
    let mut last = 0i64;
    let number = |_| {
        let zigzag = get(&mut rest)?;
        last = last.wrapping_add((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
        Ok(last)
    };
    (0..count).map(number).collect()
}

fn get(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first().ok_or("a column ends early")?;
        *rest = tail;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number of a column has more than ten bytes".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_as_they_were() {
        for numbers in
            [vec![], vec![0], vec![i64::MIN, i64::MAX, -1, 1], (0..1000).map(|i| i * 97 % 31).collect()]
        {
            assert_eq!(unpack(&pack(&numbers)).unwrap(), numbers);
        }
    }

    #[test]
    fn counters_of_an_hour_take_little() {
        let column: Vec<i64> = (0..3600).map(|second| 1_000_000_000 + second * 100 + second % 7).collect();
        let packed = pack(&column).len();
        assert!(packed < 3600, "{packed} bytes");
    }

    #[test]
    fn damage_is_an_error() {
        let packed = pack(&[1, 2, 3]);
        assert!(unpack(&packed[..packed.len() - 3]).is_err());
        assert!(unpack(b"").is_err());
        let huge = zstd::bulk::compress(&[0xff, 0xff, 0xff, 0xff, 0x7f], 1).unwrap();
        assert!(unpack(&huge).unwrap_err().contains("only 0 bytes"));
        let endless = zstd::bulk::compress(&[0xff; 12], 1).unwrap();
        assert!(unpack(&endless).unwrap_err().contains("ten bytes"));
    }
}
