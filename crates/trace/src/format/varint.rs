//! Numbers of variable length: LEB128, seven bits a byte, the lowest first. Signed ones are
//! zigzag-coded before: 0, -1, 1, -2 become 0, 1, 2, 3.

/// Largest number of bytes of a number.
const BYTES_MAX: usize = 10;

/// Appends a number.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, zigzag(value));
}

/// Zigzag code of a signed number.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Signed number of a zigzag code.
pub(crate) fn signed(code: u64) -> i64 {
    (code >> 1) as i64 ^ -((code & 1) as i64)
}

/// Reason that no number could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// The bytes end before the number does.
    Ended,
    /// The number does not fit in 64 bits, or has bytes that it does not need.
    Malformed,
}

/// Takes a number from the front of `bytes`. Each number has one form: the shortest.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, Unread> {
    match bytes {
        [low @ 0..0x80, rest @ ..] => {
            let value = u64::from(*low);
            *bytes = rest;
            Ok(value)
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Result<u64, Unread> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == BYTES_MAX - 1 && *byte > 1 {
            return Err(Unread::Malformed);
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            let is_shortest = index == 0 || *byte != 0;
            *bytes = &bytes[index + 1..];
            return if is_shortest { Ok(value) } else { Err(Unread::Malformed) };
        }
    }
    if bytes.len() < BYTES_MAX { Err(Unread::Ended) } else { Err(Unread::Malformed) }
}

#[cfg(test)]
mod tests {
    //! Proves: numbers come back, each has one form, and no bytes are read beyond their end.
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, shift in 0_u32..64, number: i64) {
            let value = value >> shift;
            let mut out = Vec::new();
            put(&mut out, value);
            put_signed(&mut out, number);
            let mut rest = out.as_slice();
            prop_assert_eq!(take(&mut rest), Ok(value));
            prop_assert_eq!(take(&mut rest).map(signed), Ok(number));
            prop_assert!(rest.is_empty());
            for length in 0..out.len() {
                let mut cut = &out[..length];
                prop_assert!(take(&mut cut).and_then(|_| take(&mut cut)) == Err(Unread::Ended));
            }
        }

        #[test]
        fn each_number_has_one_form(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut rest = bytes.as_slice();
            if let Ok(value) = take(&mut rest) {
                let mut out = Vec::new();
                put(&mut out, value);
                prop_assert_eq!(&out[..], &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
