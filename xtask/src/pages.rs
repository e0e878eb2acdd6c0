//! `cargo x scenarios-page`: writes docs/scenarios.md from the table of keys.

use crate::steps::cargo;
use std::path::Path;
use std::process::Stdio;

/// Path of the page in the folder of the workspace.
const PAGE: &str = "docs/scenarios.md";

/// Runs an example of `simulate`, as this crate depends on none; returns false when it failed.
pub(crate) fn run(root: &Path) -> bool {
    let example = ["run", "--quiet", "--package", "simulate", "--example", "scenarios_page"];
    let printed = cargo(root, &example).stderr(Stdio::inherit()).output();
    let written = match printed {
        Ok(output) if output.status.success() => std::fs::write(root.join(PAGE), output.stdout),
        Ok(_) => return false,
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => true,
        Err(cause) => {
            let help = "check that cargo is on your PATH and that you may write the file";
            eprintln!("error: cannot write {PAGE}\ncause: {cause}\nhelp:  {help}");
            false
        }
    }
}
