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

/// Types of file systems that a pattern of `--in-place` may name: those of `names.c`.
const FILE_SYSTEMS: [&str; 13] = [
    "beegfs", "btrfs", "ceph", "ext4", "fuse", "gpfs", "lustre", "nfs", "orangefs", "overlay",
    "panfs", "tmpfs", "xfs",
];

/// Parses patterns of names of ordinary files.
pub(crate) fn in_place_patterns(word: &str) -> Result<String, String> {
    let types = word.split(',').filter_map(|pattern| pattern.strip_prefix("type:"));
    match types.into_iter().find(|name| !FILE_SYSTEMS.contains(name)) {
        None => Ok(word.to_owned()),
        Some(name) => Err(format!("no type {name:?} is known: write {}", either(&FILE_SYSTEMS))),
    }
}

/// Joins the words of a choice as they stand in a help text: "a, b or c".
pub(crate) fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the types of file systems are those that the interposer knows.

    use super::*;

    #[test]
    fn types_of_file_systems_are_those_of_the_interposer() {
        let source = include_str!("../../../../mpi/src/process/names.c");
        let (_, table) = source.split_once("file_systems[] = {").expect("the table is there");
        let (table, _) = table.split_once("};").expect("the table ends");
        let names: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
        assert_eq!(names, FILE_SYSTEMS);
        assert!(in_place_patterns("*.h5,type:lustre,type:nfs").is_ok());
        let refused = in_place_patterns("type:lustr").expect_err("there is no such type");
        assert!(refused.contains("\"lustr\"") && refused.contains("lustre"), "{refused}");
    }
}
