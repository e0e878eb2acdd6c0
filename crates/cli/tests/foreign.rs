//! Proves: directories that other users control are not used, for an instance or its data, and the
//! error says what to change.

use crate::support;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use support::{Place, USAGE, bytes, processes_naming, unisono};

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is this test's own");
}

fn start(place: &Place, data: &Path) -> support::Ended {
    place.run(&["start", "--servers", "1", "--data", data.to_str().expect("a path in UTF-8")])
}

/// Proves that a data directory is refused with these words and this help, and works after `mend`.
#[track_caller]
fn refused_until(place: &Place, data: &Path, words: &[&str], help: &str, mend: impl FnOnce()) {
    let refused = start(place, data).refused(USAGE, words);
    assert!(refused.error.contains(help), "{}", refused.error);
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
    mend();
    start(place, data).done();
    place.run(&["stop"]).done();
}

#[test]
fn data_that_others_may_write_is_refused() {
    // Proves: of a data directory, the mode is refused by which others may write to it, whether it
    // is new or holds files, and with the proposed change it is accepted.
    let place = Place::new();
    let data = place.path("data");
    fs::create_dir(&data).unwrap();
    for mode in [0o777, 0o775, 0o1777] {
        set(&data, mode);
        let words = [data.to_str().unwrap(), &format!("its mode is {mode:o}")];
        refused_until(&place, &data, &words, "chmod go-w", || set(&data, 0o755));
    }
    // Its parent may be open to all, as /tmp is.
    let parent = place.path("parent");
    fs::create_dir(&parent).unwrap();
    set(&parent, 0o1777);
    start(&place, &parent.join("own")).done();
    assert_eq!(fs::metadata(parent.join("own")).unwrap().permissions().mode() & 0o777, 0o700);
    place.run(&["stop"]).done();
}

#[test]
fn data_whose_parts_are_links_is_refused() {
    // Proves: a link in place of the directory of objects, or of the catalogue, is not followed.
    for part in ["objects", "catalogue", "sizes"] {
        let place = Place::new();
        let (data, away) = (place.path("data"), place.path("away"));
        start(&place, &data).done();
        let local = place.file("local", &bytes(100_000));
        place.run(&["put", local.to_str().unwrap(), "kept"]).done();
        place.run(&["stop"]).done();
        fs::rename(data.join(part), &away).unwrap();
        symlink(&away, data.join(part)).unwrap();
        let words = [data.to_str().unwrap(), part, "is a symbolic link"];
        refused_until(&place, &data, &words, "rm ", || {
            fs::remove_file(data.join(part)).unwrap();
            fs::rename(&away, data.join(part)).unwrap();
        });
    }
}

#[test]
fn own_links_to_data_are_followed() {
    let place = Place::new();
    let (disk, link) = (place.path("disk"), place.path("link"));
    fs::create_dir(&disk).unwrap();
    symlink(&disk, &link).unwrap();
    start(&place, &link.join("data")).done();
    assert!(disk.join("data/objects").is_dir());
    place.run(&["stop"]).done();
}

#[test]
fn directories_of_other_users_are_refused() {
    // Proves: data and an instance that belong to another user, or are reached by his link, are
    // refused. Only root can make such directories.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let (data, link) = (place.path("data"), place.path("link"));
    fs::create_dir(&data).unwrap();
    chown(&data, Some(7), None).unwrap();
    let words = [data.to_str().unwrap(), "belongs to user 7"];
    refused_until(&place, &data, &words, "chown", || chown(&data, Some(0), None).unwrap());
    symlink(place.path(""), &link).unwrap();
    lchown(&link, Some(7), None).unwrap();
    let words = [link.to_str().unwrap(), "symbolic link of user 7"];
    let through = link.join("new");
    refused_until(&place, &through, &words, "without this link", || {
        lchown(&link, Some(0), None).unwrap();
    });
    lchown(&link, Some(7), None).unwrap();
    for instance in [link.join("instance"), link.join("other")] {
        let mut start = unisono(&["start", "--servers", "1", "--instance"]);
        start.arg(instance);
        support::run(start).refused(USAGE, &["instance directory", "symbolic link of user 7"]);
    }
    place.start(&["--servers", "1"]);
    chown(place.instance(), Some(7), None).unwrap();
    for words in [&["ls"][..], &["stop"], &["status"], &["start"]] {
        place.run(words).refused(USAGE, &["instance directory", "belongs to"]);
    }
    chown(place.instance(), Some(0), None).unwrap();
    place.run(&["stop"]).done();
}

#[test]
fn an_instance_that_others_may_write_is_refused() {
    // Proves: when others may write to the directory of an instance, no command uses it, whether it
    // asks servers or files; one that others may only read, as a copy of it may be, is used.
    let place = Place::with_servers(1);
    let local = place.file("local", b"x");
    let commands: [&[&str]; 6] = [
        &["ls"],
        &["stop"],
        &["status"],
        &["start"],
        &["put", local.to_str().unwrap(), "a"],
        &["bench", "--size", "1MiB"],
    ];
    for mode in [0o777, 0o770] {
        set(&place.instance(), mode);
        for words in commands {
            let refused = place.run(words).refused(USAGE, &[&format!("its mode is {mode:o}")]);
            assert!(refused.error.contains("chmod"), "{}", refused.error);
        }
    }
    set(&place.instance(), 0o755);
    place.run(&["ls"]).done();
    place.run(&["stop"]).done();
}
