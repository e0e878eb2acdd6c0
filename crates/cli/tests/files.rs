//! Proves: real files of awkward sizes come out as they went in, and nothing that goes wrong with
//! one destroys another, here or in the instance.

use crate::support;
use client::{Connection, Instance};
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::{
    Ended, FAILED, INTERRUPTED, Place, Running, USAGE, bytes, entries, signal, until, until_moving,
};

const BLOCK: usize = 64 << 10;

fn put(place: &Place, local: &Path, name: &str) -> Ended {
    let words: [OsString; 5] =
        ["put".into(), "--block".into(), BLOCK.to_string().into(), local.into(), name.into()];
    place.run(&words)
}

fn get(place: &Place, name: &str, local: &Path) -> Ended {
    place.run(&["get".as_ref(), name.as_ref(), local.as_os_str()])
}

#[test]
fn files_come_out_as_they_went_in() {
    // Proves: put, stat, ls, get to a file and to standard output, and rm, for sizes around the
    // edges of blocks and of rounds of all disks.
    let place = Place::new();
    let data = ["a", "b", "c", "d"].map(|disk| place.path(disk).to_str().unwrap().to_owned());
    let mut words = vec!["--servers", "2"];
    data.iter().for_each(|directory| words.extend(["--data", directory]));
    place.start(&words);
    let sizes = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK, 4 * BLOCK + 1, (10 << 20) + 3];
    for size in sizes {
        let content = bytes(size);
        let (local, out) = (place.file("local", &content), place.path("out"));
        let name = format!("dir/of {size} ü");
        put(&place, &local, &name).done();
        let record = place.run(&["stat", "--json", &name]).done().json();
        let known = (&record["schema"], &record["name"], &record["bytes"], &record["block_bytes"]);
        let (size_json, block) = (size.into(), BLOCK.into());
        assert_eq!(known, (&"unisono.stat/1".into(), &(&*name).into(), &size_json, &block));
        // A server for each MiB.
        let servers = size.div_ceil(1 << 20).clamp(1, 2);
        let placed = (&record["servers"], &record["disks_per_server"]);
        assert_eq!(placed, (&servers.into(), &2.into()), "{size} bytes");
        get(&place, &name, &out).done();
        assert!(std::fs::read(&out).unwrap() == content, "{size} bytes to a file");
        let output = place.run(&["get", &name, "-"]).done().output;
        assert!(output == content, "{size} bytes to standard output");
    }
    let listed = place.run(&["ls", "--json", "dir"]).done().json();
    assert_eq!(listed["schema"], "unisono.ls/2");
    assert_eq!(listed["entries"].as_array().unwrap().len(), sizes.len());
    assert_eq!(place.run(&["ls", "dir"]).done().text().lines().count(), sizes.len());
    for name in place.files() {
        let removed = place.run(&["rm", "--json", &name]).done().json();
        assert_eq!(
            (&removed["schema"], &removed["removed"]),
            (&"unisono.rm/2".into(), &vec![name].into())
        );
    }
    assert_eq!(place.files(), [""; 0]);
    for disk in data {
        assert_eq!(entries(&Path::new(&disk).join("objects")), [""; 0], "blocks must go too");
    }
}

