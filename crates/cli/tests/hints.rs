//! Proves: `hints` lists the table, and `hints explain` says of each hint whether it is in force.

use crate::support;
use support::{FAILED, Place, USAGE, run};

#[test]
fn the_list_has_every_hint() {
    let list = run(support::unisono(&["hints"])).done();
    for name in ["unisono_method", "striping_unit", "romio_cb_write", "cb_buffer_size"] {
        assert!(list.text().contains(name), "{name}: {}", list.text());
    }
    let wide = list.text().lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    let json = run(support::unisono(&["hints", "list", "--json"])).done().json();
    assert_eq!(json["schema"], "unisono.hints/1");
    assert!(json["hints"].as_array().is_some_and(|hints| hints.len() > 30));
}

#[test]
fn the_page_has_every_hint_that_can_be_in_force() {
    let page = include_str!("../../../docs/run.md");
    let json = run(support::unisono(&["hints", "--json"])).done().json();
    let hints = json["hints"].as_array().unwrap();
    let in_force = hints.iter().filter(|hint| hint["acts_on"] != "no effect");
    let names: Vec<&str> = in_force.map(|hint| hint["name"].as_str().unwrap()).collect();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/run.md lacks {name}");
    }
}

#[test]
fn hints_of_files_and_words_are_explained() {
    let place = Place::new();
    let file =
        place.file("hints", b"# of ROMIO\ncb_buffer_size 16777216\nunisono_method ddio #\n\nx");
    let explain = |words: &[&str]| {
        let words = [&["hints", "explain", file.to_str().expect("UTF-8")], words].concat();
        run(support::unisono(&words))
    };
    let text = explain(&["cb_node=4"]).done();
    let lines: Vec<&str> = text.text().lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for (line, words) in lines.iter().zip([
        ["cb_buffer_size=16777216", "rejected  no effect: servers have buffers of their own"],
        ["unisono_method=ddio", "in force  as disk-directed"],
        ["x ", "rejected  has no value"],
        ["cb_node=4", "rejected  unknown; did you mean cb_nodes?"],
    ]) {
        assert!(line.starts_with(words[0]) && line.contains(words[1]), "{line}");
    }
    let json = explain(&["--json"]).done().json();
    assert_eq!((&json["rejected"], &json["hints"][1]["as"]), (&2.into(), &"disk-directed".into()));
    explain(&["--strict"]).failed(USAGE, &["2 of 3 hints are rejected"]);
    run(support::unisono(&["hints", "explain", "/nowhere"])).refused(FAILED, &["/nowhere"]);
}

#[test]
fn hints_of_the_environment_are_explained() {
    let place = Place::with_servers(2);
    let mut command = place.command(&["hints", "explain", "--file", "a.h5"]);
    command.env("UNISONO_HINTS", "*.h5:striping_factor=8,*.dat:cb_nodes=1");
    command.env("UNISONO_METHOD", "two-phase");
    let text = run(command).done();
    let lines: Vec<&str> = text.text().lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("files are striped over all 2 servers"), "{lines:?}");
    assert!(lines[1].starts_with("unisono_method=two-phase") && lines[1].ends_with("in force"));
}
