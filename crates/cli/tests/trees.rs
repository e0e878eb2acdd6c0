//! Proves: directories are copied, listed, searched, moved and removed as users of a shell expect,
//! and a copy is whole or not there.

use crate::support;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use support::{FAILED, Place, USAGE, bytes, entries};

/// A local tree of files of awkward sizes, some in directories, one with holes.
fn local_tree(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (name, size) in
        [("a", 0), ("b c", 1), ("x/ä", 70_000), ("x/y/d", 3 << 20), ("x/y/e", 65_536)]
    {
        let local = place.path("tree").join(name);
        std::fs::create_dir_all(local.parent().unwrap()).unwrap();
        std::fs::write(&local, bytes(size)).unwrap();
        files.push((name.to_owned(), bytes(size)));
    }
    std::fs::create_dir_all(place.path("tree/empty")).unwrap();
    files
}

fn names(listed: &Value) -> Vec<&str> {
    let entries = listed["entries"].as_array().expect("there are entries");
    entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

#[test]
fn trees_go_in_and_come_out() {
    let place = Place::with_servers(3);
    let files = local_tree(&place);
    let copied = place.run(&["cp", "--json", "-r", "tree", "unisono://in"]).done().json();
    let sum: usize = files.iter().map(|(_, content)| content.len()).sum();
    assert_eq!((&copied["files"], &copied["bytes"]), (&5.into(), &sum.into()));
    place.run(&["cp", "-r", "unisono://in", "unisono://again"]).done();
    place.run(&["mkdir", "dir"]).done();
    place.run(&["cp", "-r", "unisono://again", "unisono://in/a", "unisono://dir"]).done();
    place.run(&["cp", "-r", "unisono://dir/again", "out"]).done();
    for (name, content) in &files {
        assert!(std::fs::read(place.path("out").join(name)).unwrap() == *content, "{name}");
        let printed = place.run(&["cat", &format!("/dir/again/{name}")]).done().output;
        assert!(printed == *content, "{name}");
    }
    assert!(place.path("out/empty").is_dir());
    let listed = place.run(&["ls", "--json", "dir"]).done().json();
    assert_eq!(names(&listed), ["dir/a", "dir/again"]);
    let walked = place.run(&["ls", "-R", "--json", "dir/again/x"]).done().json();
    assert_eq!(names(&walked), ["y", "y/d", "y/e", "ä"].map(|name| format!("dir/again/x/{name}")));
}

#[test]
fn holes_stay_holes() {
    let place = Place::with_servers(2);
    let sparse = File::create(place.path("sparse")).unwrap();
    sparse.set_len(5 << 30).unwrap();
    sparse.write_all_at(b"first", 0).unwrap();
    sparse.write_all_at(b"behind 4 GiB", (4 << 30) + 123).unwrap();
    place.run(&["cp", "sparse", "unisono://s"]).done();
    place.run(&["cp", "unisono://s", "out"]).done();
    let out = File::open(place.path("out")).unwrap();
    assert_eq!(out.metadata().unwrap().len(), 5 << 30);
    assert!(out.metadata().unwrap().blocks() < 10_000, "zeros must take no room");
    let mut found = [0; 12];
    out.read_exact_at(&mut found, (4 << 30) + 123).unwrap();
    assert_eq!(&found, b"behind 4 GiB");
    out.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"first\0\0\0\0\0\0\0");
    let objects = std::fs::read_dir(place.path("instance/data/server-0/objects")).unwrap();
    let blocks: u64 = objects.map(|object| object.unwrap().metadata().unwrap().blocks()).sum();
    assert!(blocks < 50_000, "the servers must keep holes: {blocks} blocks of 512 bytes");
}

#[test]
fn a_copy_replaces_what_was_there_only_when_it_is_whole() {
    let place = Place::with_servers(1);
    place.file("old", b"old");
    place.file("new", b"newer");
    place.run(&["cp", "old", "unisono://f"]).done();
    place.run(&["cp", "new", "unisono://f"]).done();
    assert_eq!(place.run(&["cat", "f"]).done().output, b"newer");
    place.run(&["cp", "missing", "unisono://f"]).refused(FAILED, &["missing", "no such file"]);
    assert_eq!(place.run(&["cat", "f"]).done().output, b"newer");
    place.file("kept", b"precious");
    place.run(&["cp", "unisono://nobody", "kept"]).refused(FAILED, &["unisono://nobody"]);
    assert_eq!(std::fs::read(place.path("kept")).unwrap(), b"precious");
    place.run(&["cp", "unisono://f", "kept"]).done();
    assert_eq!(std::fs::read(place.path("kept")).unwrap(), b"newer");
    assert_eq!(names(&place.run(&["ls", "--all", "--json"]).done().json()), ["f"]);
}

