//! Proves: C programs that are compiled with all warnings and with the sanitizers of gcc use every
//! call of the library, alone, as four processes and as eight threads; a forked child and bad
//! arguments get errors.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use interface::KINDS;
use std::process::Command;
use support::{Sanitizer, Servers, done, package};

/// Headers of the library: that of programs, and that of the recorder.
const HEADERS: [&str; 2] = ["include/unisono.h", "include/unisono_trace.h"];

#[test]
fn each_call_does_what_its_comment_says() {
    Servers::start().run("calls", &[]);
}

#[test]
fn four_processes_write_in_one_distribution_and_read_in_another() {
    Servers::start().run("group", &[]);
}

#[test]
fn four_processes_share_a_counter_and_locks() {
    Servers::start().run("locks", &[]);
}

#[test]
fn eight_threads_use_one_connection() {
    Servers::start().run("threads", &[]);
}

#[test]
fn a_forked_child_is_refused_and_connects_by_itself() {
    Servers::start().run_with(Sanitizer::Undefined, "forked", &[]);
}

#[test]
fn a_child_forked_at_rest_has_no_error_of_addresses() {
    // The I/O thread allocates nothing then: see `Sanitizer`.
    let at_rest = [("UNISONO_AT_REST", "1"), ("ASAN_OPTIONS", "detect_leaks=0")];
    Servers::start().run("forked", &at_rest);
}

#[test]
fn gathered_writes_outlive_their_process() {
    Servers::start().run_with(Sanitizer::Undefined, "gathered", &[]);
}

#[test]
fn records_are_selected() {
    Servers::start().run("records", &[]);
}

#[test]
fn servers_that_end_are_an_error() {
    let end = format!("{} stop", support::built().join("unisono").display());
    Servers::start().run("ended", &[("UNISONO_END", &end), ("UNISONO_ALLOW_ROOT", "true")]);
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    Servers::start().run("arguments", &[]);
}

#[test]
fn hints_are_in_force_or_rejected() {
    Servers::start().run("hints", &[]);
}

#[test]
fn the_table_of_kinds_is_that_of_the_command() {
    let shown = Servers::start().run("kinds", &[]);
    let row = |row: &interface::KindRow| {
        let (number, code) = (row.kind as u32, row.code as u8);
        format!("{number} {} {} {code} {}\n", row.name, row.errno, row.mpi_class)
    };
    assert_eq!(shown, KINDS.iter().map(row).collect::<String>());
    // The header has a number for each, and for no other.
    let header = support::text("include/unisono.h");
    let named = |row: &interface::KindRow| {
        let name = row.name.to_uppercase().replace('-', "_");
        let constant = format!("UNISONO_ERR_{name} = {}", row.kind as u32);
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
        let found = header.split_once(&constant).is_some_and(|(_, rest)| ends(rest));
        assert!(found, "{constant}");
    };
    KINDS.iter().for_each(named);
    assert_eq!(
        header.matches("UNISONO_ERR_").count() - header.matches("UNISONO_ERR_...").count(),
        KINDS.len()
    );
}

#[test]
fn the_header_is_clean_in_c_and_in_cpp() {
    let languages = [
        ("gcc", "c", "c11"),
        ("gcc", "c", "gnu17"),
        ("g++", "c++", "c++11"),
        ("g++", "c++", "c++20"),
    ];
    for (compiler, language, standard) in languages {
        let mut check = Command::new(compiler);
        check.args(["-x", language, &format!("-std={standard}"), "-Wall", "-Wextra", "-Werror"]);
        check.args(["-pedantic", "-Wconversion", "-fsyntax-only"]);
        check.arg("-I").arg(package().join("include"));
        check.args(HEADERS.map(|header| package().join(header)));
        match check.output() {
            // Whether there is a compiler for C++ is not what this proves.
            Err(_) if compiler == "g++" => {}
            _ => drop(done(check)),
        }
    }
}
