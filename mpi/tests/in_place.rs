//! Proves: MPI programs whose names UNISONO_IN_PLACE matches work on ordinary files at their paths, as
//! they do with the MPI library: other programs find the data there after the close, and nothing else
//! is left beside the files.

use crate::{CONFORMANCE, FAMILIES};
use mpi::{Family, Servers, done, ended, prefix, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of the folder of tests.
pub(crate) fn compiled(servers: &Servers, family: Family, name: &str, sources: &[&str]) -> PathBuf {
    let folder = root().join("mpi/tests/programs");
    let sources: Vec<PathBuf> = sources.iter().map(|source| folder.join(source)).collect();
    let program = servers.path(&format!("{name}.{}", family.name()));
    family.compile_all(&sources, &program, &["-lm"]);
    program
}

/// A directory for ordinary files, without links in its path.
pub(crate) fn directory() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().canonicalize().unwrap();
    (home, path)
}

/// Names of all files of a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries.map(|it| name(it).into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn ordinary_files_have_what_programs_write_in_place() {
    for family in FAMILIES {
        let servers = Servers::start();
        let (_home, top) = directory();
        let program = compiled(&servers, family, "stamp", &["stamp.c"]);
        std::fs::write(top.join("old"), "zzzzzz").unwrap();
        std::os::unix::fs::symlink("old", top.join("link")).unwrap();
        for (name, letter) in [("new", "a"), ("link", "b")] {
            let mut command = servers.mpiexec(family, 3);
            command.arg(&program).args([name, letter]).current_dir(&top);
            command.env("UNISONO_IN_PLACE", format!("{}/*", top.display()));
            done(command);
        }
        let read = |name: &str| std::fs::read_to_string(top.join(name)).unwrap();
        assert_eq!((read("new"), read("old")), ("aaa".to_owned(), "bbbzzz".to_owned()));
        assert_eq!(names(&top), ["link", "new", "old"]);
        assert_eq!(done(servers.unisono(&["ls", "unisono://"])), "", "{family:?}");
    }
}

#[test]
fn programs_that_check_mpi_io_pass_in_place() {
    let direct = &["--servers", "2", "--direct"][..];
    for (family, name, sources, options) in [
        (Family::Mpich, "conformance", &CONFORMANCE[..], &direct[..2]),
        (Family::OpenMpi, "conformance", &CONFORMANCE[..], direct),
        (Family::OpenMpi, "requests", &["requests.c"], &direct[..2]),
        (Family::OpenMpi, "modes", &["modes.c"], &direct[..2]),
    ] {
        let servers = Servers::start_as(&std::env::temp_dir(), options);
        let (_home, top) = directory();
        let program = compiled(&servers, family, name, sources);
        let mut command = servers.mpiexec(family, 3);
        command.arg(program).arg(top.join(name)).current_dir(&top);
        command.env("UNISONO_IN_PLACE", format!("{}/*", top.display()));
        let text = done(command);
        let last = text.lines().find(|line| line.starts_with(&format!("{name}: ")));
        let has_passed = last.is_some_and(|line| line.ends_with("checks passed"));
        assert!(has_passed, "{family:?}: {text}");
    }
}