#[test]
fn times_of_the_last_change_are_shown_compared_and_copied() {
    // Proves: `stat`, `ls -l`, `find --newer` and `cp -p` know when a file was changed, also after
    // a restart; reading changes nothing.
    let place = Place::with_servers(2);
    let (one, two) = (place.file("one", &bytes(3_000_000)), place.file("two", b"2"));
    let set = |path: &Path, seconds| {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    set(&one, 1_000_000_000);
    let time = |name: &str| {
        let found = place.run(&["stat", "--json", name]).done().json();
        found["modified_ns"].as_u64().unwrap()
    };
    put(&place, &one, "now").done();
    let now = time("now");
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(now.abs_diff(clock) < 3_600_000_000_000, "{now} is not about {clock}");
    place.run(&["cp", "-p", one.to_str().unwrap(), "unisono://kept"]).done();
    place.run(&["cp", "-p", "unisono://kept", "unisono://again"]).done();
    place.run(&["get", "now", "-"]).done();
    for _ in 0..2 {
        assert_eq!((time("now"), time("kept")), (now, 1_000_000_000_000_000_000));
        assert_eq!(time("again"), time("kept"));
        let listed = place.run(&["ls", "-l", "kept"]).done();
        assert!(listed.text().contains("2001-09-09T01:46:40Z"), "{}", listed.text());
        place.run(&["stop"]).done();
        place.start(&["--servers", "2"]);
    }
    let local = place.path("copy");
    place.run(&["cp", "--preserve", "unisono://kept", local.to_str().unwrap()]).done();
    let copied = std::fs::metadata(&local).unwrap().modified().unwrap();
    assert_eq!(copied, UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    let newer = |than: &str| {
        let found = place.run(&["find", "--newer", than]).done();
        found.text().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(newer("unisono://kept"), ["now"]);
    set(&two, 999_999_999);
    assert_eq!(newer(two.to_str().unwrap()), ["again", "kept", "now"]);
    set(&two, 9_999_999_999);
    assert_eq!(newer(two.to_str().unwrap()), [""; 0]);
    place.run(&["find", "--newer", "none"]).refused(FAILED, &["none", "No such file"]);
}

#[test]
fn names_default_to_the_last_part() {
    // Proves: put names a file by the last part of the local path, get a local file by the last
    // part of the name.
    let place = Place::with_servers(1);
    let local = place.file("some name", b"x");
    place.run(&["put".as_ref(), local.as_os_str()]).done();
    assert_eq!(place.files(), ["some name"]);
    put(&place, &local, "a/b/c").done();
    place.run(&["get", "a/b/c"]).done();
    assert_eq!(std::fs::read(place.path("c")).unwrap(), b"x");
    put(&place, &local, "a/").done();
    place.run(&["get", "unisono:///a/some name", "named"]).done();
    assert_eq!(std::fs::read(place.path("named")).unwrap(), b"x");
    place.run(&["get", "a/"]).refused(FAILED, &["\"a\"", "is a directory"]);
}

#[test]
fn a_name_is_given_once() {
    // Proves: a second put of a name is refused with code 1 and leaves the first file as it was;
    // after rm the name is free.
    let place = Place::with_servers(2);
    let (first, second) = (bytes(100_000), bytes(50));
    let (one, two) = (place.file("one", &first), place.file("two", &second));
    put(&place, &one, "name").done();
    put(&place, &two, "name").refused(FAILED, &["\"name\"", "already"]);
    assert!(place.run(&["get", "name", "-"]).done().output == first);
    place.run(&["rm", "name"]).done();
    put(&place, &two, "name").done();
    assert!(place.run(&["get", "name", "-"]).done().output == second);
}

#[test]
fn unknown_files_are_named() {
    // Proves: stat, get and rm of a file that does not exist fail with code 1 in three parts that
    // name it; get makes no local file and destroys none.
    let place = Place::with_servers(1);
    let kept = place.file("kept", b"precious");
    for words in [&["stat", "nobody"][..], &["stat", "--json", "nobody"], &["rm", "nobody"]] {
        place.run(words).refused(FAILED, &["\"nobody\"", "there is no file"]);
    }
    place.run(&["get", "nobody", "-"]).refused(FAILED, &["\"nobody\""]);
    let before = entries(&place.path(""));
    place.run(&["get", "nobody"]).refused(FAILED, &["\"nobody\""]);
    get(&place, "nobody", &kept).refused(FAILED, &["\"nobody\""]);
    assert_eq!(entries(&place.path("")), before);
    assert_eq!(std::fs::read(&kept).unwrap(), b"precious");
}

#[test]
fn bad_names_and_blocks_are_refused() {
    // Proves: names of the root or too long, and blocks that are empty or huge, are refused with
    // code 2 and leave no file; unusual good names are not.
    let place = Place::with_servers(1);
    let local = place.file("local", b"x");
    let (long, part) = ("n/".repeat(2049), "n".repeat(256));
    for name in ["", "..", "a/..", "unisono:.", &long, &part] {
        put(&place, &local, name).refused(USAGE, &["cannot name a file"]);
    }
    let local_text = local.to_str().unwrap();
    for block in ["0", "2GiB", "4611686018427387904"] {
        place.run(&["put", "--block", block, local_text]).refused(USAGE, &["a block of"]);
    }
    place.run(&["put", "--block", "many", local_text]).refused(USAGE, &["many"]);
    place.run(&["put", "--block", "16EiB", local_text]).refused(USAGE, &["16EiB", "largest"]);
    assert_eq!(place.files(), [""; 0]);
    let longest = [(); 16].map(|()| "n".repeat(255)).join("/");
    for name in ["...", "a\\b", " ", "ü/😀", "-x", "line\nbreak", "bell\u{7}", &longest] {
        let mut command = support::unisono(&["put", "--instance"]);
        command.arg(place.instance()).args(["--", local_text, name]);
        support::run(command).done();
        let mut command = support::unisono(&["get", "--instance"]);
        command.arg(place.instance()).args(["--", name, "-"]);
        assert_eq!(support::run(command).done().output, b"x", "{name}");
    }
    // No name commands the terminal.
    for words in [&["ls"][..], &["ls", "-l"], &["tree"], &["find"]] {
        let listed = place.run(words).done().text().to_owned();
        assert!(listed.contains("line?break") && listed.contains("bell?"), "{listed}");
    }
}

#[test]
fn every_spelling_of_a_name_is_the_same_file() {
    // Proves: commands take a name in every spelling, list it in one, and the library finds it.
    let place = Place::with_servers(1);
    let local = place.file("local", b"x");
    place.run(&["mkdir", "-p", "a//b/../."]).done();
    put(&place, &local, "./a//c").done();
    let connection = Connection::open(&Instance::at(place.instance())).unwrap();
    for word in [
        "a/c",
        "/a/c/",
        "../a/./c",
        "a/none/../c",
        "unisono:a/c",
        "unisono://a/c",
        "unisono://./a/c",
    ] {
        assert_eq!(place.run(&["cat", word]).done().output, b"x", "{word}");
        assert_eq!(place.run(&["ls", word]).done().text().split_whitespace().last(), Some("c"));
        assert_eq!(connection.open_file(word).unwrap().name(), "a/c", "{word}");
        // A slash at the end of a target demands a directory, as in `cp`.
        let target = word.trim_end_matches('/');
        put(&place, &local, target).refused(FAILED, &["\"a/c\"", "already"]);
        let copy = place.path("copy");
        place.run(&["cp", &format!("unisono:{word}"), copy.to_str().unwrap()]).done();
        assert_eq!(std::fs::read(copy).unwrap(), b"x", "{word}");
    }
    place.run(&["mv", "unisono://a/./c", "a/../d"]).done();
    assert_eq!(place.run(&["ls", "."]).done().text().split_whitespace().last(), Some("d"));
    place.run(&["rm", "unisono:./d"]).done();
    assert!(connection.find("/d").unwrap().is_none());
}

#[test]
fn local_files_that_cannot_be_read_are_named() {
    // Proves: a local file that is missing, a directory or a pipe is refused with code 1 in three
    // parts that name it, at once, and no file is made in the instance.
    let place = Place::with_servers(1);
    let directory = place.path("directory");
    std::fs::create_dir(&directory).unwrap();
    let missing = place.path("missing");
    for local in [&missing, &directory, Path::new("/dev/null")] {
        let named = local.to_str().unwrap();
        put(&place, local, "name").refused(FAILED, &[named]);
    }
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn local_files_that_cannot_be_written_are_named() {
    // Proves: get into a directory that does not exist, onto a directory, or into one that may not
    // be written fails with code 1 in three parts and leaves nothing behind.
    let place = Place::with_servers(1);
    let local = place.file("local", b"x");
    put(&place, &local, "name").done();
    let (directory, sealed) = (place.path("directory"), place.path("sealed"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::create_dir(&sealed).unwrap();
    std::fs::set_permissions(&sealed, PermissionsExt::from_mode(0o500)).unwrap();
    let before = entries(&place.path(""));
    let mut targets = vec![place.path("missing/file"), directory.clone(), local.join("below")];
    if !rustix::process::geteuid().is_root() {
        targets.push(sealed.join("file"));
    }
    for target in targets {
        get(&place, "name", &target).refused(FAILED, &[target.to_str().unwrap()]);
    }
    assert_eq!(entries(&place.path("")), before);
    assert_eq!(entries(&directory), [""; 0]);
}

#[test]
fn who_may_read_a_local_file_stays_when_it_is_replaced() {
    let place = Place::with_servers(1);
    let local = place.file("local", b"secret");
    put(&place, &local, "name").done();
    for mode in [0o600, 0o640, 0o666] {
        std::fs::set_permissions(&local, PermissionsExt::from_mode(mode)).unwrap();
        get(&place, "name", &local).done();
        assert_eq!(std::fs::metadata(&local).unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_failed_get_destroys_nothing() {
    // Proves: when a get fails in the middle, because a server's data is gone, the local file that
    // it was to replace is as it was, and nothing is left beside it; a get that succeeds replaces
    // it, and where it is a link, what the link leads to.
    let place = Place::with_servers(2);
    let content = bytes(3 << 20);
    let local = place.file("local", &content);
    put(&place, &local, "name").done();
    let kept = place.file("kept", b"precious");
    let link = place.path("link");
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    let before = entries(&place.path(""));
    let disk = place.instance().join("data/server-1");
    std::fs::rename(&disk, place.path("instance/away")).unwrap();
    for target in [&kept, &link] {
        get(&place, "name", target).refused(FAILED, &["name", "server 1"]);
        assert_eq!(std::fs::read(&kept).unwrap(), b"precious");
        assert_eq!(entries(&place.path("")), before);
    }
    std::fs::rename(place.path("instance/away"), &disk).unwrap();
    get(&place, "name", &link).done();
    assert!(std::fs::read(&kept).unwrap() == content);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn an_interrupted_put_leaves_no_file() {
    // Proves: SIGTERM or SIGINT in the middle of a put ends it with code 130, the file and its
    // blocks go; others stay.
    let place = Place::with_servers(2);
    let (kept, large) = (place.file("kept", b"precious"), place.path("large"));
    put(&place, &kept, "kept").done();
    let file = File::create(&large).unwrap();
    file.set_len(64 << 30).unwrap();
    // Mostly holes, but something in every window: it takes long and little room.
    (0..4096).for_each(|window| file.write_all_at(b"x", window << 24).unwrap());
    let moved = || place.status().iter().filter_map(|one| one["bytes_moved"].as_u64()).sum::<u64>();
    for by in [Signal::TERM, Signal::INT] {
        let before = moved();
        let putting = Running::start(place.command(&["put", "large"]));
        until("bytes move", || (moved() > before + (1 << 20)).then_some(()));
        signal(putting.pid(), by);
        let ended = putting.end().code(INTERRUPTED);
        assert_eq!(ended.error.lines().count(), 1, "{}", ended.error);
        assert_eq!(place.files(), ["kept"]);
        place.assert_nothing_held();
    }
    place.run(&["get", "kept", "-"]).done();
    for name in place.files() {
        place.run(&["rm", &name]).done();
    }
    for server in 0..2 {
        let objects = place.instance().join(format!("data/server-{server}/objects"));
        assert_eq!(entries(&objects), [""; 0]);
    }
}

#[test]
fn a_name_always_has_a_file_while_it_is_replaced() {
    // Proves: whoever looks at a file, or reads it, while others put another in its place, finds
    // all of one; in the end there is nothing left of the others.
    let place = Place::with_servers(3);
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    let sources = [place.file("first", &contents[0]), place.file("second", &contents[1])];
    put(&place, &sources[0], "name").done();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for words in [&["cat", "name"][..], &["stat", "name"], &["stat", "name"]] {
            let (place, is_over, contents) = (&place, &is_over, &contents);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let found = place.run(words).done().output;
                    assert!(words[0] != "cat" || contents.contains(&found), "{}", found.len());
                }
            });
        }
        for number in 0..60 {
            let source = sources[number % 2].to_str().expect("a test has a plain name");
            place.run(&["cp", source, "unisono://name"]).done();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    until("the data of all but the last is gone", || {
        let objects = |server| place.instance().join(format!("data/server-{server}/objects"));
        let files: usize = (0..3).map(|server| entries(&objects(server)).len()).sum();
        // Its bytes and their sums.
        (files == 2).then_some(())
    });
}

#[test]
fn an_interrupted_get_leaves_no_file() {
    // Proves: SIGTERM in the middle of a get ends it with code 130; the local file that it was to
    // replace is as it was, and nothing is left beside it.
    let place = Place::with_servers(2);
    let large = place.path("large");
    // One hole, which takes no room and long to read.
    File::create(&large).unwrap().set_len(64 << 30).unwrap();
    place.run(&["put", "large"]).done();
    std::fs::write(&large, b"precious").unwrap();
    let before = entries(&place.path(""));
    let getting = Running::start(place.command(&["get", "large"]));
    let is_part = |name: &String| name.starts_with(".unisono-part-");
    until("a part is there", || entries(&place.path("")).iter().any(is_part).then_some(()));
    signal(getting.pid(), Signal::TERM);
    getting.end().code(INTERRUPTED);
    assert_eq!(entries(&place.path("")), before);
    assert_eq!(std::fs::read(&large).unwrap(), b"precious");
}

/// Runs `program` to its end; whether it could do what it was told.
fn makes<const N: usize>(program: &str, words: [&OsStr; N]) -> bool {
    std::process::Command::new(program).args(words).status().is_ok_and(|status| status.success())
}

#[test]
fn a_device_is_written_not_replaced() {
    // Proves: get and cp to a pipe with a name write into it, zeros too, and into a device; pipe
    // and device stay.
    let place = Place::with_servers(1);
    let mut content = bytes(300_000);
    content.extend([0; 200_000]);
    let local = place.file("local", &content);
    put(&place, &local, "name").done();
    let pipe = place.path("pipe");
    assert!(makes("mkfifo", [pipe.as_os_str()]));
    for words in [["get", "name", "pipe"], ["cp", "unisono://name", "pipe"]] {
        let writing = Running::start(place.command(&words));
        assert!(std::fs::read(&pipe).unwrap() == content, "{words:?}");
        writing.end().done();
        assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{words:?}");
    }
    let device = place.path("device");
    let like_null = [device.as_os_str(), "c".as_ref(), "1".as_ref(), "3".as_ref()];
    // Root may, and only where devices may be.
    if !makes("mknod", like_null) || File::options().write(true).open(&device).is_err() {
        println!("skipped in part: no device can be made here");
        return;
    }
    for words in [["get", "name", "device"], ["cp", "unisono://name", "device"]] {
        place.run(&words).done();
        let found = std::fs::symlink_metadata(&device).unwrap().file_type();
        assert!(found.is_char_device(), "{words:?}");
    }
}

#[test]
fn a_link_is_followed_not_replaced() {
    // Proves: get and cp to a symbolic link write what it leads to, also where nothing is yet, and
    // a pipe behind it; the link stays.
    let place = Place::with_servers(1);
    let local = place.file("local", &bytes(70_000));
    put(&place, &local, "name").done();
    let pipe = place.path("pipe");
    assert!(makes("mkfifo", [pipe.as_os_str()]));
    std::fs::create_dir(place.path("d")).unwrap();
    for (to, link) in [("d/file", "first"), ("first", "second"), ("pipe", "to-pipe")] {
        std::os::unix::fs::symlink(to, place.path(link)).unwrap();
    }
    for words in [["get", "name"], ["cp", "unisono://name"]] {
        for _ in 0..2 {
            place.run(&[&words[..], &["second"]].concat()).done();
            assert!(std::fs::read(place.path("d/file")).unwrap() == bytes(70_000), "{words:?}");
            std::fs::write(place.path("d/file"), b"old").unwrap();
        }
        std::fs::remove_file(place.path("d/file")).unwrap();
        let writing = Running::start(place.command(&[&words[..], &["to-pipe"]].concat()));
        assert!(std::fs::read(&pipe).unwrap() == bytes(70_000), "{words:?}");
        writing.end().done();
        for link in ["first", "second", "to-pipe"] {
            assert!(std::fs::symlink_metadata(place.path(link)).unwrap().is_symlink(), "{link}");
        }
    }
}

#[test]
fn a_put_that_fails_leaves_no_file() {
    // Proves: a local file that ends before the size it has, as those of /sys do, fails the put
    // with code 1 and leaves no file and no block.
    let place = Place::with_servers(2);
    let shorter = Path::new("/sys/devices/system/cpu/online");
    let Ok(metadata) = shorter.metadata() else {
        println!("skipped in part: this system has no /sys");
        return;
    };
    assert!(metadata.len() > std::fs::read(shorter).unwrap().len() as u64);
    put(&place, shorter, "name").refused(FAILED, &["name", shorter.to_str().unwrap()]);
    assert_eq!(place.files(), [""; 0]);
    for server in 0..2 {
        let objects = place.instance().join(format!("data/server-{server}/objects"));
        assert_eq!(entries(&objects), [""; 0]);
    }
}

#[test]
fn files_of_proc_are_read_to_their_end() {
    // Proves: a file that gives bytes where it says it has none is copied, by put and cp, with all
    // that reading it gives.
    let place = Place::with_servers(2);
    for local in ["/proc/filesystems", "/proc/kallsyms"] {
        let Ok(content) = std::fs::read(local) else {
            println!("skipped in part: this system has no {local}");
            continue;
        };
        assert_eq!(Path::new(local).metadata().unwrap().len(), 0);
        put(&place, Path::new(local), "put").done();
        let copied = place.run(&["cp", "--json", local, "unisono://cp"]).done().json();
        assert_eq!(copied["bytes"], content.len());
        for name in ["put", "cp"] {
            assert!(place.run(&["get", name, "-"]).done().output == content, "{local} by {name}");
            place.run(&["rm", name]).done();
        }
    }
}

#[test]
fn a_source_that_becomes_shorter_is_not_copied() {
    // Proves: a local file that is cut while it is copied fails put and cp, in words that say so,
    // and leaves no file and no part of one.
    let place = Place::with_servers(2);
    let large = File::create(place.path("large")).unwrap();
    for words in [&["put", "large"][..], &["cp", "large", "unisono://large"]] {
        large.set_len(64 << 30).unwrap();
        // Mostly holes, but something in every window: it takes long and little room.
        (0..4096).for_each(|window| large.write_all_at(b"x", window << 24).unwrap());
        let copying = Running::start(place.command(words));
        until_moving(&place, 1 << 20);
        large.set_len(1 << 20).unwrap();
        let told = ["large", "the source became shorter while it was copied"];
        copying.end().refused(FAILED, &told);
        assert_eq!(place.run(&["ls", "--all"]).done().text(), "");
    }
}

#[test]
fn nobody_reading_is_no_panic() {
    // Proves: with a standard output or standard error that nobody reads any more, each command
    // ends with a code of the table, never with a panic.
    let place = Place::with_servers(1);
    let content = bytes(10 << 20);
    let local = place.file("local", &content);
    put(&place, &local, "name").done();
    let sim = ["sim", "--trials", "1", "--size", "64KiB", "--clients", "2", "--servers", "2"];
    let commands: [(&[&str], i32); 7] = [
        (&["ls"], 0),
        (&["status", "--json"], 0),
        (&["get", "name", "-"], 0),
        (&["cat", "name", "name"], 0),
        (&["get", "nobody", "-"], FAILED),
        (&["bench", "--size", "1MiB", "--clients", "2", "--repeat", "1", "--json"], 0),
        (&["bench", "--size", "1", "--clients", "0"], USAGE),
    ];
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for (words, code) in commands {
        let mut command = place.command(words);
        command.stdin(Stdio::null()).stdout(closed()).stderr(Stdio::piped());
        let ended = Running::start_as_is(command).end().code(code);
        assert!(!ended.error.contains("panicked"), "{words:?}: {}", ended.error);
        let mut command = place.command(words);
        command.stdin(Stdio::null()).stdout(closed()).stderr(closed());
        Running::start_as_is(command).end().code(code);
    }
    for words in [&sim[..], &["--help"], &["frobnicate"], &["--version"]] {
        let mut command = support::unisono(words);
        command.stdin(Stdio::null()).stdout(closed()).stderr(closed());
        let code = if words[0] == "frobnicate" { USAGE } else { 0 };
        Running::start_as_is(command).end().code(code);
    }
}

#[test]
fn a_reader_may_go_away() {
    // Proves: a reader of cat or get that has had enough of a large file ends it, without an
    // error; one that is there is told of files that are not.
    let place = Place::with_servers(2);
    let local = place.file("local", &bytes(40 << 20));
    put(&place, &local, "big").done();
    for words in [&["cat", "big", "nobody"][..], &["get", "big", "-"]] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = place.command(words);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        let printing = Running::start_as_is(command);
        let mut first = [0; 10];
        reader.read_exact(&mut first).unwrap();
        drop(reader);
        assert_eq!(first, bytes(40 << 20)[..10]);
        assert_eq!(printing.end().done().error, "", "{words:?}");
    }
    place.run(&["cat", "nobody", "big"]).refused(FAILED, &["nobody"]);
    place.assert_nothing_held();
}

#[test]
fn standard_output_has_a_name_too() {
    // Proves: what goes to /dev/stdout goes where standard output goes, behind what is there.
    let place = Place::with_servers(1);
    let content = bytes(300_000);
    place.run(&["put", place.file("local", &content).to_str().unwrap(), "f"]).done();
    let log = place.file("log", b"earlier\n");
    for source in ["f", "unisono://f"] {
        let command = if source == "f" { "get" } else { "cp" };
        let mut command = place.command(&[command, source, "/dev/stdout"]);
        command.stdout(std::fs::File::options().append(true).open(&log).unwrap());
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        Running::start_as_is(command).end().done();
    }
    let found = std::fs::read(&log).unwrap();
    assert!(found.starts_with(b"earlier\n") && found[8..].starts_with(&content));
    let copies = found.windows(1000).filter(|some| **some == content[..1000]).count();
    assert_eq!(copies, 2);
}
