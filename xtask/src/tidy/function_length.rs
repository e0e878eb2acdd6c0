//! No function is longer than a screen, in tests too.

use super::bare::{bare, is_word};
use super::tree::{Finding, Tree};

const LINES_MAX: usize = 70;

/// Checks each function from its line with `fn` to its closing brace.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let text = bare(&file.text);
        for (at, _) in text.match_indices("fn ").filter(|(at, _)| begins_function(&text, *at)) {
            let lines = 1 + function(&text[at..]).matches('\n').count();
            if lines > LINES_MAX {
                let wrong = format!("a function of {lines} lines, over the limit of {LINES_MAX}");
                let line = 1 + text[..at].matches('\n').count();
                findings.push(file.finding(line, wrong, "give its parts functions of their own"));
            }
        }
    }
    findings
}

/// True when `fn` at `at` is a word of its own with a name behind it, not a type.
fn begins_function(text: &str, at: usize) -> bool {
    let after = text[at + "fn ".len()..].chars().next();
    !text[..at].chars().next_back().is_some_and(is_word) && after.is_some_and(is_word)
}

/// The function that `text` begins with, to its last brace, or to the `;` of one without a body.
fn function(text: &str) -> &str {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        let is_last = letter == '}' || letter == ';';
        if is_last && braces == 0 && brackets == 0 {
            return &text[..=at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    //! Proves: the limit is exact, for functions in tests and in others too, and braces in strings
    //! do not count.
    use super::*;

    const NOTHING: [usize; 0] = [];

    fn found(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("crates/x/src/a.rs", text)])).iter().map(|found| found.line).collect()
    }

    #[test]
    fn the_limit_is_exact() {
        let function =
            |lines: usize| format!("\nfn a() {{\n{}}}\n", "b(\"}\");\n".repeat(lines - 2));
        assert_eq!(found(&function(LINES_MAX)), NOTHING);
        assert_eq!(found(&function(LINES_MAX + 1)), [2]);
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(LINES_MAX + 1));
        assert_eq!(found(&test), [4]);
    }

    #[test]
    fn inner_functions_count_for_both() {
        let inner = format!("fn b() {{\n{}}}\n", "c();\n".repeat(LINES_MAX));
        assert_eq!(found(&format!("fn a() {{\n{inner}}}\n")), [1, 2]);
    }

    #[test]
    fn functions_without_a_body_end_at_once() {
        let filler = "const B: u8 = 1;\n".repeat(LINES_MAX);
        assert_eq!(
            found(&format!("trait A {{\nfn a(b: [u8; 2])\nwhere C: D;\n{filler}}}\n")),
            NOTHING
        );
        assert_eq!(found(&format!("type A = fn (u8);\nmod b {{\n{filler}}}\n")), NOTHING);
    }
}
