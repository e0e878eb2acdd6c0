//! Proves: programs in Python use unisono files by mpi4py, whose own tests of files pass.

use mpi::{Family, Servers, done, ended, python, root};
use std::process::Command;

/// Makes `command`, which ends with the interposer, run Python with the MPI of a family.
pub(crate) fn add_python(command: &mut Command, servers: &Servers, family: Family) {
    if family == Family::Mpich {
        // The wheel of mpi4py looks for the name that MPICH's own libraries have.
        let folder = servers.path("lib");
        std::fs::create_dir_all(&folder).unwrap();
        let shown = Command::new("gcc").arg("-print-file-name=libmpich.so.12").output().unwrap();
        let library = String::from_utf8(shown.stdout).unwrap();
        let _ = std::os::unix::fs::symlink(library.trim(), folder.join("libmpi.so.12"));
        command.arg(format!("LD_LIBRARY_PATH={}", folder.display()));
    }
    command.arg(format!("MPI4PY_MPIABI={}", family.name()));
    command.arg(python().join("bin/python"));
}

fn run_own_tests(family: Family) {
    let servers = Servers::start();
    let mut command = servers.mpiexec(family, 2);
    add_python(&mut command, &servers, family);
    command.arg(python().join("mpi4py/test/main.py")).args(["-q", "test_io", "test_file"]);
    // The tests take names of files from the system.
    let directory = servers.path("names");
    std::fs::create_dir(&directory).unwrap();
    command.env("TMPDIR", &directory);
    command.env("UNISONO_MATCH", format!("{}/*", directory.display()));
    let (code, text) = ended(command);
    let ran = text.lines().any(|line| line.starts_with("Ran ") && !line.starts_with("Ran 0"));
    assert!(ran && code == Some(0), "{family:?}: {code:?}\n{text}");
    let listed = done(servers.unisono(&["status", "--json"]));
    assert!(listed.contains("server"), "{listed}");
}

#[test]
fn its_own_tests_pass_with_mpich() {
    run_own_tests(Family::Mpich);
}

#[test]
fn its_own_tests_pass_with_open_mpi() {
    run_own_tests(Family::OpenMpi);
}

#[test]
fn the_heat_equation_writes_the_file_that_mpi_writes() {
    let servers = Servers::start();
    let example = root().join("examples/heat.py");
    let plain = servers.path("heat.plain");
    let mut alone = Family::OpenMpi.mpiexec(4);
    alone.arg("env");
    add_python(&mut alone, &servers, Family::OpenMpi);
    alone.arg(&example).arg(&plain);
    let expected = done(alone);
    assert_eq!(expected, std::fs::read_to_string(root().join("examples/heat.txt")).unwrap());
    let mut command = servers.mpiexec(Family::OpenMpi, 4);
    add_python(&mut command, &servers, Family::OpenMpi);
    command.arg(&example).arg("unisono://heat.dat");
    assert_eq!(done(command), expected);
    let copy = servers.path("heat.copy");
    done(servers.unisono(&["get", "heat.dat", copy.to_str().unwrap()]));
    assert!(std::fs::read(copy).unwrap() == std::fs::read(plain).unwrap());
}
