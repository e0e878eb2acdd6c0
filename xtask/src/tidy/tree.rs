//! Files of the repository, as rules see them, and findings of rules.

use std::fmt;
use std::path::Path;

/// All files that git does not ignore.
pub(super) struct Tree {
    /// Files in the order of their paths.
    pub(super) files: Vec<File>,
}

/// One file.
pub(super) struct File {
    /// Path from the root of the repository, with `/` between folders.
    pub(super) path: String,
    /// Size in bytes.
    pub(super) bytes: u64,
    /// Contents; empty when the file is not text.
    pub(super) text: String,
}

/// Violation of a rule.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Finding {
    /// Path of the file.
    pub(super) path: String,
    /// Line number, from 1.
    pub(super) line: usize,
    /// Defect.
    pub(super) wrong: String,
    /// Remedy.
    pub(super) help: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.wrong, self.help)
    }
}

impl Tree {
    /// Reads the repository at `root`.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        let mut walk = ignore::WalkBuilder::new(root);
        let is_git = |entry: &ignore::DirEntry| entry.file_name() == ".git";
        walk.hidden(false).require_git(false).filter_entry(move |entry| !is_git(entry));
        for entry in walk.build() {
            let entry = entry.map_err(|cause| cause.to_string())?;
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                files.push(File::read(root, entry.path())?);
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// Returns the Rust files of crates, developer commands and examples.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Returns the file at `path`.
    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            bytes: text.len() as u64,
            text: (*text).to_owned(),
        });
        Self { files: files.collect() }
    }
}

impl File {
    fn read(root: &Path, path: &Path) -> Result<Self, String> {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let contents = std::fs::read(path).map_err(|cause| format!("{name}: {cause}"))?;
        let bytes = contents.len() as u64;
        Ok(Self { path: name, bytes, text: String::from_utf8(contents).unwrap_or_default() })
    }

    fn is_rust(&self) -> bool {
        let ours = ["crates/", "xtask/", "examples/"];
        ours.iter().any(|folder| self.path.starts_with(folder)) && self.path.ends_with(".rs")
    }

    /// True when the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        ["/tests/", "/tests.rs", "/benches/"].iter().any(|part| self.path.contains(part))
    }

    /// Returns the crate that the file belongs to: the name of its folder.
    pub(super) fn crate_name(&self) -> Option<&str> {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next(),
            Some("xtask") => Some("xtask"),
            _ => None,
        }
    }

    /// Returns the lines with their numbers from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Returns the lines outside tests that are not comments, with their numbers.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = test_lines(&self.text);
        let whole = self.is_test();
        self.lines().filter(move |(number, line)| {
            !whole && !tests[number - 1] && !line.trim_start().starts_with("//")
        })
    }

    /// Returns a finding in this file.
    pub(super) fn finding(&self, line: usize, wrong: String, help: &str) -> Finding {
        Finding { path: self.path.clone(), line, wrong, help: help.to_owned() }
    }
}

/// Returns true for each line that belongs to an item under `#[cfg(test)]`.
///
/// Relies on rustfmt: an item ends with a line of its own indentation that closes it, or at once.
fn test_lines(text: &str) -> Vec<bool> {
    let mut inside: Option<&str> = None;
    let mut marks = Vec::new();
    for line in text.lines() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        if inside.is_none() && code.starts_with("#[cfg(test)]") {
            inside = Some(indent);
            marks.push(true);
            continue;
        }
        marks.push(inside.is_some());
        let closes = code.starts_with('}') || (code.ends_with(';') && !code.starts_with('#'));
        if inside == Some(indent) && closes {
            inside = None;
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    //! Proves: test code is distinguished from other code, comments too, and findings have the
    //! right line.
    use super::*;

    fn code_of(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::of(&[(path, text)]);
        tree.files[0].code_lines().map(|(number, _)| number).collect()
    }

    #[test]
    fn items_under_test_are_no_code() {
        let text = [
            "fn a() {}",
            "#[cfg(test)]",
            "use b;",
            "// A comment.",
            "fn c() {",
            "    #[cfg(test)]",
            "    {",
            "        d();",
            "    }",
            "    e();",
            "}",
            "#[cfg(test)]",
            "#[path = \"x\"]",
            "mod tests {",
            "    fn f() {",
            "    }",
            "}",
            "fn g() {}",
        ];
        let text = text.join("\n");
        assert_eq!(code_of("crates/x/src/lib.rs", &text), [1, 5, 10, 11, 18]);
        assert_eq!(code_of("crates/x/tests/all.rs", &text), [] as [usize; 0]);
    }

    #[test]
    fn a_finding_names_its_place() {
        let tree = Tree::of(&[("docs/a.md", "")]);
        let finding = tree.files[0].finding(7, "it is wrong".to_owned(), "mend it");
        assert_eq!(finding.to_string(), "docs/a.md:7: it is wrong: mend it");
    }

    #[test]
    fn this_repository_is_found() {
        let tree = Tree::read(&crate::root()).unwrap();
        assert!(tree.get("xtask/src/main.rs").is_some());
        assert!(tree.get(".cargo/config.toml").is_some(), "hidden files are files too");
        assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
