//! `cargo x check`: the checks before a commit, the quickest step first. `cargo x lint`: those of
//! them that run no test.

use crate::steps::{cargo, step, succeeds};
use crate::{subjects, tidy};
use std::path::Path;

/// Build profile of the tests. Clippy shares with them what runs in the compiler: build scripts and
/// procedural macros.
const TESTED: &str = "checked";

/// Build profile in which a crate is compiled again quickly after a small change.
const QUICK: &str = "quick";

/// Runs every step; stops at the first that fails and returns false.
pub(crate) fn run(root: &Path) -> bool {
    let tests = ["test", "--workspace", "--lib", "--bins", "--profile", QUICK];
    lint_in(root, QUICK) && step("unit tests", || succeeds(cargo(root, &tests)))
}

/// Runs the steps that run no test: `cargo x test` runs every test, so `make test` needs no more.
pub(crate) fn lint(root: &Path) -> bool {
    lint_in(root, TESTED)
}

fn lint_in(root: &Path, profile: &str) -> bool {
    let format = ["fmt", "--all", "--check"];
    let clippy = ["clippy", "--workspace", "--all-targets", "--profile", profile];
    let clippy = [&clippy[..], &["--", "-D", "warnings"]].concat();
    step("format", || succeeds(cargo(root, &format)))
        && step("commit subjects", || subjects::run(root))
        && step("tidy", || tidy::run(root))
        && step("clippy", || succeeds(cargo(root, &clippy)))
}
