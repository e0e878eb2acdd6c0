//! Proves: `--server-cores` pins every thread of every server to its part of the list, here, on
//! hosts and in jobs, also of servers that are started again; cores that cannot be used are
//! refused; and the report of a run says what processor time servers took.

use crate::hosts::Site;
use crate::mirrored::until_all_run;
use crate::support;
use interface::CoreList;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use support::{Place, USAGE, gone, processes_naming, run, signal, unisono};

/// Cores of a thread, as the system shows them.
fn cores_of(status: &Path) -> CoreList {
    let status = std::fs::read_to_string(status).expect("the thread is there");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("the system tells").trim().parse().expect("it is a list")
}

/// Cores that this test may use.
fn allowed() -> CoreList {
    cores_of(Path::new("/proc/thread-self/status"))
}

/// Proves that all threads of each server are where its part of the list is.
#[track_caller]
fn assert_pinned(place: &Place, servers: &[CoreList]) {
    let pids = place.server_pids();
    assert_eq!(pids.len(), servers.len());
    for (pid, cores) in pids.iter().zip(servers) {
        let mut threads = 0;
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs") {
            let thread = thread.expect("it runs").path();
            assert_eq!(&cores_of(&thread.join("status")), cores, "{thread:?}");
            threads += 1;
        }
        assert!(threads > 1, "a server has threads for its disks");
    }
}

fn parts(list: &CoreList, servers: u32) -> Vec<CoreList> {
    (0..servers).map(|server| list.part(server, servers)).collect()
}

#[test]
fn servers_stay_on_their_cores() {
    let (place, allowed) = (Place::new(), allowed());
    let list = allowed.to_string();
    let options = ["--servers", "3", "--restart=60", "--server-cores", &list];
    let started = place.start(&options);
    let expected = parts(&allowed, 3);
    for (server, cores) in expected.iter().enumerate() {
        assert_eq!(started["servers"][server]["cores"], cores.to_string());
        assert_eq!(place.status()[server]["cores"], cores.to_string());
    }
    assert_pinned(&place, &expected);
    let text = place.run(&["status"]).done().text().to_owned();
    assert!(text.contains(&format!("  on cores {}", expected[2])), "{text}");
    for _ in 0..2 {
        let pid = place.server_pids()[1];
        signal(pid, Signal::KILL);
        gone(pid);
        until_all_run(&place);
        assert_ne!(place.server_pids()[1], pid);
        assert_pinned(&place, &expected);
    }
    place.run(&["stop"]).done();
    let last = allowed.part(allowed.cores().len() as u32 - 1, allowed.cores().len() as u32);
    place.start(&["--servers", "3", "--server-cores", &last.to_string()]);
    assert_pinned(&place, &[last.clone(), last.clone(), last]);
    place.run(&["stop"]).done();
    let started = place.start(&["--servers", "3"]);
    assert_eq!(started["servers"][0].get("cores"), None);
    assert_pinned(&place, &[allowed.clone(), allowed.clone(), allowed]);
}

#[test]
fn cores_that_cannot_be_used_are_refused() {
    let place = Place::new();
    let may_use = format!("may use cores {} only", allowed());
    for (list, words) in [
        ("", ["--server-cores", "empty"]),
        ("3-1", ["3-1 is reversed", "3-1"]),
        ("0,0", ["core 0 is named twice", "0,0"]),
        ("1024", ["the largest number is 1023", "1024"]),
        ("all", ["\"all\" is no core", "0-3,8"]),
        ("1022-1023", ["cannot run servers on cores 1022-1023", &may_use]),
    ] {
        let option = format!("--server-cores={list}");
        place.run(&["start", &option]).refused(USAGE, &words);
        run(unisono(&["bench", "--size", "1MiB", &option])).refused(USAGE, &words);
        let option = ["run", "--no-preload", "--server-cores", list, "--", "true"];
        place.run(&option).refused(USAGE, &words);
    }
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
    assert!(!place.instance().join("instance.json").exists());
}

#[test]
fn servers_on_hosts_stay_on_their_cores() {
    let (site, allowed) = (Site::becoming(), allowed());
    let list = allowed.to_string();
    site.start(&["--servers-per-host", "2", "--server-cores", &list]).done();
    let [first, second] = &parts(&allowed, 2)[..] else { panic!("two servers on each host") };
    // Servers are dealt to the hosts in rounds.
    let expected = [first, first, second, second].map(CoreList::clone);
    assert_pinned(site.place(), &expected);
    site.place().run(&["stop"]).done();
    let may_use = format!("may use cores {allowed} only");
    let refused = site.start(&["--server-cores", "1023"]);
    refused.refused(USAGE, &["cannot run servers on core 1023 on 127.0.0.", &may_use]);
    site.assert_nothing_left();
}

#[test]
fn servers_of_a_slurm_job_stay_on_their_cores() {
    // Proves: what srun is told leaves the binding to the server, which then pins itself.
    let (place, allowed) = (Place::new(), allowed());
    std::fs::create_dir(place.path("scratch")).expect("a test must have room");
    place.script(
        "srun",
        "#!/bin/sh\ncase \"$*\" in *--cpu-bind=none*) ;; *) exit 9;; esac\n\
         while [ \"${1#--}\" != \"$1\" ]; do shift; done\n\
         cd / && exec env -i SLURM_TMPDIR=%/scratch \"$@\"\n",
    );
    let first = allowed.part(0, allowed.cores().len() as u32);
    let mut command = place.command(&["start", "--server-cores", &first.to_string()]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", place.path("").display()));
    command.env("SLURM_JOB_ID", "7").env("SLURM_JOB_NODELIST", "127.0.0.[2-3]");
    run(command).done();
    assert_pinned(&place, &[first.clone(), first]);
    place.run(&["stop"]).done();
}

#[test]
fn a_run_reports_the_processor_time_of_its_servers() {
    let place = Place::new();
    let input = place.file("input", &support::bytes(8 << 20));
    let write = "i=0; while [ $i -lt 4 ]; do $UNISONO put input f$i >/dev/null; i=$((i+1)); done";
    let ended = |options: &[&str]| {
        let program = ["--servers", "2", "--discard", "--", "sh", "-c", write];
        let mut command = unisono(&[&["run", "--no-preload"], options, &program].concat());
        command.current_dir(input.parent().expect("it has one"));
        command.env("UNISONO", env!("CARGO_BIN_EXE_unisono"));
        run(command).done()
    };
    let anywhere = ended(&["--json"]).json();
    let used = &anywhere["servers_processor"];
    let seconds = |part: &str| used[part].as_f64().expect("it is known");
    assert!(seconds("user_seconds") + seconds("system_seconds") > 0.0, "{used}");
    assert_eq!((&used["cores"], &used["share"]), (&Value::Null, &Value::Null));
    let first = allowed().part(0, allowed().cores().len() as u32).to_string();
    let pinned = ended(&["--json", "--server-cores", &first]).json();
    let used = &pinned["servers_processor"];
    assert_eq!(used["cores"], 1);
    let share = used["share"].as_f64().expect("servers are pinned");
    assert!(share > 0.0 && share <= 1.05, "{used}");
    let text = ended(&["--server-cores", &first]).text().to_owned();
    assert!(text.contains(" % of 1 core: "), "{text}");
    assert!(text.contains(" user, ") && text.contains(" system"), "{text}");
}
