//! Proves: the commands of the README for an MPI program do what it says, in an empty directory and
//! an environment with nothing of Unisono in it.

use mpi::{ended, prefix, python, root};
use std::process::Command;

/// The lines of the README that run the program: after its installation, up to the end of the block.
fn commands() -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, after) = readme.split_once("make install PREFIX=$HOME/.local\n").unwrap();
    let (commands, _) = after.split_once("```").unwrap();
    assert!(commands.contains("unisono run "), "{commands}");
    commands.to_owned()
}

#[test]
fn the_first_program_runs_as_the_readme_says() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    std::fs::copy(root().join("examples/heat.py"), path("heat.py")).unwrap();
    // What `make install PREFIX=$HOME/.local` makes, and a Python that has mpi4py.
    let python = python().join("bin");
    let search = format!("{}/bin:{}:/usr/bin:/bin", prefix().display(), python.display());
    let mut shell = Command::new("timeout");
    shell.args(["-k", "5", "120", "sh", "-e", "-c", &commands()]);
    shell.current_dir(home.path()).env_clear().env("HOME", home.path()).env("PATH", search);
    // Not for newcomers: more ranks than processors, and a root user.
    shell.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("UNISONO_ALLOW_ROOT", "true");
    shell.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let (code, text) = ended(shell);
    assert_eq!(code, Some(0), "{text}");
    let first = text.find("heat: 10 steps").expect(&text);
    let report = &text[first..];
    for words in ["2 servers, 4 ranks", "heat.dat ", " collective ", "(10, 2048, 2048)"] {
        assert!(report.contains(words), "{words:?} is missing:\n{text}");
    }
}
