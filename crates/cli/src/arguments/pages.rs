//! `write-pages`: the manual of the command and its completion for shells, made from the
//! definitions of its arguments. `scripts/install` calls it.

use super::{Arguments, Pages};
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};
use interface::{ExitCode, UserError};
use std::io;
use std::path::Path;

/// Folders below the one of the user in which the shells look for completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Name under which bash looks for the completion of the command; `clap_complete` adds an
/// extension.
const OF_BASH: [&str; 2] = ["unisono.bash", "unisono"];

pub(crate) fn run(arguments: &Pages) -> Result<(), UserError> {
    let directory = &arguments.directory;
    write(directory).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot write the manual below {}", directory.display()),
            error.to_string(),
            "name a directory that you may write to",
        )
    })
}

/// Writes a page for each command, and a completion for each shell, below `directory`.
fn write(directory: &Path) -> io::Result<()> {
    let command = Arguments::command();
    let manual = directory.join("man/man1");
    std::fs::create_dir_all(&manual)?;
    clap_mangen::generate_to(command.clone(), &manual)?;
    // Completions would offer commands that are not for users.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut shown = Command::new("unisono").subcommands(shown);
    for (shell, folder) in COMPLETIONS {
        let folder = directory.join(folder);
        std::fs::create_dir_all(&folder)?;
        generate_to(shell, &mut shown, "unisono", &folder)?;
        if shell == Shell::Bash {
            let [made, wanted] = OF_BASH.map(|name| folder.join(name));
            std::fs::rename(made, wanted)?;
        }
    }
    Ok(())
}
