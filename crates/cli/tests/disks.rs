//! Proves: a disk that is full or gone fails what needs it, with its name and a code of its own,
//! and nothing else.

use crate::support;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use support::{DONE, FAILED, NO_SERVER, NO_SPACE, Place, USAGE, bytes, run, unisono};

/// Proves on a running instance, none of whose servers has room for 24 MiB: what does not fit is
/// refused with code 6 and leaves no file; what was there before, and what fits, is unharmed.
fn assert_full_disks_are_survived(place: &Place) {
    let small = bytes(300_000);
    let (kept, large) = (place.file("kept", &small), place.file("large", &bytes(64 << 20)));
    let put = |local: &OsStr, name: &str| place.run(&["put".as_ref(), local, name.as_ref()]);
    put(kept.as_ref(), "kept").done();
    for _ in 0..2 {
        put(large.as_ref(), "large").refused(NO_SPACE, &["large", "no space", "server "]);
        assert_eq!(place.files(), ["kept"]);
    }
    for pattern in ["wb", "rb"] {
        for strategy in ["caching", "two-phase", "disk-directed", "global-barrier", "node-grouping"]
        {
            let bench = ["bench", "--size", "64MiB", "--clients", "2", "--repeat", "1"];
            let words = [&bench[..], &["--json", "--pattern", pattern, "--strategy", strategy]];
            place.run(&words.concat()).refused(NO_SPACE, &[pattern, strategy, "no space"]);
            assert_eq!(place.files(), ["kept"], "{pattern} by {strategy}");
        }
    }
    assert_eq!(place.run(&["get", "kept", "-"]).done().output, small);
    put(kept.as_ref(), "again").done();
    assert_eq!(place.run(&["get", "again", "-"]).done().output, small);
    place.run(&["stop"]).done();
}

#[test]
fn memory_that_is_used_up_is_a_full_disk() {
    let place = Place::new();
    place.start(&["--servers", "2", "--memory", "20MiB"]);
    assert_full_disks_are_survived(&place);
    place.run(&["stop", "--discard"]).done();
}

#[test]
fn files_as_large_as_the_system_permits_are_a_full_disk() {
    // Proves: servers that may not write large files (`ulimit -f`) behave like those of a full
    // disk. Needs no rights, so it runs everywhere.
    let place = Place::new();
    let limited = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    let start = place.command(&["start", "--servers", "2"]);
    let mut command = Command::new("sh");
    command.env("UNISONO_ALLOW_ROOT", "true");
    // In blocks of 512 bytes: 24 MiB.
    command.args(["-c", limited, "sh", "49152"]).arg(start.get_program()).args(start.get_args());
    run(command).done();
    assert_full_disks_are_survived(&place);
}

#[test]
fn a_full_file_system_is_survived() {
    // Proves: as above, on a file system of 24 MiB for each server. It is mounted where only the
    // servers see it, and so goes with them. Skipped where the system does not let a user mount.
    let place = Place::new();
    let mount = "for one in a b; do mkdir -p \"$0/$one\" && \
                 mount -t tmpfs -o size=24m,mode=700 tmpfs \"$0/$one\" || exit 77; done; \
                 exec \"$@\"";
    let disks = place.path("disks");
    let mut start = place.command(&["start", "--servers", "2"]);
    start.arg("--data").arg(disks.join("a")).arg("--data").arg(disks.join("b"));
    let mut command = Command::new("unshare");
    command.env("UNISONO_ALLOW_ROOT", "true");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", mount]).arg(&disks);
    command.arg(start.get_program()).args(start.get_args());
    let is_permitted = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", mount])
        .args([disks.as_os_str(), "true".as_ref()])
        .output()
        .is_ok_and(|ended| ended.status.code() == Some(DONE));
    if !is_permitted {
        println!("skipped: this system does not let this user mount a file system");
        return;
    }
    run(command).done();
    assert_full_disks_are_survived(&place);
}

#[test]
fn a_full_file_system_may_be_full_at_the_start() {
    // Proves: where not even a name has room any more, a put is refused with code 6; once there is
    // room again, everything works without a restart.
    let place = Place::new();
    let mount = "mkdir -p \"$0\" && mount -t tmpfs -o size=16m,mode=700 tmpfs \"$0\" || exit 77; \
         exec \"$@\"";
    let disk = place.path("disk");
    let enter = || {
        let mut command = Command::new("unshare");
        command.env("UNISONO_ALLOW_ROOT", "true");
        command.env("UNISONO_ALLOW_ROOT", "true");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", mount]).arg(&disk);
        command
    };
    if !enter().arg("true").output().is_ok_and(|ended| ended.status.success()) {
        println!("skipped: this system does not let this user mount a file system");
        return;
    }
    let mut start = place.command(&["start", "--servers", "1"]);
    start.arg("--data").arg(&disk);
    let mut command = enter();
    command.arg(start.get_program()).args(start.get_args());
    run(command).done();
    let small = bytes(5000);
    let kept = place.file("kept", &small);
    place.run(&["put".as_ref(), kept.as_os_str()]).done();
    let server = place.server_pids()[0];
    let inside = |name: &str| format!("/proc/{server}/root{}/{name}", disk.display());
    let filler = inside("filler");
    let fill = || {
        let mut file = OpenOptions::new().create(true).append(true).open(&filler).unwrap();
        let filled = file.write_all(&vec![1; 32 << 20]).expect_err("the disk is small");
        assert_eq!(filled.kind(), std::io::ErrorKind::StorageFull);
    };
    // More than what a full file system of this kind may still find.
    let large = place.file("large", &bytes(4 << 20));
    let put = |local: &OsStr, name: &str| place.run(&["put".as_ref(), local, name.as_ref()]);
    for _ in 0..3 {
        fill();
        put(large.as_ref(), "refused").refused(NO_SPACE, &["refused", "space"]);
        assert_eq!(place.files(), ["kept"]);
    }
    assert_eq!(place.run(&["get", "kept", "-"]).done().output, small);
    std::fs::remove_file(&filler).expect("the file is there");
    put(large.as_ref(), "again").done();
    place.run(&["rm", "kept"]).done();
    assert_eq!(place.files(), ["again"]);
}

