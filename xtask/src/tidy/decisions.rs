//! Rule: every page in `docs/decisions` has a unique number and a line in the index.

use super::tree::{File, Finding, Tree};
use std::collections::BTreeMap;

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

/// Checks names and index.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    let index = tree.get(INDEX).map_or("", |file| file.text.as_str());
    let in_folder = |file: &&File| file.path.starts_with(FOLDER) && file.path != INDEX;
    for file in tree.files.iter().filter(in_folder) {
        let name = &file.path[FOLDER.len()..];
        let Some(number) = page_number(name) else {
            let help = "name it `0042-what-was-decided.md`";
            findings.push(file.finding(
                1,
                "the file name is not that of a decision".to_owned(),
                help,
            ));
            continue;
        };
        if let Some(other) = numbers.insert(number, name) {
            let wrong = format!("the number {number} is also that of {other}");
            findings.push(file.finding(1, wrong, "take the next free number"));
        }
        if !index.contains(&format!("({name})")) {
            let wrong = "the decision is not in the index".to_owned();
            findings.push(file.finding(1, wrong, "add a line to docs/decisions/README.md"));
        }
    }
    findings
}

/// Returns the four digits that begin the name of a page.
fn page_number(name: &str) -> Option<&str> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let is_number = number.len() == 4 && number.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !title.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    //! Proves: a duplicate number, a page outside the index and a malformed name are found.
    use super::*;

    fn wrongs(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn each_mistake_is_found() {
        let index = (INDEX, "[a](0001-a.md) [b](0001-b.md) [c](0002-c.md)");
        assert_eq!(wrongs(&[index, ("docs/decisions/0001-a.md", "")]), [] as [&str; 0]);
        let twice = [index, ("docs/decisions/0001-a.md", ""), ("docs/decisions/0001-b.md", "")];
        assert_eq!(wrongs(&twice), ["the number 0001 is also that of 0001-a.md"]);
        assert_eq!(
            wrongs(&[index, ("docs/decisions/9003-d.md", "")]),
            ["the decision is not in \
                                                                         the index"]
        );
        assert_eq!(
            wrongs(&[index, ("docs/decisions/3.md", "")]),
            ["the file name is not that of a \
                                                                    decision"]
        );
        assert_eq!(
            wrongs(&[("docs/decisions/0001-a.md", "")]),
            ["the decision is not in the index"]
        );
    }
}
