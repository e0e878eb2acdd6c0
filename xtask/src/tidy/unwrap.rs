//! Rule: no `unwrap` outside tests; a panic says what went wrong, an error says what to do.

use super::tree::{Finding, Tree};

const CALL: &str = concat!(".unw", "rap()");

/// Checks code outside tests.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let help = "return an error, or `expect` a sentence when only a wrong program gets there";
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, _) in file.code_lines().filter(|(_, line)| line.contains(CALL)) {
            findings.push(file.finding(number, format!("`{CALL}` outside tests"), help));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Proves: code is found; tests and comments are not.
    use super::*;

    #[test]
    fn only_code_counts() {
        let text = format!("a{CALL};\n/// a{CALL};\n#[cfg(test)]\nmod tests {{\n    b{CALL}\n}}\n");
        let found = check(&Tree::of(&[("crates/x/src/a.rs", &text)]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1]);
        assert_eq!(check(&Tree::of(&[("crates/x/tests/a.rs", &text)])), []);
    }
}
