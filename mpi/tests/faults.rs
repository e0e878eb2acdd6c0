//! Proves: faults in the middle of collective writes give every process the right class of error, hang
//! no program, and lose nothing that was stored before.

use mpi::{Family, Servers, done, ended, root};
use std::process::Command;
use std::time::{Duration, Instant};

/// Returns the command that runs the program of faults with 4 ranks.
fn program(servers: &Servers, family: Family, fault: &str) -> Command {
    let program = servers.path(&format!("faults.{}", family.name()));
    family.compile(&root().join("mpi/tests/programs/faults.c"), &program, &[]);
    let mut command = servers.mpiexec(family, 4);
    command.arg(program).args(["unisono://faults", "-c", fault]);
    command.env("UNISONO_TIMEOUT", "3");
    command
}

/// Proves that the file that the program has stored before the fault is unharmed.
#[track_caller]
fn assert_kept(servers: &Servers) {
    let stored: Vec<u8> = (1000..1004_i32).flat_map(i32::to_ne_bytes).collect();
    let copy = servers.path("copy");
    done(servers.unisono(&["get", "kept", copy.to_str().unwrap()]));
    assert!(std::fs::read(&copy).unwrap() == stored);
    std::fs::remove_file(copy).unwrap();
}

#[test]
fn a_full_disk_is_an_error_of_every_rank_and_harms_no_other_file() {
    let servers = Servers::start_limited(24 << 20);
    for family in Family::OF_DEBIAN {
        let text = done(program(&servers, family, "full"));
        assert!(text.contains("checks passed"), "{family:?}: {text}");
        for words in ["error: ", "cause: ", "no space", "help: "] {
            assert!(text.contains(words), "{family:?}, {words}: {text}");
        }
    }
}

#[test]
fn a_killed_server_is_an_error_of_every_rank_and_stored_data_remains() {
    for family in Family::OF_DEBIAN {
        let servers = Servers::start();
        let mut command = program(&servers, family, "killed");
        command.args(["-p", &servers.processes()[1].to_string()]);
        let text = done(command);
        assert!(text.contains("checks passed"), "{family:?}: {text}");
        assert!(text.contains("server 1"), "{family:?}: {text}");
        done(servers.unisono(&["stop"]));
        servers.start_again();
        assert_kept(&servers);
    }
}

#[test]
fn a_server_that_stands_still_is_an_error_and_no_rank_is_called_missing() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        let mut command = program(&servers, family, "stopped");
        command.args(["-p", &servers.processes()[1].to_string()]);
        // So that nothing is written behind, which the close would have to wait for.
        command.env("UNISONO_HINTS", "unisono_sync=true");
        let text = done(command);
        assert!(text.contains("checks passed"), "{family:?}: {text}");
        assert!(!text.contains("has not called"), "{family:?}: {text}");
        assert_kept(&servers);
        done(servers.unisono(&["rm", "kept", "faults"]));
    }
}

#[test]
fn a_server_that_stands_still_is_named_with_every_method() {
    // Proves: also with methods in which ranks exchange data with one another, every rank gets an
    // error that names the server, and no rank is called missing.
    let servers = Servers::start();
    let families = Family::OF_DEBIAN.iter().cycle();
    let methods = ["disk-directed", "two-phase", "independent", "global-barrier", "node-grouping"];
    for (method, family) in methods.into_iter().zip(families) {
        let mut command = program(&servers, *family, "stopped");
        command.args(["-p", &servers.processes()[1].to_string()]);
        command.args(["-x", "through"]);
        command.env("UNISONO_HINTS", format!("unisono_method={method}"));
        let text = done(command);
        assert!(text.contains("checks passed"), "{method}, {family:?}: {text}");
        assert!(text.contains("server 1"), "{method}, {family:?}: {text}");
        for words in ["has not called", "has not joined", "client "] {
            assert!(!text.contains(words), "{method}, {family:?}, {words}: {text}");
        }
        assert_kept(&servers);
        done(servers.unisono(&["rm", "kept", "faults"]));
    }
}

#[test]
fn a_rank_that_stands_still_in_a_transfer_is_named() {
    // Proves: when rank 2 stops in the midst of a loop of collective calls, each other rank gets an
    // error within the time-out and 10 s that names rank 2, and no other rank and no server, with every
    // method by which ranks wait for one another.
    let mpich = [("disk-directed", "write"), ("two-phase", "write"), ("node-grouping", "write")];
    let openmpi = [("two-phase", "read"), ("global-barrier", "write"), ("disk-directed", "read")];
    // Most of their time passes with waiting.
    std::thread::scope(|scope| {
        for (of_mpich, of_openmpi) in mpich.into_iter().zip(openmpi) {
            scope.spawn(move || {
                others_name_rank_2(Family::Mpich, of_mpich);
                others_name_rank_2(Family::OpenMpi, of_openmpi);
            });
        }
    });
}

