//! Proves: test programs that PnetCDF and HDF5 bring along pass over unisono files, and on ordinary
//! files in place, with both MPI libraries: those that take seconds. `make suites` runs all of them.

use mpi::{built, done, prefix, root};
use std::process::Command;

#[test]
fn tests_of_pnetcdf_and_hdf5_that_take_seconds() {
    run(&[]);
}

#[test]
fn tests_of_pnetcdf_and_hdf5_in_place() {
    run(&["--in-place"]);
}

/// Runs the suites with these options.
#[track_caller]
fn run(options: &[&str]) {
    let mut suites = Command::new(root().join("scripts/suites"));
    suites.arg("--quick").args(options).arg("--prefix").arg(prefix());
    // Built once, whatever the profile.
    suites.arg("--folder").arg(built().parent().unwrap().join("suites"));
    let text = done(suites);
    for (suite, least) in [("pnetcdf", 8), ("hdf5", 1)] {
        for family in ["mpich", "openmpi"] {
            let start = format!("{suite:<10}{family:<10}");
            let row = text.lines().find_map(|line| line.strip_prefix(&start)).expect(&text);
            let numbers: Vec<u32> =
                row.split_whitespace().take(2).map(|word| word.parse().unwrap()).collect();
            assert!(numbers[0] >= least && numbers[1] == 0, "{text}");
        }
    }
}
