//! `cargo x check`: the checks before a commit, the quickest step first. `cargo x lint`: those of
//! them that run no test.

use crate::steps::{cargo, step, succeeds};
use crate::{subjects, tidy};
use std::path::Path;

/// Runs every step; stops at the first that fails and returns false.
pub(crate) fn run(root: &Path) -> bool {
    let tests = ["test", "--workspace", "--lib", "--bins"];
    lint(root) && step("unit tests", || succeeds(cargo(root, &tests)))
}

/// Runs the steps that run no test: `cargo x test` runs every test, so `make test` needs no more.
pub(crate) fn lint(root: &Path) -> bool {
    let format = ["fmt", "--all", "--check"];
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step("format", || succeeds(cargo(root, &format)))
        && step("commit subjects", || subjects::run(root))
        && step("tidy", || tidy::run(root))
        && step("clippy", || succeeds(cargo(root, &clippy)))
}
