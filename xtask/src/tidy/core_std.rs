//! Rule: core crates ask the world for time, tasks and I/O, never the standard library.
//!
//! A second guard behind `clippy.toml`: clippy knows functions and types, this rule knows whole
//! modules, and no attribute can silence it.

use super::crate_edges::CORE;
use super::tree::{Finding, Tree};

/// Modules of the standard library, each with its replacement in a core crate.
const MODULES: [(&str, &str); 6] = [
    ("time", "use `units::{Duration, Instant}` and `world.now()`"),
    ("thread", "spawn tasks in a `world::Scope`"),
    ("fs", "use `world.disks()` or `world.records()`"),
    ("net", "use `world.connect()`, `send` and `receive`"),
    ("process", "start and end processes only in a face"),
    ("env", "let `client`, `cluster` or a face read it and pass it in"),
];

/// Collections whose iteration order differs from run to run.
const HASHED: [&str; 2] = ["HashMap", "HashSet"];

/// Checks the code of core crates outside tests.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_core = |name: Option<&str>| name.is_some_and(|name| CORE.contains(&name));
    for file in tree.rust().filter(|file| is_core(file.crate_name())) {
        if file.path.contains("/examples/") {
            continue;
        }
        let mut in_group = false;
        for (number, line) in file.code_lines() {
            in_group |= line.trim_start().starts_with("use std::{");
            for (module, help) in MODULES {
                if line_names(line, module, in_group) {
                    findings.push(file.finding(number, format!("`std::{module}` in core"), help));
                }
            }
            for hashed in HASHED.iter().filter(|hashed| has_word(line, hashed)) {
                let help = "use a BTree collection, whose order is deterministic";
                findings.push(file.finding(number, format!("`{hashed}` in core"), help));
            }
            in_group &= !line.contains(';');
        }
    }
    findings
}

/// True when a line of code names `std::module`, in a group of imports also without `std::`.
fn line_names(line: &str, module: &str, in_group: bool) -> bool {
    let full = ["std", "core"].iter().any(|root| has_word(line, &format!("{root}::{module}")));
    let line = line.trim_start().trim_start_matches("use std::");
    let mut parts = line.split(['{', ',', '}']).map(str::trim);
    full || (in_group && parts.any(|part| part.split("::").next() == Some(module)))
}

/// True when `word` stands in `line` with no letter, digit or `_` beside it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    //! Proves: each module is found however it is imported, in core crates only.
    use super::*;

    const NOTHING: [usize; 0] = [];

    fn found(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_way_to_import_is_found() {
        let core = "crates/policy/src/a.rs";
        for (module, _) in MODULES {
            assert_eq!(found(core, &format!("use std::{module}::x;")), [1], "{module}");
            assert_eq!(found(core, &format!("let a = ::std::{module}::x();")), [1], "{module}");
            assert_eq!(found(core, &format!("use std::{{rc::Rc, {module}::x}};")), [1], "{module}");
            let group = format!("use std::{{\n    rc::Rc,\n    {module},\n}};\nlet {module} = 1;");
            assert_eq!(found(core, &group), [3], "{module}");
        }
        assert_eq!(found(core, "use std::collections::{BTreeMap, HashMap};"), [1]);
        assert_eq!(found(core, "use std::timeline;\nlet time = 1;\nstruct HashMapped;"), NOTHING);
    }

    #[test]
    fn other_crates_and_tests_are_free() {
        let text = "use std::time::Instant;";
        assert_eq!(found("crates/world-real/src/a.rs", text), NOTHING);
        assert_eq!(found("crates/filesystem/tests/a.rs", text), NOTHING);
        assert_eq!(found("crates/filesystem/src/a.rs", &format!("// {text}")), NOTHING);
    }
}
