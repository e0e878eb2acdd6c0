//! Rule: nothing sends a reader to a superseded decision, but its successors and the index.
//!
//! A superseded page keeps its text under a status line, and says what was true once. Links from
//! one superseded page to another are part of that text.

use super::links::{resolve, targets};
use super::tree::{File, Finding, Tree};
use std::collections::BTreeMap;

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

/// Largest number of lines of a superseded page that has lost its text.
const STUB_LINES_MAX: usize = 8;

/// Kinds of files whose comments are read.
const CODE: [&str; 7] = [".rs", ".c", ".h", ".def", ".py", ".pyi", ".toml"];

/// Superseded pages by their numbers, each with its successors.
type Superseded<'a> = BTreeMap<&'a str, Vec<String>>;

/// Checks pages and comments.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let superseded: Superseded = tree.files.iter().filter_map(successors).collect();
    let stubs = tree.files.iter().filter(|file| successors(file).is_some());
    let stubs = stubs.filter(|file| file.text.lines().count() <= STUB_LINES_MAX);
    let mut findings: Vec<Finding> = stubs
        .map(|page| {
            let wrong = "the superseded decision has no text".to_owned();
            page.finding(1, wrong, "keep its text below the status line")
        })
        .collect();
    for file in tree.files.iter().filter(|file| file.path != INDEX) {
        let is_superseded = number(&file.path).is_some_and(|own| superseded.contains_key(own));
        if is_superseded {
            continue;
        }
        for (line, text) in file.lines() {
            for old in references(file, text) {
                let Some(successors) = superseded.get(old.as_str()) else { continue };
                if successors.contains(&file.path) {
                    continue;
                }
                let wrong = format!("decision {old} is superseded");
                findings.push(file.finding(line, wrong, &remedy(successors)));
            }
        }
    }
    findings
}

fn remedy(successors: &[String]) -> String {
    let numbers: Vec<&str> = successors.iter().filter_map(|path| number(path)).collect();
    format!("refer to {}", numbers.join(" or "))
}

/// Returns the number of a superseded page and the paths of its successors.
fn successors(page: &File) -> Option<(&str, Vec<String>)> {
    let own = number(&page.path)?;
    let (_, rest) = page.text.split_once("\n\n")?;
    let status = rest.strip_prefix("Superseded by")?;
    let (status, _) = status.split_once("\n\n").unwrap_or((status, ""));
    let paths = status.lines().flat_map(targets);
    Some((own, paths.filter_map(|target| resolve(&page.path, target)).collect()))
}

/// Returns the number of the decision whose page is at `path`.
fn number(path: &str) -> Option<&str> {
    let digits = path.strip_prefix(FOLDER)?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(digits)
}

/// Returns the numbers of the decisions that a line of a page or of code refers to.
fn references(file: &File, line: &str) -> Vec<String> {
    if file.path.ends_with(".md") {
        let paths = targets(line).into_iter().filter_map(|target| {
            resolve(&file.path, target.split_once('#').map_or(target, |(path, _)| path))
        });
        return paths.filter_map(|path| Some(number(&path)?.to_owned())).collect();
    }
    if !CODE.iter().any(|kind| file.path.ends_with(kind)) {
        return Vec::new();
    }
    let after = ["decisions/", "decision "].into_iter().flat_map(|word| line.split(word).skip(1));
    let digits = after.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""));
    digits.filter(|digits| digits.len() == 4).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: a superseded decision is found in pages and in code, and needs its text; its
    //! successor, the index and other superseded pages may link to it.
    use super::*;

    const OLD: (&str, &str) = (
        "docs/decisions/9001-a.md",
        "# 9001: A\n\nSuperseded by [9003](9003-c.md) and\n[9004](9004-d.md).\n\n1\n2\n3\n4\n",
    );

    fn wrongs(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn successors_index_and_superseded_pages_may_link() {
        let older = OLD.1.replace("9001", "9000") + "[9001](9001-a.md)\n";
        let good = [
            OLD,
            ("docs/decisions/9000-z.md", &older),
            ("docs/decisions/9003-c.md", "# 9003\n\nSupersedes [9001](9001-a.md).\n"),
            ("docs/decisions/9004-d.md", "# 9004\n\nSupersedes [9001](9001-a.md).\n"),
            (INDEX, "| [9001](9001-a.md) |\n"),
            ("docs/a.md", "[9003](decisions/9003-c.md#x) `[9001](decisions/9001-a.md)`\n"),
            ("crates/x/src/a.rs", "//! ([9003](../docs/decisions/9003-c.md), decision 2)\n"),
        ];
        assert_eq!(wrongs(&good), [] as [&str; 0]);
    }

    #[test]
    fn others_may_not() {
        let help = "decision 9001 is superseded: refer to 9003 or 9004";
        for (path, text) in [
            ("docs/a.md", "\n[costs](decisions/9001-a.md#why)\n"),
            ("docs/decisions/9005-e.md", "\nAs [9001](9001-a.md) says.\n"),
            ("crates/x/src/a.rs", "\n//! ([decision 1](../../../docs/decisions/9001-a.md)).\n"),
            ("crates/x/src/b.rs", "\n// As in decision 9001.\n"),
            ("mpi/src/a.c", "\n/* docs/decisions/9001 */\n"),
        ] {
            assert_eq!(wrongs(&[OLD, (path, text)]), [format!("{path}:2: {help}")]);
        }
    }

    #[test]
    fn a_stub_is_found() {
        let stub = ("docs/decisions/9001-a.md", "# 9001: A\n\nSuperseded by [9003](9003-c.md).\n");
        let found = wrongs(&[stub]);
        assert_eq!(
            found,
            [format!(
                "{}:1: the superseded decision has no text: keep its text below the status \
                      line",
                stub.0
            )]
        );
    }
}
