//! Sizes, counts and names in readable form.

/// Formats a size in the largest binary unit that it reaches, with one decimal if the unit does not
/// divide it.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// Formats a count of things, in the plural unless it is one.
pub(crate) fn plural(count: impl Into<u64>, thing: &str) -> String {
    let count = count.into();
    if count == 1 { format!("{count} {thing}") } else { format!("{count} {thing}s") }
}

/// Text whose control characters are question marks: a name must not command the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: sizes are shown in the unit that fits them, numbers of things in their plural.
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(show_size(8192), "8 KiB");
        assert_eq!(show_size(8), "8 B");
        assert_eq!(show_size(3 << 29), "1.5 GiB");
        assert_eq!(
            (plural(1_u32, "disk"), plural(2_u64, "disk")),
            ("1 disk".into(), "2 disks".into())
        );
    }
}