#[test]
fn what_cannot_be_copied_is_refused_in_three_parts() {
    let place = Place::with_servers(1);
    place.file("f", b"1");
    std::fs::create_dir(place.path("d")).unwrap();
    place.run(&["cp", "f", "g"]).refused(USAGE, &["cannot copy to g", "local files"]);
    // One name, however many slashes it is written with.
    for words in [["f", "unisono:/d/f"], ["f", "unisono:d/f"], ["unisono:/d/f", "unisono://g"]] {
        let refused = place.run(&[&["cp"], &words[..]].concat());
        refused.refused(FAILED, &["cannot copy", "unisono://d/f", "there is no"]);
    }
    place.run(&["cp", "f", "unisono://odd"]).done();
    place.run(&["cp", "unisono://odd", "./unisono:d"]).done();
    place.run(&["rm", "odd"]).done();
    place.run(&["cp", "d", "unisono://d"]).refused(USAGE, &["cannot copy d", "it is a directory"]);
    place
        .run(&["cp", "f", "d", "unisono://none"])
        .refused(USAGE, &["unisono://none", "several sources"]);
    place
        .run(&["cp", "f", "unisono://none/f"])
        .refused(FAILED, &["unisono://none/f", "no directory \"none\""]);
    place.run(&["mkdir", "a"]).done();
    place.run(&["cp", "-r", "unisono://a", "unisono://a/b"]).refused(USAGE, &["inside the source"]);
    std::fs::create_dir(place.path("e")).unwrap();
    std::fs::copy(place.path("f"), place.path("e/f")).unwrap();
    let twice = ["cp", "f", "e/f", "unisono://a"];
    place.run(&twice).refused(USAGE, &["two files", "unisono://a/f", "e/f"]);
    let fifo = place.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    place.run(&["cp", "fifo", "unisono://p"]).refused(FAILED, &["fifo", "regular"]);
    place.run(&["put", "fifo"]).refused(FAILED, &["fifo", "regular"]);
    assert_eq!(names(&place.run(&["ls", "-R", "--json"]).done().json()), ["a"]);
}

#[test]
fn a_file_is_not_copied_to_itself() {
    // Proves: a target that is the source, however it is written, is refused before anything is
    // done, also when others are copied with it.
    let place = Place::with_servers(2);
    place.file("f", &bytes(100_000));
    place.run(&["mkdir", "d"]).done();
    place.run(&["cp", "f", "unisono://d/f"]).done();
    place.run(&["cp", "f", "unisono://f"]).done();
    let before = place.run(&["find", "--json"]).done().output;
    for words in [
        &["unisono://f", "unisono://f"][..],
        &["unisono://f", "unisono:///f/"],
        &["unisono://f", "unisono://"],
        &["unisono://d//f", "unisono://d/f"],
        &["unisono://d/f", "unisono://d/"],
        &["f", "unisono://d/f", "unisono://d"],
    ] {
        let refused = place.run(&[&["cp"], words].concat());
        refused.refused(USAGE, &["cannot copy unisono://", "they are the same file"]);
    }
    assert!(place.run(&["find", "--json"]).done().output == before);
    assert!(place.run(&["cat", "d/f"]).done().output == bytes(100_000));
}

