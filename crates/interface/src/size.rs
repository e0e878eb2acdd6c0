//! Sizes in bytes, as words.

use policy::BYTES_MAX;

/// Parses a size in bytes: `4096`, `8KiB`, `1GiB`, `10MB`; at most the size of the largest file.
/// The parser used here turns every number above 2^64-1 into 2^64-1, so a larger size would be
/// misread.
///
/// # Errors
/// Fails when the word is not a size, or too large; the text says what to write.
pub fn parse_size(word: &str) -> Result<u64, String> {
    match word.parse::<bytesize::ByteSize>() {
        Ok(size) if size.0 > BYTES_MAX => Err("the largest size is 4EiB, 2^62".to_owned()),
        Ok(size) => Ok(size.0),
        Err(_) => Err("write a size like 4096, 8KiB, 1MiB or 2GiB".to_owned()),
    }
}

/// Returns the shortest word that [`parse_size`] reads as exactly these bytes: `10MiB`, `1000`.
pub fn size_word(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: sizes are read with binary and decimal units, nonsense is refused, and a size that
    //! was written is read as it was.
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("8"), Ok(8));
        assert_eq!(parse_size("8KiB"), Ok(8192));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("10MB"), Ok(10_000_000));
        assert!(parse_size("many").is_err());
        assert!(parse_size("-1").is_err());
        assert_eq!(parse_size("4EiB"), Ok(1 << 62));
        for large in ["4611686018427387905", "16EiB", "18446744073709551615", "1000EiB"] {
            assert!(parse_size(large).is_err_and(|cause| cause.contains("4EiB")), "{large}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for bytes in [0, 1, 1000, 1023, 1024, 1536, 8192, 10 << 20, 3 << 30, (1 << 40) + 1, 1 << 62]
        {
            assert_eq!(parse_size(&size_word(bytes)), Ok(bytes));
        }
        assert_eq!((size_word(8192).as_str(), size_word(1000).as_str()), ("8KiB", "1000"));
    }
}
