//! Proves: the commands on files take the arguments that they take in a shell: patterns, `-` for
//! standard input and output, `rm -f`, `ls -h`.

use crate::support;
use std::io::Write;
use std::process::{Command, Stdio};
use support::{FAILED, Place, USAGE, bytes};

/// Runs `command` with `input` on its standard input; returns its exit code, output and errors.
fn fed(mut command: Command, input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command is built");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let input = input.to_vec();
    // A command that refuses its arguments does not read.
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let ended = child.wait_with_output().expect("it ends");
    feeding.join().expect("it ends with the command");
    (ended.status.code(), ended.stdout, String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// Puts files of `names`, each with its name as its content.
fn with_files(place: &Place, names: &[&str]) {
    for name in names {
        let local = place.file("local", name.as_bytes());
        place.run(&["put".as_ref(), local.as_os_str(), name.as_ref()]).done();
    }
}

fn lines(place: &Place, words: &[&str]) -> Vec<String> {
    let output = place.run(words).done().output;
    let text = String::from_utf8(output).expect("names are UTF-8");
    text.lines().map(|line| line.trim_start().to_owned()).collect()
}

#[test]
fn patterns_stand_for_the_names_that_match() {
    // Proves: ls, cat, mv, rm and cp take patterns, with a shell's rules for dots and slashes; a
    // pattern without a match is refused, and a name that exists is taken as it is.
    let place = Place::with_servers(1);
    let names = ["a1", "a2", "b1", ".a3", "d/a1", "d/c", "e/a1", "x[1]", "x1"];
    with_files(&place, &names);
    assert_eq!(lines(&place, &["ls", "a*"]), ["2  a1", "2  a2"]);
    assert_eq!(
        lines(&place, &["ls", "?1", "[bx]1"]),
        ["2  a1", "2  b1", "2  x1", "2  b1", "2  x1"]
    );
    assert_eq!(lines(&place, &["ls", "*/a1"]), ["4  d/a1", "4  e/a1"]);
    assert_eq!(lines(&place, &["ls", ".a*"]), ["3  .a3"]);
    assert_eq!(lines(&place, &["ls", "[de]"]), ["d:", "4  a1", "3  c", "", "e:", "4  a1"]);
    assert_eq!(lines(&place, &["ls", "x[1]"]), ["4  x[1]"]);
    assert_eq!(lines(&place, &["ls", r"x\[*"]), ["4  x[1]"]);
    let listed = place.run(&["ls", "--json", "a*", "e"]).done().json();
    let entries = listed["entries"].as_array().expect("ls lists");
    let listed: Vec<&str> = entries.iter().filter_map(|entry| entry["name"].as_str()).collect();
    assert_eq!(listed, ["a1", "a2", "e/a1"]);
    assert_eq!(place.run(&["cat", "a*"]).done().output, b"a1a2");
    place.run(&["ls", "z*"]).refused(FAILED, &["z*", "no name matches"]);
    place.run(&["rm", "a*", "z*"]).refused(FAILED, &["z*", "no name matches"]);
    place.run(&["ls", "[z"]).refused(USAGE, &["[z", "is not a pattern"]);
    place.run(&["mkdir", "f"]).done();
    place.run(&["mv", "a?", "f"]).done();
    assert_eq!(lines(&place, &["ls", "f"]), ["2  a1", "2  a2"]);
    std::fs::create_dir(place.path("out")).expect("a test must have room");
    place.run(&["cp", "unisono://f/*", "out"]).done();
    assert_eq!(std::fs::read(place.path("out/a2")).expect("it was copied"), b"a2");
    place.run(&["rm", "-r", "[df]", "x[1]"]).done();
    assert_eq!(place.files(), [".a3", "b1", "e/a1", "x1"]);
}

#[test]
fn rm_with_force_ignores_what_is_not_there() {
    // Proves: rm -f succeeds for names and patterns without files, and for none at all; it removes
    // the others, and refuses a directory as before.
    let place = Place::with_servers(1);
    with_files(&place, &["one", "d/two"]);
    place.run(&["rm", "none"]).refused(FAILED, &["none"]);
    let removed =
        place.run(&["rm", "-f", "--json", "none", "z*", "one", "d/none/deep"]).done().json();
    assert_eq!(removed["removed"], serde_json::json!(["one"]));
    place.run(&["rm", "-rf", "gone"]).done();
    place.run(&["rm", "-f"]).done();
    place.run(&["rm"]).refused(USAGE, &["NAME"]);
    place.run(&["rm", "-f", "d"]).refused(FAILED, &["\"d\""]);
    place.run(&["rm", "-f", "/"]).refused(USAGE, &["root"]);
    assert_eq!(place.files(), ["d/two"]);
    place.run(&["rm", "-rf", "d"]).done();
    assert!(place.files().is_empty());
}

#[test]
fn sizes_are_shown_in_units() {
    // Proves: ls -h, ls -lh, du -h and df -h show sizes in units and not the help, which --help
    // still is; ls alone shows bytes.
    let place = Place::with_servers(1);
    let local = place.file("local", &bytes(3 << 19));
    place.run(&["put".as_ref(), local.as_os_str(), "f".as_ref()]).done();
    assert_eq!(lines(&place, &["ls"]), ["1572864  f"]);
    assert_eq!(lines(&place, &["ls", "-h"]), ["1.5 MiB  f"]);
    assert!(lines(&place, &["ls", "-lh"])[0].ends_with("1.5 MiB  f"));
    assert!(lines(&place, &["du", "-sh"])[0].starts_with("1.5 MiB"));
    assert!(lines(&place, &["df", "-h"])[0].starts_with("server"));
    for command in ["ls", "du", "df"] {
        let help = place.run(&[command, "--help"]).done().output;
        assert!(String::from_utf8_lossy(&help).contains("--human-readable"), "{command}");
    }
}

#[test]
fn a_dash_is_standard_input_or_output() {
    // Proves: put and cp take standard input of any length, and cp writes to standard output
    // nothing but the files; each refuses what has no name.
    let place = Place::with_servers(2);
    let command = |words: &[&str]| place.command(words);
    for (number, length) in [0, 1, 70_000, (3 << 20) + 7].into_iter().enumerate() {
        let content = bytes(length);
        let (name, copy) = (format!("put{number}"), format!("unisono://copy{number}"));
        assert_eq!(fed(command(&["put", "-", &name]), &content).0, Some(0), "{length} bytes");
        assert_eq!(fed(command(&["cp", "-", &copy]), &content).0, Some(0), "{length} bytes");
        let name = format!("unisono://{name}");
        assert!(place.run(&["cp", &name, "-"]).done().output == content, "{length} bytes");
        assert!(place.run(&["cp", &copy, "-"]).done().output == content, "{length} bytes");
    }
    let both = place.run(&["cp", "unisono://put[12]", "-"]).done().output;
    assert_eq!(both, [bytes(1), bytes(70_000)].concat());
    place.run(&["mkdir", "d"]).done();
    for words in [
        &["put", "-"][..],
        &["put", "-", "d/"],
        &["cp", "-", "unisono://d"],
        &["cp", "-", "unisono://d/"],
    ] {
        let (code, _, error) = fed(command(words), b"x");
        assert_eq!(code, Some(USAGE), "{words:?}: {error}");
        assert!(error.contains("standard input has no name"), "{words:?}: {error}");
    }
    let local = place.file("-", b"a file of this name");
    place.run(&["put", "./-", "dash"]).done();
    assert_eq!(place.run(&["cat", "dash"]).done().output, b"a file of this name");
    std::fs::remove_file(local).expect("it is there");
    place.run(&["cp", "-", "-"]).refused(USAGE, &["all local files"]);
}
