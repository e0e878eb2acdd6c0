//! Rule: every Rust file begins with a sentence about its purpose.

use super::tree::{Finding, Tree};

/// Checks the first paragraph of each file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let help = "begin it with `//! What it is for.`";
    let lacking = tree.rust().filter(|file| !begins_with_sentence(&file.text));
    lacking.map(|file| file.finding(1, "no opening sentence".to_owned(), help)).collect()
}

fn begins_with_sentence(text: &str) -> bool {
    let header = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = header.take_while(|line| !line.is_empty()).collect();
    paragraph.last().is_some_and(|line| line.ends_with(['.', ':', '!', '?']))
}

#[cfg(test)]
mod tests {
    //! Proves: a missing, empty or unfinished opening is found, a sentence is not.
    use super::*;

    #[test]
    fn only_a_sentence_will_do() {
        assert!(begins_with_sentence("//! Does this.\n\nuse x;"));
        assert!(begins_with_sentence("//! Does this\n//! and that.\n//!\n//! - and"));
        assert!(!begins_with_sentence("use x;"));
        assert!(!begins_with_sentence("//!\n//! Late."));
        assert!(!begins_with_sentence("//! unfinished\nuse x;"));
        assert!(!begins_with_sentence(""));
        assert_eq!(check(&Tree::of(&[("crates/x/src/a.rs", "fn a() {}")])).len(), 1);
        assert_eq!(check(&Tree::of(&[("docs/a.rs", "fn a() {}")])).len(), 0);
    }
}
