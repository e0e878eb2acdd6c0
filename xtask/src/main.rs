//! Developer commands of the workspace, run as `cargo x <command>`.

mod calibrate;
mod check;
mod pages;
mod steps;
mod subjects;
mod suite;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Developer commands of Unisono.

usage: cargo x <command>

  check   all checks before a commit: format, subjects of commits, tidy,
          clippy, unit tests
  lint    all checks except the tests
  test    every test, optimised, with one summary line; further arguments go to cargo test
  tidy    the rules of the tree: crate edges, file rules, links
  calibrate-1994 PATH
          fits the unpublished costs of the 1994 machine to published throughputs, writes a
          report to PATH and prints the constants; takes minutes and changes no source
  scenarios-page
          writes docs/scenarios.md from the table of keys of scenario files
  help    this list
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let root = root();
    let succeeded = match (command.as_str(), rest.as_slice()) {
        ("check", []) => check::run(&root),
        ("lint", []) => check::lint(&root),
        ("test", _) => suite::run(&root, &rest),
        ("tidy", []) => tidy::run(&root),
        ("calibrate-1994", [path]) => calibrate::run(&root, path),
        ("calibrate-1994", _) => refuse("`calibrate-1994` takes the path of its report"),
        ("scenarios-page", []) => pages::run(&root),
        ("help" | "--help" | "-h", _) => {
            print!("{HELP}");
            true
        }
        ("check" | "lint" | "tidy" | "scenarios-page", _) => {
            refuse(&format!("`{command}` takes no arguments"))
        }
        _ => refuse(&format!("there is no command `{command}`")),
    };
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(cause: &str) -> bool {
    eprintln!(
        "error: cannot run the command\ncause: {cause}\nhelp:  `cargo x help` lists the \
               commands"
    );
    false
}

/// Returns the folder of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
