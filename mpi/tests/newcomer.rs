//! Proves: the commands of the README and of pages that need MPI do what they say, in a directory and an
//! environment with nothing of Unisono in them; a run is compared with one without Unisono.

#[path = "../../crates/cli/tests/support/pages.rs"]
#[allow(dead_code, reason = "each test uses its part")]
pub(crate) mod pages;

use mpi::{ended, prefix, python, root, session_folder};
use pages::{Example, How, assert_printed, examples, script};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A program that writes 2 MiB by collective calls.
const APP: &str = r#"#!/usr/bin/env python3
import sys
from mpi4py import MPI

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
for step in range(4):
    file.Write_at_all((step * comm.size + comm.rank) << 18, bytes(1 << 18))
file.Close()
if comm.rank == 0:
    print("app: 4 steps")
"#;

/// A directory of a newcomer.
struct Home(TempDir);

impl Home {
    /// Makes a directory with the examples, and a program `app`.
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(root().join("examples"), home.path("examples")).unwrap();
        std::fs::write(home.path("app"), APP).unwrap();
        let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(home.path("app"), may_run).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a script for the shell to its end, with what `make install PREFIX=$HOME/.local` makes, and a
    /// Python that has mpi4py. Returns its output.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        let python = python().join("bin");
        let search = format!("{}/bin:{}:/usr/bin:/bin", prefix().display(), python.display());
        let mut shell = Command::new("timeout");
        shell.args(["-k", "5", "240", "sh", "-e", "-c", script]);
        shell.current_dir(self.0.path()).env_clear().env("HOME", self.0.path()).env("PATH", search);
        // Not for newcomers: more ranks than processors, and a root user.
        shell.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("UNISONO_ALLOW_ROOT", "true");
        shell.env("TMPDIR", session_folder());
        shell.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let (code, text) = ended(shell);
        assert_eq!(code, Some(0), "{text}");
        text
    }
}

/// Runs the examples with MPI of a page; returns their output.
#[track_caller]
fn run_page(name: &str) -> String {
    let page = std::fs::read_to_string(root().join(name)).unwrap();
    let mut all: Vec<Example> = examples(&page);
    all.retain(|example| example.how == How::RunWithMpi);
    assert!(!all.is_empty(), "{name} has no example with MPI");
    let text = Home::new().run(&script(&all));
    assert_printed(Path::new(name), &all, &text);
    text
}

#[test]
fn the_first_programs_run_as_the_readme_says() {
    let text = run_page("README.md");
    let first = text.find("heat: 10 steps").expect(&text);
    let report = &text[first..];
    for words in ["2 servers, 2 ranks", "heat.dat ", " collective ", "(10, 2048, 2048)"] {
        assert!(report.contains(words), "{words:?} is missing:\n{text}");
    }
    for words in ["best: ", "recorded: ", "machine: this-machine, not measured here", "accuracy: "]
    {
        assert!(report.contains(words), "{words:?} is missing:\n{text}");
    }
}

#[test]
fn programs_run_as_other_pages_say() {
    for page in ["docs/run.md", "docs/record.md", "docs/what-if.md"] {
        run_page(page);
    }
}

#[test]
fn a_run_is_compared_with_one_without_unisono() {
    let home = Home::new();
    std::fs::create_dir(home.path("plain")).unwrap();
    let run = "unisono run --servers 2 --stage-out out --compare=plain -- mpiexec -n 2 ./app";
    // Names by a pattern too, in a directory that is not there.
    let script = format!(
        "{run} unisono://file.dat\nls out\n\
         UNISONO_MATCH='*.dat' {run} b/file.dat\n\
         test -z \"$(ls plain)\"; test ! -e b\n"
    );
    let text = home.run(&format!("exec 2>&1\n{script}"));
    for words in [
        "without Unisono, before the run",
        "without Unisono, after the run",
        "  without Unisono: ",
        " times as fast as the faster of these",
        "until files are on disk",
        "\nfile.dat\n",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    assert_eq!(text.matches("times as fast as the faster").count(), 2, "{text}");
    let printed = text.matches("app: 4 steps").count();
    assert_eq!(printed, 2, "the output of plain runs is thrown away:\n{text}");
    // Files of one run are not replaced by the next one, which is refused before it starts.
    let again = format!("{run} unisono://file.dat 2>&1 || test $? = 2\n");
    let text = home.run(&again);
    assert!(text.contains("error: staging out would replace files"), "{text}");
    assert!(text.contains("out/file.dat is there already") && !text.contains("app: 4"), "{text}");
}

#[test]
fn files_of_a_program_that_ends_early_have_their_sizes() {
    let home = Home::new();
    let program = "import os, sys; from mpi4py import MPI\n\
                   f = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)\n\
                   f.Write_at_all(MPI.COMM_WORLD.rank << 20, bytes(1 << 20))\n\
                   MPI.COMM_WORLD.Barrier(); os._exit(3)\n";
    std::fs::write(home.path("early.py"), program).unwrap();
    let run =
        "unisono run --servers 2 --stage-out out -- mpiexec -n 2 python3 early.py unisono://x";
    let text = home.run(&format!("{run} 2>&1 || code=$?; test $code != 0"));
    assert!(text.contains("checked every byte of 1 file, 2 MiB"), "{text}");
    assert!(text.contains("calls   not known: the program ended before"), "{text}");
}
