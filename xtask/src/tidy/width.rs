//! Rule: no line of Rust is wider than a column of a review; rustfmt leaves long strings and
//! comments.

use super::tree::{Finding, Tree};

const COLUMNS_MAX: usize = 100;

/// Checks the width of each line.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, line) in file.lines() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                let wrong = format!("{columns} columns, over the limit of {COLUMNS_MAX}");
                findings.push(file.finding(number, wrong, "break the line"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Proves: the limit holds at its exact value and counts characters, not bytes.
    use super::*;

    #[test]
    fn the_limit_is_exact() {
        let wide = |line: String| check(&Tree::of(&[("xtask/src/a.rs", &line)]));
        assert_eq!(wide("é".repeat(COLUMNS_MAX)), []);
        let found = wide(format!("\n{}", "x".repeat(COLUMNS_MAX + 1)));
        assert_eq!((found.len(), found[0].line), (1, 2));
    }
}
