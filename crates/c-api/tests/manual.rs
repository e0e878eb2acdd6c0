//! Proves: each function of the header is in the name and the synopsis of one manual page, declared
//! as in the header; pages have all sections, and groff has no complaint.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use support::{declared, done, name_of, package, plain};

/// Pages of section 3, and that of section 7.
fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(package().join("man")).unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

/// The text of a section of a page.
fn section<'a>(page: &'a str, name: &str) -> &'a str {
    let begin = format!(".SH {name}\n");
    let rest = page.split_once(&begin).unwrap_or_else(|| panic!("no {name}: {page}")).1;
    rest.split("\n.SH ").next().unwrap()
}

#[test]
fn each_function_is_in_one_page() {
    let mut documented = BTreeMap::new();
    for path in pages().iter().filter(|path| path.extension().unwrap() == "3") {
        let page = std::fs::read_to_string(path).unwrap();
        let names = section(&page, "NAME").split(" \\- ").next().unwrap().to_owned();
        let synopsis = section(&page, "SYNOPSIS").lines();
        let lines = synopsis.filter_map(|line| line.strip_prefix(".B \"")?.strip_suffix('"'));
        let code = lines.collect::<Vec<_>>().join(" ");
        let mut found = Vec::new();
        for declaration in code.split(';').map(plain).filter(|one| !one.is_empty()) {
            found.push(name_of(&declaration));
            let known = documented.insert(name_of(&declaration), declaration);
            assert_eq!(known, None, "{} is in two pages", found.last().unwrap());
        }
        assert_eq!(names, found.join(", "), "{}", path.display());
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), found[0]);
        for name in ["DESCRIPTION", "RETURN VALUE", "SEE ALSO"] {
            section(&page, name);
        }
    }
    assert_eq!(documented, declared().into_iter().collect());
}

#[test]
fn groff_accepts_the_pages() {
    for page in pages() {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-ww", "-z"]).arg(&page);
        // Where it is not there the other test is all there is.
        if groff.output().is_err() {
            return;
        }
        let complaint = groff.output().unwrap().stderr;
        assert!(complaint.is_empty(), "{}", String::from_utf8_lossy(&complaint));
        done(groff);
    }
}
