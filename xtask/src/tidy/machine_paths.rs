//! Rule: no file names a folder of one person's machine.

use super::tree::{Finding, Tree};

/// Folders, written in two parts so that this file does not contain them.
const FOLDERS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Checks every text file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !file.path.ends_with(".lock")) {
        for (number, line) in file.lines() {
            for folder in FOLDERS.iter().filter(|folder| names(line, folder)) {
                let help = "use a path from the root of the repository, or an argument";
                findings.push(file.finding(number, format!("the machine path `{folder}`"), help));
            }
        }
    }
    findings
}

/// True when `folder` stands in `line` at the start of a path, not in the middle of a longer path.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !(before.is_alphanumeric() || "_-.".contains(before)))
    })
}

#[cfg(test)]
mod tests {
    //! Proves: absolute paths are found in any text file, the inside of other paths is not.
    use super::*;

    #[test]
    fn only_absolute_paths_are_found() {
        for folder in FOLDERS {
            let text = format!("a = 1\npath = \"{folder}x\"\n");
            let found = check(&Tree::of(&[("docs/a.md", &text)]));
            assert_eq!((found.len(), found[0].line), (1, 2), "{folder}");
            assert_eq!(check(&Tree::of(&[("a.toml", &format!("docs{folder}x"))])), []);
        }
    }
}
