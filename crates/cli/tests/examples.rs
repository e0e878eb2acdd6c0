//! Proves: each program of the folder `examples` is run by the commands of its header, and prints
//! exactly the file beside it. Nothing in the folder is left out, too long, or not listed.
//!
//! `cargo x test` builds the programs first.

use crate::support;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Place, Running, program};

/// Largest number of lines of code in an example, without comments and blank lines.
const CODE_LINES_MAX: usize = 70;

/// Test that runs the examples in C, which need the installed library.
const C_TEST: &str = "crates/c-api/tests/installed.rs";

/// Test that runs the examples in Python, which need MPI.
const PYTHON_TEST: &str = "mpi/tests/mpi4py.rs";

/// Path of a file of the repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the stems and the extensions of the files of the folder.
fn files() -> BTreeSet<(String, String)> {
    let entries = std::fs::read_dir(path("examples")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let split = |name: String| {
        let (stem, kind) = name.split_once('.').expect("a file has an extension");
        (stem.to_owned(), kind.to_owned())
    };
    names.map(split).collect()
}

/// Returns the commands in the header of an example in Rust, each on one line.
fn commands(stem: &str) -> Vec<String> {
    let text = text(&format!("examples/{stem}.rs"));
    let header = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let header = header.collect::<Vec<_>>().join("\n");
    let block = header.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) = block.unwrap_or_else(|| panic!("{stem}.rs does not say how to run it"));
    block.replace("\\\n", "").lines().map(str::to_owned).collect()
}

/// Runs the commands of an example at a place of its own, those that end with `&` at the same time.
/// Returns the output of the example, in the order of the commands.
fn output(stem: &str) -> String {
    let place = Place::new();
    let mut running = Vec::new();
    for command in commands(stem) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["unisono", ref words @ ..] => drop(place.run(words).done()),
            ["cargo", "run", "--release", "-p", _, "--example", name, ref words @ ..] => {
                let words = words.strip_prefix(&["--"]).unwrap_or(words);
                let words = words.strip_suffix(&["&"]).unwrap_or(words);
                let mut command = built(name, words);
                command.env("UNISONO_INSTANCE", place.instance());
                running.push(Running::start(command));
            }
            _ => panic!("{stem}.rs: this test cannot run `{command}`"),
        }
    }
    assert!(!running.is_empty(), "no command in the header of {stem}.rs runs it");
    running.into_iter().map(|one| one.end().done().text().to_owned()).collect()
}

/// The program of an example, which cargo has built in the profile of this test.
fn built(name: &str, words: &[&str]) -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_unisono")).with_file_name("examples").join(name);
    let shown = path.display();
    assert!(
        path.is_file(),
        "{shown} is missing: build it with `cargo build --workspace --example {name}`, in this \
         profile"
    );
    program(path, words)
}

#[test]
fn each_example_prints_what_it_should() {
    for (stem, _) in files().into_iter().filter(|(_, kind)| kind == "rs") {
        let (printed, expected) = (output(&stem), text(&format!("examples/{stem}.txt")));
        assert!(printed == expected, "{stem} printed\n{printed}\ninstead of\n{expected}");
    }
}

#[test]
fn nothing_in_the_folder_is_left_out() {
    let files = files();
    let has = |stem: &str, kind: &str| files.contains(&(stem.to_owned(), kind.to_owned()));
    let listed = text("examples/README.md");
    for (stem, kind) in &files {
        let name = format!("{stem}.{kind}");
        match kind.as_str() {
            "rs" | "c" | "py" => assert!(has(stem, "txt"), "{name} has no expected output"),
            "txt" => {
                let is_of_one = ["rs", "c", "py"].iter().any(|kind| has(stem, kind));
                assert!(is_of_one, "{name} is the output of no example");
                continue;
            }
            _ => {
                assert_eq!(name, "README.md", "it is no example");
                continue;
            }
        }
        let code = text(&format!("examples/{name}"));
        let is_comment =
            |line: &str| ["//", "/*", "* ", "#"].iter().any(|mark| line.starts_with(mark));
        let lines = code.lines().map(str::trim_start);
        let count = lines.filter(|line| !line.is_empty() && !is_comment(line)).count();
        assert!(count <= CODE_LINES_MAX, "{name} has {count} lines of code");
        let row = listed.lines().find(|line| line.starts_with(&format!("| [{name}]({name}) |")));
        let row = row.unwrap_or_else(|| panic!("examples/README.md does not list {name}"));
        let run = match kind.as_str() {
            "rs" => format!("--example {stem}`"),
            "py" => format!("python {name}"),
            _ => format!("./{stem}"),
        };
        assert!(row.contains(&run), "examples/README.md does not say how to run {name}");
        let tests = [("c", C_TEST), ("py", PYTHON_TEST)];
        for (_, path) in tests.iter().filter(|(of, _)| *of == kind.as_str()) {
            let test = text(path);
            let runs = [&name, &format!("{stem}.txt")].map(|file| test.contains(&file[..]));
            assert!(runs == [true; 2], "{path} does not run {name}");
        }
    }
}
