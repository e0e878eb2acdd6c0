//! Rule: fast paths of the file system stand in one module, so that the rest of the crate reads
//! like the pseudo-code of the papers.

use super::bare;
use super::tree::{Finding, Tree};

/// Code of the file system.
const CODE: &str = "crates/filesystem/src/";

/// Module of the fast paths.
const DOOR: &str = "crates/filesystem/src/scale/";

/// Words of fast paths, each with the function or type of the module that replaces it.
const WORDS: [(&str, &str); 5] = [
    ("#[inline", "let the compiler choose, or move the function to the module"),
    ("spawn_built", "call `scale::start`"),
    ("Box::pin", "call `scale::rare`"),
    ("smallvec::", "use `scale::SmallVec`, or a `Vec`"),
    ("litemap::", "use `scale::LiteMap`, or a map of the standard library"),
];

/// Checks the code of the file system outside tests.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_open = |path: &str| path.starts_with(CODE) && !path.starts_with(DOOR);
    for file in tree.rust().filter(|file| is_open(&file.path)) {
        for (number, line) in bare::code(file) {
            for (word, help) in WORDS.iter().filter(|(word, _)| line.contains(word)) {
                findings.push(file.finding(number, format!("`{word}` outside {DOOR}"), help));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Proves: each word is found in the file system's code, and free elsewhere, in its module, in
    //! comments and in tests.
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn each_word_is_found_outside_the_module() {
        for (word, _) in WORDS {
            let text = format!("fn a() {{\n    {word}\n}}\n");
            assert_eq!(found("crates/filesystem/src/server/a.rs", &text), 1, "{word}");
            assert_eq!(found("crates/filesystem/src/scale/a.rs", &text), 0, "{word}");
            assert_eq!(found("crates/world/src/a.rs", &text), 0, "{word}");
            assert_eq!(found("crates/filesystem/tests/a.rs", &text), 0, "{word}");
            let aside = format!("// {word}\n#[cfg(test)]\nmod tests {{\n    {text}}}\n");
            assert_eq!(found("crates/filesystem/src/server/a.rs", &aside), 0, "{word}");
        }
    }
}