#[test]
fn a_slash_asks_for_a_directory() {
    // Proves: cp and mv of a file to a name with a slash at its end need a directory there; a
    // directory may be copied or moved to a new name of that kind.
    let place = Place::with_servers(2);
    place.file("f", b"new");
    place.file("old", b"old");
    std::fs::create_dir(place.path("tree")).unwrap();
    place.run(&["cp", "old", "unisono://file"]).done();
    place.run(&["cp", "f", "unisono://f"]).done();
    let (is_file, is_nothing) = ("it is not a directory", "there is no such directory");
    for words in [["cp", "f"], ["cp", "unisono://f"], ["mv", "f"]] {
        for (target, cause) in [("unisono://file/", is_file), ("unisono://nodir//", is_nothing)] {
            let refused = place.run(&[&words[..], &[target]].concat());
            let refused = refused.refused(USAGE, &[target.trim_end_matches('/'), cause]);
            assert!(refused.error.contains("mkdir"), "{}", refused.error);
        }
    }
    place.run(&["cp", "unisono://f", "nodir/"]).refused(USAGE, &["nodir", is_nothing]);
    place.run(&["cp", "unisono://f", "old/"]).refused(FAILED, &["old"]);
    assert_eq!(place.run(&["cat", "file"]).done().output, b"old");
    assert_eq!(names(&place.run(&["ls", "--all", "--json"]).done().json()), ["f", "file"]);
    place.run(&["cp", "-r", "tree", "unisono://tree/"]).done();
    place.run(&["mv", "tree", "moved/"]).done();
    place.run(&["cp", "f", "unisono://moved/"]).done();
    place.run(&["mv", "file", "moved/"]).done();
    assert_eq!(
        names(&place.run(&["ls", "--json", "moved"]).done().json()),
        ["moved/f", "moved/file"]
    );
}

#[test]
fn the_first_failure_of_a_tree_is_told() {
    // Proves: what is wrong with one file of many is told, each time, in three parts of one line
    // each, and never that the copies of the others were stopped for it.
    let place = Place::with_servers(2);
    std::fs::create_dir(place.path("many")).unwrap();
    for number in 0..24 {
        place.file(&format!("many/{number:02}"), &bytes(300 << 10));
    }
    let fifo = place.path("many/12\npipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let copy = ["cp", "-r", "many", "unisono://many"];
    for _ in 0..5 {
        place.run(&copy).refused(FAILED, &["many/12\\npipe", "not a regular file"]);
    }
    std::fs::remove_file(fifo).unwrap();
    // Of these directories, the longest may be, but not what is in it.
    let part = "n".repeat(255);
    let longest = format!("unisono://{}", [(); 16].map(|()| part.as_str()).join("/"));
    place.run(&["cp", "-r", "many", &longest]).refused(USAGE, &["cannot name a file"]);
    // Before anything was copied.
    place.run(&["stat", &part]).refused(FAILED, &["there is no file"]);
}

#[test]
fn what_cannot_be_in_a_tree_is_named() {
    // Proves: a link that leads nowhere or to where it is, a pipe, and a name that is not UTF-8 are
    // named themselves, with what to do, before anything is copied.
    let place = Place::with_servers(1);
    std::fs::create_dir_all(place.path("tree/sub")).unwrap();
    place.file("tree/a", b"1");
    let link = place.path("tree/sub/link");
    std::os::unix::fs::symlink("../gone", &link).unwrap();
    for target in ["unisono://", "unisono://new"] {
        let refused = place.run(&["cp", "-r", "tree", target]);
        let told = ["tree/sub/link", "symbolic link to ../gone", "does not exist"];
        let refused = refused.refused(FAILED, &told);
        assert!(refused.error.contains("remove the link"), "{}", refused.error);
    }
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("../../tree", &link).unwrap();
    let refused = place.run(&["cp", "-r", "tree", "unisono://"]);
    refused.refused(FAILED, &["tree/sub/link", "a directory above it"]);
    std::fs::remove_file(&link).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&link).status();
    assert!(made.unwrap().success());
    let refused = place.run(&["cp", "-r", "tree", "unisono://"]);
    refused.refused(FAILED, &["tree/sub/link", "not a regular file"]);
    std::fs::remove_file(&link).unwrap();
    std::fs::write(place.path("tree/sub").join(OsStr::from_bytes(b"caf\xe9")), b"1").unwrap();
    let refused = place.run(&["cp", "-r", "tree", "unisono://"]);
    let refused = refused.refused(FAILED, &["tree/sub/caf\\xE9", "not UTF-8"]);
    assert!(refused.error.contains("rename it"), "{}", refused.error);
    assert_eq!(names(&place.run(&["ls", "--all", "--json"]).done().json()), [""; 0]);
}

