//! Parsers of the values of options.

use client::WireProtection;

/// Parses a number that is not zero.
pub(crate) fn count(word: &str) -> Result<u32, String> {
    match word.parse::<u32>() {
        Ok(0) => Err("there must be at least one".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("write a whole number from 1 to 4294967295".to_owned()),
    }
}

/// Parses a size of memory for files.
pub(crate) fn memory(word: &str) -> Result<u64, String> {
    match interface::parse_size(word)? {
        bytes if bytes < 1 << 20 => Err("give at least 1MiB".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses a protection of connections by TCP.
pub(crate) fn wire(word: &str) -> Result<WireProtection, String> {
    let words = WireProtection::ALL.map(WireProtection::word);
    let found = WireProtection::from_word(word);
    found.ok_or_else(|| format!("write {}", either(&words)))
}

/// Joins the words of a choice as they stand in a help text: "a, b or c".
pub(crate) fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}
