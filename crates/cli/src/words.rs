//! Words of the command line that stand for numbers and cases.

use launch::LaunchError;

/// A size in bytes: `4096`, `8KiB`, `1GiB`, `10MB`; at most that of the largest file. The parser
/// takes what is larger than 2^64-1 for that, so it would be taken for something else.
pub(crate) fn size(word: &str) -> Result<u64, String> {
    match word.parse::<bytesize::ByteSize>() {
        Ok(size) if size.0 > launch::BYTES_MAX => Err("the largest size is 4EiB, 2^62".to_owned()),
        Ok(size) => Ok(size.0),
        Err(_) => Err("write a size like 4096, 8KiB, 1MiB or 2GiB".to_owned()),
    }
}

/// A number that is not zero.
pub(crate) fn count(word: &str) -> Result<u32, String> {
    match word.parse::<u32>() {
        Ok(0) => Err("there must be at least one".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("write a whole number from 1 to 4294967295".to_owned()),
    }
}

/// The patterns that a command is for: those named, or one from a distribution.
pub(crate) fn patterns(
    named: &[String],
    distribution: Option<&str>,
    write: bool,
) -> Result<Vec<String>, LaunchError> {
    match distribution {
        Some(words) => {
            let direction = if write { "w" } else { "r" };
            Ok(vec![format!("{direction}:{words}")])
        }
        None => Ok(named.to_vec()),
    }
}

/// The strategies named; `all` is each of them.
pub(crate) fn strategies(named: &[String]) -> Vec<String> {
    let expand = |name: &String| match name.as_str() {
        "all" => launch::strategy_names(),
        _ => vec![name.clone()],
    };
    named.iter().flat_map(expand).collect()
}

/// A size for people, in the largest binary unit that it reaches; with one decimal where the unit
/// does not divide it.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A number of things, in the plural where there is not one.
pub(crate) fn plural(count: u32, thing: &str) -> String {
    if count == 1 { format!("{count} {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    //! Proves: sizes are read with binary and decimal units, and nonsense is refused.
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("8"), Ok(8));
        assert_eq!(size("8KiB"), Ok(8192));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("10MB"), Ok(10_000_000));
        assert!(size("many").is_err());
        assert!(size("-1").is_err());
        assert_eq!(size("4EiB"), Ok(1 << 62));
        for large in ["4611686018427387905", "16EiB", "18446744073709551615", "1000EiB"] {
            assert!(size(large).is_err_and(|cause| cause.contains("4EiB")), "{large}");
        }
        assert_eq!(show_size(8192), "8 KiB");
        assert_eq!(show_size(8), "8 B");
        assert_eq!(show_size(3 << 29), "1.5 GiB");
        assert_eq!((plural(1, "disk"), plural(2, "disk")), ("1 disk".into(), "2 disks".into()));
    }
}