#[test]
fn names_are_moved_and_removed() {
    let place = Place::with_servers(2);
    local_tree(&place);
    place.run(&["cp", "-r", "tree", "unisono://t"]).done();
    place.run(&["mkdir", "t"]).refused(FAILED, &["already"]);
    place.run(&["mkdir", "m/n"]).refused(FAILED, &["\"m/n\"", "no directory \"m\""]);
    place.run(&["mkdir", "-p", "m/n", "t"]).done();
    place.run(&["mv", "t/x", "t/a", "m/n"]).done();
    place.run(&["mv", "m/n/x/y", "/t/z/"]).done();
    place.run(&["mv", "t", "t/inside"]).refused(USAGE, &["inside the directory itself"]);
    place.run(&["mv", "t/b c", "m/n/a"]).done();
    assert_eq!(place.run(&["cat", "m/n/a"]).done().output, bytes(1), "a file is replaced");
    place.run(&["mv", "t/z/d", "m"]).done();
    place.run(&["mv", "t/z", "t/empty", "none"]).refused(USAGE, &["several", "not a directory"]);
    let walked = place.run(&["ls", "-R", "--json"]).done().json();
    let expected = ["m", "m/d", "m/n", "m/n/a", "m/n/x", "m/n/x/ä", "t", "t/empty", "t/z", "t/z/e"];
    assert_eq!(names(&walked), expected);
    place.run(&["rm", "m/n"]).refused(FAILED, &["\"m/n\"", "not empty"]);
    place.run(&["rm", "-r", "/"]).refused(USAGE, &["root"]);
    place.run(&["rm", "t/empty", "m/d"]).done();
    place.run(&["rm", "-r", "m", "t"]).done();
    assert_eq!(names(&place.run(&["ls", "--all", "--json"]).done().json()), [""; 0]);
    let objects = std::fs::read_dir(place.path("instance/data/server-0/objects")).unwrap();
    assert_eq!(objects.count(), 0, "blocks must go too");
}

#[test]
fn trees_are_drawn_summed_and_searched() {
    let place = Place::with_servers(2);
    local_tree(&place);
    place.run(&["cp", "-r", "tree", "unisono://t"]).done();
    let drawn = place.run(&["tree", "t"]).done();
    let expected = "\
t
├── a
├── b c
├── empty/
└── x/
    ├── y/
    │   ├── d
    │   └── e
    └── ä

3 directories, 5 files
";
    assert_eq!(drawn.text(), expected);
    let used = place.run(&["du", "--json", "t"]).done().json();
    let sums: Vec<(&str, u64)> = used["usage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["bytes"].as_u64().unwrap()))
        .collect();
    let (y, x) = ((3 << 20) + 65_536, (3 << 20) + 65_536 + 70_000);
    assert_eq!(sums, [("t/x/y", y), ("t/x", x), ("t/empty", 0), ("t", x + 1)]);
    let found = |words: &[&str]| {
        let words = [&["find", "--json"], words].concat();
        let found = place.run(&words).done().json();
        names(&found).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&["--name", "[a-d]*"]), ["t/a", "t/b c", "t/x/y/d"]);
    assert_eq!(found(&["t/x", "--type", "d"]), ["t/x", "t/x/y"]);
    assert_eq!(found(&["--min-size", "64KiB", "--max-size", "1MiB"]), ["t/x/y/e", "t/x/ä"]);
    place.run(&["find", "--name", "[a"]).refused(USAGE, &["\"[a\""]);
    let space = place.run(&["df"]).done();
    assert_eq!(space.text().lines().count(), 3, "a line for each disk: {}", space.text());
    let lines: Vec<&str> = space.text().lines().collect();
    assert!(lines[1].contains('%') && !lines[2].contains('%'), "one file system: {lines:?}");
    assert!(lines[2].contains("on the file system of server 0 disk 0"), "{lines:?}");
    let space = place.run(&["df", "--json"]).done().json();
    let same = |server: usize| space["servers"][server]["disks"][0]["same_file_system_as"].clone();
    assert_eq!((same(0), same(1)), (Value::Null, json!({ "server": 0, "disk": 0 })));
}

