//! `cargo x calibrate-1994 PATH`: fits the unpublished costs of the simulated 1994 machine.

use crate::steps::{cargo, succeeds};
use std::path::Path;

/// Runs an example of `experiments`, as this crate depends on none; returns false when it failed.
pub(crate) fn run(root: &Path, report: &str) -> bool {
    // The command runs in the folder of the workspace, but the path is relative to the current
    // folder.
    let report = std::env::current_dir().map(|here| here.join(report));
    let Ok(report) = report else {
        eprintln!(
            "error: cannot run the command\ncause: the current folder does not exist\nhelp:  \
             change to another folder"
        );
        return false;
    };
    let example = ["--release", "--package", "experiments", "--example", "calibrate_1994"];
    let mut command = cargo(root, &["run", "--quiet"]);
    command.args(example).arg("--").arg(report);
    succeeds(command)
}
