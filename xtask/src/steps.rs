//! Execution of steps in order, each announced with its time, until one fails.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Returns a `cargo` command in the folder of the workspace.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root);
    command
}

/// Runs a command to its end; prints the reason and returns false when it failed or could not
/// start.
pub(crate) fn succeeds(mut command: Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(cause) => {
            let program = command.get_program().display();
            eprintln!(
                "error: cannot run {program}\ncause: {cause}\nhelp:  check that {program} is \
                       on your PATH"
            );
            false
        }
    }
}

/// Announces a step, runs it, and prints its outcome and duration.
pub(crate) fn step(name: &str, action: impl FnOnce() -> bool) -> bool {
    println!("== {name}");
    let start = Instant::now();
    let succeeded = action();
    let outcome = if succeeded { "ok" } else { "FAILED" };
    println!("== {name}: {outcome} ({:.1} s)", start.elapsed().as_secs_f64());
    succeeded
}
