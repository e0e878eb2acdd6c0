//! Proves: ordinary MPI programs in C, Fortran and Python, and the libraries HDF5, h5py and PnetCDF,
//! use unisono files under MPICH and Open MPI; ranks that do not join a call are named.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod faults;
mod faulty_mount;
mod in_place;
mod in_place_systems;
mod mounted;
mod mpi4py;
mod names;
mod newcomer;
mod record;
mod slurm;
mod suites;

use mpi::{Family, Servers, done, ended, prefix, root};
use std::path::PathBuf;
use std::process::Command;

const FAMILIES: [Family; 2] = Family::OF_DEBIAN;

/// Flags for programs that use HDF5, as Debian places it.
fn hdf5_flags(family: Family) -> Vec<String> {
    let name = family.name();
    let shown = Command::new("gcc").arg("-print-multiarch").output().unwrap().stdout;
    let machine = String::from_utf8(shown).unwrap();
    let libraries = format!("/usr/lib/{}/hdf5/{name}", machine.trim());
    vec![
        format!("-I/usr/include/hdf5/{name}"),
        format!("-L{libraries}"),
        format!("-Wl,-rpath,{libraries}"),
        "-lhdf5".to_owned(),
    ]
}

/// Compiles one of the programs that check MPI-IO, and runs it with 3 ranks; its last line tells how
/// many checks have passed.
fn check(families: &[Family], name: &str, sources: &[&str], arguments: &[&str]) {
    let servers = Servers::start();
    let folder = root().join("mpi/tests/programs");
    let sources: Vec<PathBuf> = sources.iter().map(|source| folder.join(source)).collect();
    for &family in families {
        let program = servers.path(&format!("{name}.{}", family.name()));
        family.compile_all(&sources, &program, &["-lm"]);
        let mut command = servers.mpiexec(family, 3);
        command.arg(program).arg(format!("unisono://{name}")).args(arguments);
        let text = done(command);
        let last = text.lines().find(|line| line.starts_with(&format!("{name}: ")));
        assert!(last.is_some_and(|line| line.ends_with("checks passed")), "{family:?}: {text}");
    }
}

/// Sources of the test of data accesses.
const CONFORMANCE: [&str; 5] =
    ["conformance.c", "conformance_shared.c", "cases.c", "forms.c", "shape.c"];

#[test]
fn every_access_moves_the_bytes_of_its_typemaps() {
    check(&FAMILIES, "conformance", &CONFORMANCE, &[]);
}

#[test]
fn views_are_accepted_as_other_libraries_accept_them() {
    // All methods with one of them: ranks of MPICH that wait take the processors from others.
    let sources = ["views.c", "forms.c", "shape.c"];
    check(&[Family::Mpich], "views", &sources, &["-x", "hints"]);
    check(&[Family::OpenMpi], "views", &sources, &[]);
}

/// The test of layouts runs without servers, against a record of what it would ask of the library.
#[test]
fn layouts_have_the_typemaps_of_random_datatypes() {
    let folder = tempfile::tempdir().unwrap();
    let include = |path: &str| format!("-I{}", root().join(path).display());
    let flags = ["crates/c-api/include", "mpi/src", "mpi/tests"].map(include);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut sources = Vec::new();
    for (part, start) in [("mpi/tests", "datatype"), ("mpi/src/datatype", "")] {
        for entry in std::fs::read_dir(root().join(part)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with(start) && name.ends_with(".c") {
                sources.push(path);
            }
        }
    }
    for family in FAMILIES {
        let program = folder.path().join(format!("datatype.{}", family.name()));
        family.compile_all(&sources, &program, &flags);
        let mut command = family.mpiexec(1);
        command.arg(program);
        let text = done(command);
        assert!(text.contains("datatype: ") && text.contains("checks passed"), "{text}");
    }
}

#[test]
fn requests_of_files_and_of_messages_are_waited_for_together() {
    check(&FAMILIES, "requests", &["requests.c"], &[]);
}