#[test]
fn a_limit_of_file_sizes_is_missing_space() {
    // Proves: where the system ends a process that writes beyond its limit of a file's size, a
    // server reports missing space instead, and serves what fits.
    let place = Place::new();
    let start = place.command(&["start", "--servers", "1"]);
    let mut limited = Command::new("sh");
    // In units of 512 bytes: 8 MiB.
    limited.env("UNISONO_ALLOW_ROOT", "true");
    limited.args(["-c", "ulimit -f 16384 && exec \"$@\"", "sh"]);
    run({
        limited.arg(start.get_program()).args(start.get_args());
        limited
    })
    .done();
    let server = place.server_pids();
    let (small, large) = (bytes(5000), place.file("large", &bytes(20 << 20)));
    let kept = place.file("kept", &small);
    place.run(&["put".as_ref(), kept.as_os_str()]).done();
    for _ in 0..2 {
        place.run(&["put".as_ref(), large.as_os_str()]).refused(NO_SPACE, &["large", "space"]);
        assert_eq!(place.files(), ["kept"]);
    }
    assert_eq!(place.run(&["get", "kept", "-"]).done().output, small);
    assert_eq!(place.server_pids(), server);
    assert!(support::is_running(server[0]));
}

#[test]
fn a_data_directory_that_vanishes_fails_alone() {
    // Proves: when the directory of server 1 is moved away, what needs it fails with its name and
    // code 1, in every strategy, and files on the other disk can be read; once it is back,
    // everything is.
    let place = Place::with_servers(2);
    let (one, many) = (bytes(70_000), bytes(3 << 20));
    let (small, large) = (place.file("small", &one), place.file("large", &many));
    let put = |local: &OsStr, name: &str| place.run(&["put".as_ref(), local, name.as_ref()]);
    for wrong in [&["--block", "0"][..], &["--pool", "1,1"], &["--replacement", "custom:none"]] {
        let words = [&["layout", "set", "/"], wrong].concat();
        place.run(&words).refused(USAGE, &["cannot set the defaults"]);
    }
    place.run(&["layout", "set", "/", "--pool", "0"]).done();
    put(small.as_ref(), "small").done();
    place.run(&["layout", "set", "/"]).done();
    put(large.as_ref(), "large").done();
    let directory = place.instance().join("data/server-1");
    let (away, named) = (place.path("away"), directory.display().to_string());
    std::fs::rename(&directory, &away).expect("a directory can be moved");
    place.run(&["get", "large", "-"]).failed(FAILED, &["large", &named]);
    put(large.as_ref(), "new").refused(FAILED, &["new", &named]);
    for strategy in ["caching", "two-phase", "disk-directed", "global-barrier", "node-grouping"] {
        for pattern in ["rb", "wcc"] {
            let bench = ["bench", "--size", "4MiB", "--clients", "2", "--repeat", "1", "--json"];
            let words = [&bench[..], &["--pattern", pattern, "--strategy", strategy]].concat();
            place.run(&words).refused(FAILED, &[strategy, &named]);
        }
    }
    place.run(&["status"]).failed(NO_SERVER, &["server 1", &named]);
    assert_eq!(place.run(&["get", "small", "-"]).done().output, one);
    std::fs::rename(&away, &directory).expect("a directory can be moved");
    assert_eq!(place.run(&["get", "large", "-"]).done().output, many);
    assert!(place.status().iter().all(|server| server["running"] == true));
    // What could not be removed then can be now.
    for name in place.files() {
        place.run(&["rm", &name]).done();
    }
    put(large.as_ref(), "large").done();
}

#[test]
fn a_directory_that_nobody_may_write_is_refused() {
    // Proves: a data directory that is a file, or lies below one, is refused with code 2.
    let place = Place::new();
    let file = place.file("file", b"x");
    for data in [file.clone(), file.join("below")] {
        let mut start = unisono(&["start", "--servers", "1", "--instance"]);
        start.arg(place.instance()).arg("--data").arg(&data);
        run(start).refused(support::USAGE, &[&data.display().to_string()]);
    }
}
