//! Rule: no Rust file exceeds the maximum number of lines.

use super::tree::{Finding, Tree};

const LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 800;

/// Checks the number of lines of each file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let max = if file.is_test() { TEST_LINES_MAX } else { LINES_MAX };
        let lines = file.text.lines().count();
        if lines > max {
            let wrong = format!("{lines} lines, over the limit of {max}");
            findings.push(file.finding(max + 1, wrong, "split the file: one main idea per file"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Proves: the limits hold at their exact value, and tests have their own.
    use super::*;

    #[test]
    fn limits_are_exact() {
        let lines = |path: &str, count| check(&Tree::of(&[(path, &"\n".repeat(count))])).len();
        assert_eq!(lines("crates/x/src/a.rs", LINES_MAX), 0);
        assert_eq!(lines("crates/x/src/a.rs", LINES_MAX + 1), 1);
        assert_eq!(lines("crates/x/tests/a.rs", TEST_LINES_MAX), 0);
        assert_eq!(lines("crates/x/tests/a.rs", TEST_LINES_MAX + 1), 1);
    }
}