#[test]
fn ranks_select_records() {
    let servers = Servers::start();
    let (include, lib) = (prefix().join("include"), prefix().join("lib"));
    let flags = [
        format!("-I{}", include.display()),
        format!("-L{}", lib.display()),
        format!("-Wl,-rpath,{}", lib.display()),
        "-lunisono".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for family in FAMILIES {
        let name = format!("unisono://records.{}", family.name());
        let text = servers.run_with(family, 3, "records.c", &flags, &[&name]);
        let last = text.lines().find(|line| line.starts_with("records: "));
        assert!(last.is_some_and(|line| line.ends_with("checks passed")), "{family:?}: {text}");
    }
}

#[test]
fn modes_sizes_and_error_handlers_are_those_of_the_standard() {
    check(&FAMILIES, "modes", &["modes.c"], &[]);
}

#[test]
fn a_deleted_file_keeps_its_data_until_its_last_close() {
    check(&FAMILIES, "deleted", &["deleted.c"], &[]);
}

#[test]
fn bad_input_gets_the_right_class_of_error() {
    check(&FAMILIES, "bad_input", &["bad_input.c"], &[]);
}

#[test]
fn names_mean_what_they_mean_to_the_file_system() {
    check(&FAMILIES, "names", &["names.c"], &[]);
}

#[test]
fn the_text_of_an_error_has_its_cause() {
    check(&FAMILIES, "causes", &["causes.c"], &[]);
    check(&Family::OF_PYPI, "causes", &["causes.c"], &[]);
}

#[test]
fn error_handlers_of_files_are_called_in_all_languages() {
    let servers = Servers::start();
    for family in FAMILIES {
        // The bindings for C++ are a library of their own.
        let cxx: &[&str] = if family == Family::OpenMpi { &["-lmpi_cxx"] } else { &[] };
        for (source, flags) in
            [("handlers_mpi.f90", &[][..]), ("handlers_f08.f90", &[]), ("handlers_cxx.cpp", cxx)]
        {
            let name = source.split('.').next().unwrap();
            let text = servers.run_with(family, 2, source, flags, &[]);
            assert!(text.contains(&format!("{name}: passed")), "{family:?}: {text}");
        }
    }
    let text = servers.run(Family::Mpich5, 2, "handlers_state.c", &[]);
    assert!(text.contains("handlers_state: passed"), "{text}");
}

/// Open MPI has sessions since its release 5.
#[test]
fn programs_with_sessions_only_use_files() {
    let servers = Servers::start();
    for family in [Family::Mpich, Family::OpenMpi5, Family::Mpich5, Family::Abi] {
        let text = servers.run(family, 3, "sessions.c", &["unisono://sessions"]);
        assert!(text.contains("sessions: passed by 3"), "{family:?}: {text}");
    }
}

#[test]
fn libraries_from_pypi_and_the_standard_interface_are_served_too() {
    check(&Family::OF_PYPI, "conformance", &CONFORMANCE, &["-n", "60"]);
    check(&Family::OF_PYPI, "requests", &["requests.c"], &[]);
}

#[test]
fn programs_that_are_linked_with_the_interposer_need_no_preloading() {
    let servers = Servers::start();
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--libs", "unisono-mpi"]);
    pkg_config.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    let flags = done(pkg_config);
    let flags: Vec<&str> = flags.split_whitespace().collect();
    for family in FAMILIES {
        let program = servers.path(&format!("linked.{}", family.name()));
        family.compile(&root().join("mpi/tests/programs/requests.c"), &program, &flags);
        let mut command = servers.mpiexec_linked(family, 3);
        command.arg(program).arg("unisono://linked");
        assert!(done(command).contains("checks passed"), "{family:?}");
    }
}

#[test]
fn programs_in_cxx_and_of_all_three_interfaces_of_fortran() {
    let servers = Servers::start();
    for family in FAMILIES {
        for source in ["cxx.cpp", "mpi_f08.f90", "use_mpi.f90", "mpif_h.f"] {
            let name = source.split('.').next().unwrap();
            let text = servers.run(family, 2, source, &[]);
            assert!(text.contains(&format!("{name}: passed")), "{family:?}: {text}");
        }
    }
}

#[test]
fn parallel_hdf5() {
    let servers = Servers::start();
    for family in FAMILIES {
        let flags = hdf5_flags(family);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let text = servers.run_with(family, 4, "hdf5.c", &flags, &[]);
        assert!(text.contains("hdf5: passed"), "{family:?}: {text}");
    }
}

/// Debian builds PnetCDF and h5py for its default MPI.
#[test]
fn pnetcdf_and_h5py() {
    let servers = Servers::start();
    let text = servers.run_with(Family::OpenMpi, 4, "pnetcdf.c", &["-lpnetcdf"], &[]);
    assert!(text.contains("pnetcdf: passed"), "{text}");
    let mut h5py = servers.mpiexec(Family::OpenMpi, 4);
    h5py.arg("/usr/bin/python3").arg(root().join("mpi/tests/programs/h5py_array.py"));
    let text = done(h5py);
    assert!(text.contains("h5py: passed"), "{text}");
}

#[test]
fn a_rank_that_does_not_join_is_named_and_the_program_ends() {
    let servers = Servers::start();
    // A program that was killed while it waited has left the mark of its rank 2.
    let mark = ".unisono/waiting/MPI_File_open-4-missing";
    done(servers.unisono(&["mkdir", "-p", mark]));
    let any_file = root().join("Cargo.toml");
    done(servers.unisono(&["cp", any_file.to_str().unwrap(), &format!("unisono://{mark}/2")]));
    std::thread::sleep(std::time::Duration::from_secs(3));
    for family in FAMILIES {
        let program = servers.path(&format!("missing_rank.{}", family.name()));
        family.compile(&root().join("mpi/tests/programs/missing_rank.c"), &program, &[]);
        for (call, function) in [
            ("open", "MPI_File_open"),
            ("write", "MPI_File_write_at_all"),
            ("size", "MPI_File_set_size"),
        ] {
            let mut command = servers.mpiexec(family, 4);
            command.arg(&program).arg(call).env("UNISONO_TIMEOUT", "4");
            let (code, text) = ended(command);
            assert_eq!(code, Some(5), "{family:?} {call}: {text}");
            assert!(text.contains(&format!("error: {function} failed")), "{family:?}: {text}");
            assert!(text.contains("cause: rank 2 "), "{family:?} {call}: {text}");
            assert_eq!(text.matches("error: ").count(), 1, "{family:?} {call}: {text}");
        }
    }
}