#[track_caller]
fn others_name_rank_2(family: Family, (method, direction): (&str, &str)) {
    let servers = Servers::start();
    let program = servers.path(&format!("stopped_rank.{}", family.name()));
    family.compile(&root().join("mpi/tests/programs/stopped_rank.c"), &program, &[]);
    let mut command = servers.mpiexec(family, 4);
    command.arg(program).arg(direction).env("UNISONO_TIMEOUT", "4");
    command.env("UNISONO_HINTS", format!("unisono_method={method}"));
    let (_, text) = ended(command);
    // As the program ends, rank 2 may go on for a moment.
    let is_other = |line: &&str| line.starts_with("rank ") && !line.starts_with("rank 2 after");
    let told: Vec<&str> = text.lines().filter(is_other).collect();
    assert_eq!(told.len(), 3, "{method}, {direction}, {family:?}: {text}");
    for line in told {
        let seconds = line.split_whitespace().nth(3).and_then(|word| word.parse().ok());
        // Before the stopped rank is killed.
        assert!(seconds.is_some_and(|s: f64| s < 14.5), "{method}, {direction}: {line}");
        let is_named = ["rank 2", "client 2"].iter().any(|name| line.contains(name));
        assert!(is_named, "{method}, {direction}, {family:?}: {line}");
        let (own, cause) = line.split_once(" after ").unwrap();
        let others = ["rank 0", "rank 1", "rank 3"].into_iter().filter(|rank| *rank != own);
        let others = others.chain(["client 0", "client 1", "client 3", "server 0", "server 1"]);
        for other in others {
            assert!(!cause.contains(other), "{method}, {direction}, {family:?}: {line}");
        }
    }
}

#[test]
fn a_program_goes_on_when_servers_are_killed_and_lose_their_data() {
    let options = ["--servers", "3", "--protect", "mirror", "--restart", "--refill"];
    for family in Family::OF_DEBIAN {
        let servers = Servers::start_as(&std::env::temp_dir(), &options);
        let program = servers.path(&format!("lost_servers.{}", family.name()));
        family.compile(&root().join("mpi/tests/programs/lost_servers.c"), &program, &[]);
        let mut command = servers.mpiexec(family, 3);
        command.arg(program).arg("4");
        let text = std::thread::scope(|scope| {
            let program = scope.spawn(|| done(command));
            for (server, is_wiped) in [(2, true), (1, false), (0, true)] {
                std::thread::sleep(Duration::from_millis(500));
                lose(&servers, server, is_wiped);
            }
            program.join().unwrap()
        });
        let again = text.split_whitespace().next().and_then(|word| word.parse::<u32>().ok());
        assert!(text.contains("checks passed"), "{family:?}: {text}");
        assert!(again.is_some_and(|rounds| rounds > 3), "{family:?}: {text}");
        done(servers.unisono(&["stop"]));
    }
}

/// Kills a server, which is started again, and removes its data. Waits until it has everything.
fn lose(servers: &Servers, server: usize, is_wiped: bool) {
    let pid = servers.processes()[server].to_string();
    // So that it is not started again before its data is gone.
    done(kill("-STOP", &pid));
    let data = servers.path("instance").join(format!("data/server-{server}"));
    if is_wiped {
        std::fs::remove_dir_all(&data).unwrap();
    }
    done(kill("-KILL", &pid));
    let begun = Instant::now();
    while !servers.are_whole() {
        assert!(begun.elapsed() < Duration::from_secs(60), "server {server} is filled again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn kill(signal: &str, pid: &str) -> Command {
    let mut command = Command::new("kill");
    command.args([signal, pid]);
    command
}

#[test]
fn a_name_without_an_instance_is_explained_once() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        let mut command = program(&servers, family, "absent");
        command.env("UNISONO_INSTANCE", servers.path("nowhere"));
        let text = done(command);
        assert!(text.contains("checks passed"), "{family:?}: {text}");
        for words in ["error: MPI_File_open failed", "cause: ", "help:  "] {
            assert_eq!(text.matches(words).count(), 1, "{family:?}, {words:?}: {text}");
        }
    }
}

#[test]
fn processes_that_another_mpi_library_has_started_are_refused() {
    let servers = Servers::start();
    for (started_by, family) in [(Family::Mpich, Family::OpenMpi), (Family::OpenMpi, Family::Mpich)]
    {
        let program = servers.path(&format!("missing_rank.{}", family.name()));
        family.compile(&root().join("mpi/tests/programs/missing_rank.c"), &program, &[]);
        let mut command = servers.mpiexec(started_by, 3);
        command.arg(program);
        let (_, text) = ended(command);
        for words in ["mpiexec started 3 processes", "mpiexec of its own MPI library"] {
            assert_eq!(text.matches(words).count(), 3, "{family:?}: {text}");
        }
        assert!(done(servers.unisono(&["ls"])).is_empty(), "{family:?}");
    }
}

#[test]
fn a_rank_that_dies_ends_the_program_and_harms_no_file() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        let (code, text) = ended(program(&servers, family, "died"));
        assert!(!matches!(code, Some(0 | 124)), "{family:?}: {code:?} {text}");
        let source = servers.path("source");
        std::fs::write(&source, [7_u8; 100_000]).unwrap();
        done(servers.unisono(&["rm", "faults"]));
        done(servers.unisono(&["put", source.to_str().unwrap(), "faults"]));
        done(servers.unisono(&["cat", "faults"]));
        done(servers.unisono(&["rm", "faults"]));
    }
}
