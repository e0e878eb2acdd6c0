//! Names of an instance: the form in which servers keep them, and what users may write for it.
//!
//! *Invariant:* [`instance_name`] gives one text for all spellings of a name, and servers refuse
//! any other: every face that asks it means the same file by the same word.

/// Prefix of names in an instance, as it is printed.
pub const SCHEME: &str = "unisono://";

/// Part of [`SCHEME`] by which a name is recognised. Slashes after it are those of a path.
const SCHEME_WORD: &str = "unisono:";

/// Largest length of a name, in bytes.
pub const NAME_BYTES_MAX: usize = 4096;

/// Largest length of a part of a name, in bytes.
const PART_BYTES_MAX: usize = 255;

/// Returns the reason why a text cannot be a name. The empty name of the root is valid.
pub fn name_flaw(name: &str) -> Option<&'static str> {
    if name.len() > NAME_BYTES_MAX {
        return Some("it has more than 4096 bytes");
    }
    if name.starts_with(SCHEME_WORD) {
        return Some("it begins with unisono:");
    }
    if name.contains('\0') {
        return Some("it contains a zero byte");
    }
    let parts = || name.split('/').filter(|_| !name.is_empty());
    parts().find_map(|part| match part {
        "" => Some("one of its parts is empty"),
        "." | ".." => Some("one of its parts is . or .."),
        long if long.len() > PART_BYTES_MAX => Some("one of its parts has more than 255 bytes"),
        _ => None,
    })
}

/// Returns the reason why a text cannot be a part of a name.
pub fn part_flaw(part: &str) -> Option<&'static str> {
    match part {
        "" => Some("it is empty"),
        _ if part.contains('/') => Some("it contains a slash"),
        _ => name_flaw(part),
    }
}

/// Returns the name in an instance that a user's word means; the root directory is "".
///
/// `unisono:` in front is optional, and slashes after it say nothing. As in a path of POSIX,
/// doubled slashes count once, `.` is the directory itself, and `..` the one above, which of the
/// root is the root. An instance has no links, so the text alone decides.
///
/// ```
/// for word in ["a/b", "/a//b/", "./a/b", "a/c/../b", "../a/b", "unisono:a/b", "unisono://./a/b"] {
///     assert_eq!(wire::instance_name(word), "a/b");
/// }
/// ```
pub fn instance_name(word: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in word.split('/') {
        // No name begins with the scheme, so a name that was found means itself again.
        let is_first = parts.is_empty();
        match if is_first { part.trim_start_matches(SCHEME_WORD) } else { part } {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    //! Proves: every text of few parts means one name, which means itself, and which servers do not
    //! refuse for its form.
    use super::*;

    #[test]
    fn spellings_of_a_name_are_one() {
        for (word, name) in [
            ("", ""),
            ("/", ""),
            ("..", ""),
            ("a/..", ""),
            ("unisono://", ""),
            ("unisono://./x", "x"),
            ("unisono:x", "x"),
            ("unisono:/x", "x"),
            ("unisono:../x", "x"),
            ("./unisono:x", "x"),
            ("unisono:unisono://x", "x"),
            ("a/unisono:x", "a/unisono:x"),
            ("UNISONO://x", "UNISONO:/x"),
            ("../../a//./b/", "a/b"),
            ("a/c/../b", "a/b"),
            ("a/../../b", "b"),
            (".../..a/b..", ".../..a/b.."),
            ("a\\b/ü", "a\\b/ü"),
        ] {
            assert_eq!(instance_name(word), name, "{word:?}");
        }
    }

    #[test]
    fn all_words_of_five_parts_mean_names_that_mean_themselves() {
        let parts = ["", ".", "..", "a", "unisono:", "unisono:a", "unisono:.."];
        for number in 0..parts.len().pow(5) {
            let part = |place| parts[number / parts.len().pow(place) % parts.len()];
            let word = [part(0), part(1), part(2), part(3), part(4)].join("/");
            let name = instance_name(&word);
            assert_eq!(instance_name(&name), name, "{word:?}");
            assert_eq!(name_flaw(&name), None, "{word:?}");
            // Servers keep no second spelling of it.
            assert!(word == name || name_flaw(&word).is_some(), "{word:?} is {name:?}");
        }
    }
}
