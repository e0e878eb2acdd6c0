//! Proves: programs whose files lie below a mount of an instance use the library without another
//! name, also by HDF5 and PnetCDF, with several instances at a time; what hinders them is named.

use super::hdf5_flags;
use mpi::{Family, Servers, done, ended, prefix, root};
use std::path::PathBuf;

const FAMILIES: [Family; 2] = Family::OF_DEBIAN;

/// One of the programs, compiled to the directory of some servers.
fn compiled(servers: &Servers, family: Family, source: &str) -> PathBuf {
    let program = servers.path(&format!("{source}.{}", family.name()));
    family.compile(&root().join("mpi/tests/programs").join(source), &program, &[]);
    program
}

#[test]
fn a_path_below_a_mount_is_a_file_of_its_instance() {
    for family in FAMILIES {
        let [servers, others] = [Servers::start(), Servers::start()];
        let [mount, second] = [servers.mount(), others.mount()];
        let outside = tempfile::tempdir().unwrap();
        let outside = outside.path().canonicalize().unwrap();
        let arguments = [mount.point(), second.point(), outside.to_str().unwrap()];
        let text = servers.run(family, 3, "mounted.c", &arguments);
        let last = text.lines().find(|line| line.starts_with("mounted: "));
        assert!(last.is_some_and(|line| line.ends_with("checks passed")), "{family:?}: {text}");
    }
}

#[test]
fn a_program_that_knows_no_instance_uses_that_of_its_path() {
    for family in FAMILIES {
        let servers = Servers::start();
        let mount = servers.mount();
        let program = compiled(&servers, family, "stamp.c");
        let mut command = servers.mpiexec(family, 3);
        command.arg(program).args([&mount.path("letters"), "a"]).env_remove("UNISONO_INSTANCE");
        done(command);
        assert_eq!(done(servers.unisono(&["cat", "letters"])), "aaa", "{family:?}");
        assert_eq!(std::fs::read_to_string(mount.path("letters")).unwrap(), "aaa", "{family:?}");
    }
}

#[test]
fn hdf5_and_pnetcdf_use_paths_below_a_mount() {
    for family in FAMILIES {
        let servers = Servers::start();
        let mount = servers.mount();
        let flags = hdf5_flags(family);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let text = servers.run_with(family, 4, "hdf5.c", &flags, &[&mount.path("")]);
        assert!(text.contains("hdf5: passed"), "{family:?}: {text}");
        let listed = done(servers.unisono(&["ls"]));
        assert!(listed.contains("contiguous.h5") && listed.contains("chunked.h5"), "{listed}");
        let start = std::fs::read(mount.path("chunked.h5")).unwrap();
        assert_eq!(start[..8], *b"\x89HDF\r\n\x1a\n", "{family:?}");
    }
    // Debian has PnetCDF for Open MPI only.
    let servers = Servers::start();
    let mount = servers.mount();
    let start = mount.path("");
    let text = servers.run_with(Family::OpenMpi, 4, "pnetcdf.c", &["-lpnetcdf"], &[&start]);
    assert!(text.contains("pnetcdf: passed"), "{text}");
}

/// Ranks whose hosts have no mount open a local file. Here they work in another directory.
#[test]
fn ranks_that_do_not_see_the_mount_are_an_error() {
    for family in FAMILIES {
        let servers = Servers::start();
        let mount = servers.mount();
        let outside = tempfile::tempdir().unwrap();
        let program = compiled(&servers, family, "stamp.c");
        let preload = format!("LD_PRELOAD={}", prefix().join("lib/libunisono-mpi.so").display());
        let here = ["sh", "-c", "cd \"$1\" && exec \"$2\" letters a", "sh"];
        for directories in [
            [mount.path(""), outside.path().display().to_string()],
            [outside.path().display().to_string(), mount.path("")],
        ] {
            let mut command = servers.mpiexec(family, 1);
            command.args(here).arg(&directories[0]).arg(&program);
            command.args([":", "-n", "2", "env", &preload]);
            command.args(here).arg(&directories[1]).arg(&program);
            command.env("UNISONO_TIMEOUT", "5");
            let (code, text) = ended(command);
            assert_eq!(code, Some(5), "{family:?}: {text}");
            assert!(text.contains("mount the instance at the same path"), "{family:?}: {text}");
        }
    }
}

#[test]
fn the_error_of_a_mount_whose_instance_has_ended_names_one_of_them() {
    for family in FAMILIES {
        let servers = Servers::start();
        let mount = servers.mount();
        let program = compiled(&servers, family, "stamp.c");
        for server in servers.processes() {
            done({
                let mut kill = std::process::Command::new("kill");
                kill.args(["-KILL", &server.to_string()]);
                kill
            });
        }
        let mut command = servers.mpiexec(family, 2);
        command.arg(program).args([&mount.path("letters"), "a"]).env("UNISONO_TIMEOUT", "5");
        let (code, text) = ended(command);
        let instance = servers.path("instance").display().to_string();
        assert_ne!(code, Some(0), "{family:?}: {text}");
        assert!(text.contains("error: MPI_File_open failed"), "{family:?}: {text}");
        assert!(text.contains(&instance) || text.contains(mount.point()), "{family:?}: {text}");
    }
}
