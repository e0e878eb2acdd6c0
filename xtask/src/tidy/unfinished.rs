//! Rule: the tree contains no unfinished work and no skipped test.

use super::tree::{Finding, Tree};

/// Marks, written in two parts so that this file does not contain them.
const MARKS: [&str; 6] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
    concat!("XX", "X"),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
];

/// Checks for each mark, in comments and tests too.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, line) in file.lines() {
            for mark in MARKS.iter().filter(|mark| line.contains(*mark)) {
                let help = "finish the work, or open an issue and remove the mark";
                findings.push(file.finding(number, format!("`{mark}` in the tree"), help));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Proves: each mark is found wherever it stands.
    use super::*;

    #[test]
    fn each_mark_is_found() {
        for mark in MARKS {
            let text = format!("fn a() {{\n    // {mark}\n}}");
            assert_eq!(check(&Tree::of(&[("crates/x/src/a.rs", &text)])).len(), 1, "{mark}");
        }
        assert_eq!(check(&Tree::of(&[("crates/x/src/a.rs", "fn a() {}")])), []);
    }
}