#[test]
fn a_run_in_place_leaves_the_file_and_nothing_else() {
    let family = Family::OpenMpi;
    let servers = Servers::start();
    let (_home, top) = directory();
    let program = compiled(&servers, family, "stamp", &["stamp.c"]);
    let mut run = Command::new(prefix().join("bin/unisono"));
    run.args(["run", "--servers", "2", "--no-limit", "--in-place", "--"]);
    let mpiexec = family.mpiexec(3);
    run.arg(mpiexec.get_program()).args(mpiexec.get_args()).arg(&program).args(["out", "x"]);
    run.envs(mpiexec.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run.current_dir(&top).env("UNISONO_ALLOW_ROOT", "true");
    let text = done(run);
    assert_eq!(std::fs::read_to_string(top.join("out")).unwrap(), "xxx", "{text}");
    assert_eq!(names(&top), ["out"], "{text}");
}

#[test]
fn links_lead_to_what_the_patterns_match_or_nowhere() {
    let family = Family::OpenMpi;
    let servers = Servers::start();
    let (_home, top) = directory();
    let program = compiled(&servers, family, "stamp", &["stamp.c"]);
    for folder in ["in", "out"] {
        std::fs::create_dir(top.join(folder)).unwrap();
    }
    std::fs::write(top.join("out/data"), "zzz").unwrap();
    std::os::unix::fs::symlink("../out/data", top.join("in/link.dat")).unwrap();
    std::os::unix::fs::symlink("../out", top.join("in/folder")).unwrap();
    let stamp = |name: &str, letter: &str, patterns: &str| {
        let mut command = servers.mpiexec(family, 2);
        command.arg(&program).args([name, letter]).current_dir(&top);
        command.env("UNISONO_IN_PLACE", patterns);
        command
    };
    let inside = format!("{}/in/*", top.display());
    for name in ["in/link.dat", "in/folder/data", "in/folder/new"] {
        let (code, text) = ended(stamp(name, "x", &inside));
        assert_ne!(code, Some(0), "{text}");
        let target = if name.ends_with("new") { "out/new" } else { "out/data" };
        for words in ["leads by a link to ", target, "name that path in a pattern too"] {
            assert!(text.contains(words), "{name}: {words:?} is missing: {text}");
        }
    }
    assert_eq!(names(&top.join("out")), ["data"]);
    let read = || std::fs::read_to_string(top.join("out/data")).unwrap();
    assert_eq!(read(), "zzz");
    // A link in the directory of a pattern does not leave it, nor does a relative pattern.
    std::os::unix::fs::symlink("out", top.join("alias")).unwrap();
    let alias = format!("{}/alias/*", top.display());
    let (absolute, letters) = (format!("{}/alias/data", top.display()), ["c", "d", "e", "f"]);
    let within = [&*absolute, "alias/data", "out/data", "./out/data"];
    let patterns = [&*alias, "alias/*", "out/d*", "./out/data"];
    for ((name, pattern), letter) in within.into_iter().zip(patterns).zip(letters) {
        done(stamp(name, letter, pattern));
        assert_eq!(read(), format!("{}z", letter.repeat(2)), "{name} by {pattern}");
    }
    let mut here = stamp("data", "g", &alias);
    // As a shell that has entered the directory by the link.
    here.current_dir(top.join("out")).env("PWD", top.join("alias"));
    done(here);
    assert_eq!(read(), "ggz");
    // A pattern of names alone says nothing of the place.
    for (patterns, letter) in [(format!("{inside},*/out/*"), "a"), ("*.dat".into(), "b")] {
        done(stamp("in/link.dat", letter, &patterns));
        assert_eq!(read(), format!("{}z", letter.repeat(2)), "{patterns}");
    }
}

#[test]
fn files_that_cannot_be_in_place_are_refused() {
    let family = Family::Mpich;
    let (servers, others) = (Servers::start(), Servers::start());
    let (_home, top) = directory();
    let program = compiled(&servers, family, "in_place", &["in_place.c"]);
    std::fs::write(top.join("file"), "zzz").unwrap();
    let open = |servers: &Servers, words: &[&str]| {
        let mut command = servers.mpiexec(family, 1);
        command.arg(&program).args(words).current_dir(&top);
        command.env("UNISONO_IN_PLACE", format!("{}/*", top.display()));
        command
    };
    let refused = |command: Command| {
        let (code, text) = ended(command);
        assert_ne!(code, Some(0), "{text}");
        text
    };
    let text = refused(open(&servers, &["missing"]));
    assert!(text.contains("No such file"), "{text}");
    std::fs::create_dir(top.join("folder")).unwrap();
    let text = refused(open(&servers, &["folder"]));
    assert!(text.contains("directory"), "{text}");
    // The program has the file open while it starts one of another instance.
    let other = open(&others, &["file"]);
    let mut line = vec![other.get_program().to_string_lossy().into_owned()];
    line.extend(other.get_args().map(|word| word.to_string_lossy().into_owned()));
    let settings = other.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let line =
        format!("env -u LD_PRELOAD {} {}", settings.collect::<Vec<_>>().join(" "), line.join(" "));
    let text = done(open(&servers, &["file", &line]));
    assert!(text.contains("another instance works on it"), "{text}");
    assert_eq!(std::fs::read_to_string(top.join("file")).unwrap(), "zzz");
}
