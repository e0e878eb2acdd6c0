//! `cargo x check`: the checks before a commit, the quickest step first.

use crate::steps::{cargo, step, succeeds};
use crate::{subjects, tidy};
use std::path::Path;

/// Runs every step; stops at the first that fails and returns false.
pub(crate) fn run(root: &Path) -> bool {
    let format = ["fmt", "--all", "--check"];
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let tests = ["test", "--workspace", "--lib", "--bins"];
    step("format", || succeeds(cargo(root, &format)))
        && step("commit subjects", || subjects::run(root))
        && step("tidy", || tidy::run(root))
        && step("clippy", || succeeds(cargo(root, &clippy)))
        && step("unit tests", || succeeds(cargo(root, &tests)))
}