#[test]
fn a_copy_follows_no_link_inside_its_target() {
    // Proves: where a directory must be made, a link that an earlier copy may have made is refused,
    // and nothing is written where it leads; the target itself may be a link.
    let place = Place::with_servers(1);
    local_tree(&place);
    place.run(&["cp", "-r", "tree", "unisono://t"]).done();
    for directory in ["out", "elsewhere"] {
        std::fs::create_dir(place.path(directory)).unwrap();
    }
    std::os::unix::fs::symlink("../elsewhere", place.path("out/t")).unwrap();
    let refused = place.run(&["cp", "-r", "unisono://t", "out"]);
    refused.refused(USAGE, &["out/t is a symbolic link"]);
    assert_eq!(entries(&place.path("elsewhere")), [""; 0]);
    std::os::unix::fs::symlink("elsewhere", place.path("link")).unwrap();
    place.run(&["cp", "-r", "unisono://t", "link"]).done();
    assert_eq!(entries(&place.path("elsewhere")), ["t"]);
}

#[test]
fn a_removed_name_is_free_after_a_restart() {
    let place = Place::with_servers(2);
    local_tree(&place);
    place.run(&["cp", "-r", "tree", "unisono://t"]).done();
    place.run(&["mv", "t/x", "t/z"]).done();
    place.run(&["rm", "-r", "t/z/y"]).done();
    let before = place.run(&["ls", "-R", "--json"]).done().output;
    place.run(&["stop"]).done();
    place.start(&["--servers", "2"]);
    assert!(place.run(&["ls", "-R", "--json"]).done().output == before);
    place.run(&["mkdir", "t/z/y"]).done();
}

#[test]
fn a_map_says_which_server_holds_which_block() {
    let place = Place::with_servers(3);
    let path = place.file("f", &bytes(1_000_000));
    place.run(&["mkdir", "d"]).done();
    place.run(&["layout", "set", "d", "--block", "64KiB", "--map", "2,0,0"]).done();
    let said = place.run(&["layout", "get", "d"]).done();
    assert!(said.text().contains("servers 2, 0, 0 and so on"), "{}", said.text());
    place.run(&["cp", "f", "unisono://d/f"]).done();
    let layout = ["layout", "get", "--json", "--blocks", "100", "d/f"];
    let layout = place.run(&layout).done().json();
    let servers = layout["blocks"].as_array().unwrap().iter().map(|it| it["server"].as_u64());
    let expected = [2, 0, 0].into_iter().cycle().take(16).map(Some);
    assert!(servers.eq(expected), "{layout}");
    assert_eq!(layout["map"].to_string(), "[2,0,0]");
    place.run(&["cp", "unisono://d/f", "back"]).done();
    assert!(std::fs::read(place.path("back")).unwrap() == std::fs::read(path).unwrap());
}

