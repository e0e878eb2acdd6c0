//! Doc comments begin with a noun or a verb, so that the subject comes first.

use super::bare::is_word;
use super::tree::{File, Finding, Tree};

/// Openings that keep the subject for later.
const OBLIQUE: [&str; 15] = [
    "What",
    "Whatever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Where",
    "Whether",
    "Which",
    "Whichever",
    "How",
    "Why",
    "When",
    "Those",
    "The same",
];

/// The share of such openings in the whole tree must be below, in percent.
const PERCENT_LIMIT: usize = 3;

/// Finds each oblique opening, if the tree has too many of them.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let help = "begin with a noun or a verb: `Number of …`, `Returns …`, `True when …`";
    let mut comments = 0;
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, opening) in openings(file) {
            comments += 1;
            if let Some(words) = OBLIQUE.iter().find(|words| begins_with(opening, words)) {
                let wrong = format!("a doc comment begins with `{words}`");
                findings.push(file.finding(number, wrong, help));
            }
        }
    }
    let passes = findings.len() * 100 < comments * PERCENT_LIMIT;
    if passes { Vec::new() } else { findings }
}

/// The first line of each doc comment, with its number.
fn openings(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut is_inside = false;
    file.lines().filter_map(move |(number, line)| {
        let text = doc_text(line);
        let opening = text.filter(|_| !is_inside);
        is_inside = text.is_some();
        opening.map(|opening| (number, opening))
    })
}

/// The text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then(|| text.trim_start())
}

fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(is_word))
}

#[cfg(test)]
mod tests {
    //! Proves: each opening is found, in first lines only, and the share is exact.
    use super::*;

    const NOTHING: [usize; 0] = [];

    fn found(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("crates/x/src/a.rs", text)])).iter().map(|found| found.line).collect()
    }

    #[test]
    fn each_opening_is_found() {
        for words in OBLIQUE {
            assert_eq!(found(&format!("//! {words} it is.\n")), [1], "{words}");
            assert_eq!(found(&format!("a;\n    /// {words} it is.\n")), [2], "{words}");
            assert_eq!(found(&format!("/// Returns\n/// {words} it.\n")), NOTHING, "{words}");
            assert_eq!(found(&format!("// {words} it.\n//// {words}\n")), NOTHING, "{words}");
        }
        assert_eq!(found("/// Whatsoever.\n\n/// Howard's.\n"), NOTHING);
    }

    #[test]
    fn the_share_is_exact() {
        let tree = |clear: usize| format!("/// How.\n\n{}", "/// Number.\n\n".repeat(clear));
        let clear_min = 100 / PERCENT_LIMIT;
        assert_eq!(found(&tree(clear_min)), NOTHING);
        assert_eq!(found(&tree(clear_min - 1)), [1]);
        assert_eq!(found(""), NOTHING);
    }
}
