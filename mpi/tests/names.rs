//! Proves: names of MPI programs mean the same files as those of the command, programs in two
//! directories have files of their own, and `unisono run` copies them where a user looks for them.

use mpi::{Family, Servers, done, prefix, root};
use std::path::{Path, PathBuf};
use std::process::Command;

const FAMILIES: [Family; 2] = Family::OF_DEBIAN;

/// A program that writes a letter for each process, compiled to a directory.
fn stamp(family: Family, directory: &Path) -> PathBuf {
    let program = directory.join(format!("stamp.{}", family.name()));
    family.compile(&root().join("mpi/tests/programs/stamp.c"), &program, &[]);
    program
}

/// Two directories, without links in their paths.
fn directories() -> (tempfile::TempDir, [PathBuf; 2]) {
    let home = tempfile::tempdir().unwrap();
    let top = home.path().canonicalize().unwrap();
    let both = ["one", "two"].map(|name| top.join(name));
    both.iter().for_each(|directory| std::fs::create_dir(directory).unwrap());
    (home, both)
}

#[test]
fn programs_in_two_directories_have_files_of_their_own() {
    for family in FAMILIES {
        let servers = Servers::start();
        let (_home, [one, two]) = directories();
        let program = stamp(family, &one);
        for (directory, name, letter) in
            [(&one, "ParaTest.h5", "a"), (&two, "./ParaTest.h5", "b"), (&one, "x/../x//y.h5", "c")]
        {
            let mut command = servers.mpiexec(family, 3);
            command.arg(&program).args([name, letter]);
            command.current_dir(directory).env("UNISONO_MATCH", "*.h5");
            done(command);
        }
        let cat = |name: String| done(servers.unisono(&["cat", &name]));
        let (one, two) = (one.display(), two.display());
        assert_eq!(cat(format!("{one}/ParaTest.h5")), "aaa", "{family:?}");
        assert_eq!(cat(format!("unisono:/{two}/../two//ParaTest.h5")), "bbb", "{family:?}");
        assert_eq!(cat(format!("unisono://.{one}/./x/y.h5")), "ccc", "{family:?}");
    }
}

#[test]
fn a_run_copies_files_out_from_its_working_directory() {
    for family in FAMILIES {
        let (_home, [one, two]) = directories();
        let program = stamp(family, &two);
        std::fs::write(one.join("in.h5"), "zzzz").unwrap();
        for (name, letter) in [("./in.h5", "a"), ("deep//out.h5", "b"), ("../two/out.h5", "c")] {
            let mut run = Command::new(prefix().join("bin/unisono"));
            run.args(["run", "--servers", "1", "--no-limit", "--stage-out", "results"]);
            run.args(["--overwrite", "--stage-in", "in.h5", "--"]);
            let mpiexec = family.mpiexec(2);
            run.arg(mpiexec.get_program()).args(mpiexec.get_args()).arg(&program);
            run.args([name, letter]).current_dir(&one).env("UNISONO_MATCH", "*.h5");
            run.envs(mpiexec.get_envs().filter_map(|(name, value)| Some((name, value?))));
            run.env("UNISONO_ALLOW_ROOT", "true");
            let text = done(run);
            assert!(text.contains("servers stopped"), "{family:?} {name}: {text}");
            let staged = std::fs::read_to_string(one.join("results/in.h5")).unwrap();
            assert_eq!(staged, if letter == "a" { "aazz" } else { "zzzz" }, "{family:?} {name}");
        }
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(one.join("results/deep/out.h5")), "bb", "{family:?}");
        let whole = one.join("results").join(two.strip_prefix("/").unwrap()).join("out.h5");
        assert_eq!(read(whole), "cc", "{family:?}");
        assert_eq!(read(one.join("in.h5")), "zzzz", "the program wrote in the instance");
    }
}