#[test]
fn directories_say_how_their_files_lie() {
    let place = Place::with_servers(3);
    place.file("f", &bytes(300_000));
    place.run(&["mkdir", "-p", "d/e"]).done();
    let set = ["layout", "set", "d", "--block", "64KiB", "--servers", "2", "--pool", "2,0"];
    let set = [&set[..], &["--declare", "sequential", "--max-blocks", "8"]].concat();
    place.run(&set).done();
    let layout =
        |name: &str| place.run(&["layout", "get", "--json", "--blocks", "4", name]).done().json();
    let said = layout("d");
    assert_eq!((&said["block_bytes"], &said["servers"]), (&65_536.into(), &2.into()));
    assert_eq!(said["buffering"]["replacement"], "toss-immediate");
    let text = |name: &str| place.run(&["layout", "get", name]).done().text().to_owned();
    let declared = "access declared sequential; eviction order toss-immediate; a server's cache \
                    keeps at most 8 of its blocks";
    assert!(text("d").contains(declared), "{}", text("d"));
    let unknown = "access not declared; eviction order lru; a server's cache keeps any number of \
                   its blocks";
    assert!(text("d/e").contains(unknown), "{}", text("d/e"));
    assert_eq!(layout("d/e")["block_bytes"], Value::Null, "what was there before stays");
    place.run(&["mkdir", "d/new"]).done();
    assert_eq!(layout("d/new")["pool"], said["pool"], "what is made later inherits");
    for name in ["d/f", "d/new/f"] {
        place.run(&["cp", "f", &format!("unisono://{name}")]).done();
        let file = layout(name);
        assert_eq!(file["block_bytes"], 65_536);
        let pool: Vec<u64> =
            file["pool"].as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect();
        assert!(pool == [0] || pool == [2], "small files go to one of the pool: {pool:?}");
        assert_eq!(file["buffering"]["max_blocks"], 8);
        assert_eq!(file["blocks"].as_array().unwrap().len(), 4);
        assert_eq!(file["blocks"][3]["server"], pool[0]);
    }
    place.run(&["cp", "--block", "128KiB", "f", "unisono://d/g"]).done();
    assert_eq!(layout("d/g")["block_bytes"], 131_072, "what is asked for counts most");
    place.run(&["layout", "set", "/", "--block", "256KiB"]).done();
    place.run(&["stop"]).done();
    place.start(&["--servers", "3"]);
    assert_eq!(layout("/")["block_bytes"], 262_144);
    assert_eq!(layout("d"), said);
    place.run(&["layout", "set", "d", "--pool", "0,3"]).refused(USAGE, &["server 3"]);
    place.run(&["layout", "set", "d", "--declare", "often"]).refused(USAGE, &["\"often\""]);
    let limits = ["layout", "set", "d", "--min-blocks", "3", "--max-blocks", "2"];
    place.run(&limits).refused(USAGE, &["\"d\"", "at least 3"]);
    place.run(&["layout", "set", "d", "--map", "0,3"]).refused(USAGE, &["server 3"]);
    place.run(&["layout", "set", "d", "--map", "0", "--pool", "0"]).refused(USAGE, &["--pool"]);
    place.run(&["layout", "set", "f", "--block", "1MiB"]).refused(FAILED, &["no directory \"f\""]);
    assert_eq!(layout("d"), said);
}

#[test]
fn copies_are_compared_whatever_the_block() {
    // Proves: files of all sizes go in and out with blocks that are multiples of the pieces that
    // are compared and blocks that are not, also larger than what is copied at a time.
    let place = Place::with_servers(2);
    for (size, block) in [
        (0, "64KiB"),
        (1, "17MB"),
        (100_000, "30000"),
        (200_000, "64KiB"),
        (3_000_000, "100000"),
        (20_000_000, "17000001"),
        (40_000_000, "16MiB"),
    ] {
        place.file("in", &bytes(size));
        let name = format!("unisono://{size}");
        place.run(&["cp", "--block", block, "in", &name]).done();
        place.run(&["cp", &name, "out"]).done();
        place.run(&["cp", "--no-verify", &name, "unisono://copy"]).done();
        for found in [std::fs::read(place.path("out")).unwrap(), {
            place.run(&["get", "copy", "-"]).done().output
        }] {
            assert!(found == bytes(size), "{size} bytes in blocks of {block}");
        }
    }
}

#[test]
fn many_files_are_listed_one_by_one() {
    // Proves: of 1,300 files in 5 directories each is listed once, in every way to list them, and
    // a directory larger than one answer of the catalogue is listed whole.
    let place = Place::with_servers(2);
    let mut wanted = Vec::new();
    for directory in 0..5 {
        let local = place.path(&format!("many/{directory}"));
        std::fs::create_dir_all(&local).unwrap();
        let files = if directory == 0 { 1100 } else { 50 };
        for file in 0..files {
            File::create(local.join(format!("{file:04}"))).unwrap();
            wanted.push(format!("many/{directory}/{file:04}"));
        }
    }
    place.run(&["cp", "-r", "many", "unisono://many"]).done();
    let found = place.run(&["find", "--type", "file"]).done();
    assert!(found.text().lines().eq(&wanted), "find shows every name once");
    let found = place.run(&["find", "--type", "file", "--json"]).done().json();
    assert_eq!(found["schema"], "unisono.find/1");
    assert!(names(&found) == wanted);
    let listed = place.run(&["ls", "many/0"]).done();
    let last_words = listed.text().lines().filter_map(|line| line.split_whitespace().last());
    assert!(last_words.eq((0..1100).map(|file| format!("{file:04}"))));
    let drawn = place.run(&["tree", "many"]).done();
    assert!(drawn.text().ends_with("\n5 directories, 1300 files\n"), "{}", drawn.text().len());
    place.run(&["rm", "-r", "many"]).done();
    assert_eq!(place.files(), [""; 0]);
}
