//! Proves: an instance can be started, asked, stopped and started again with its files, is private,
//! and refuses to be mixed up with another.

use crate::support;
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use support::{
    DATA_CHECK, DONE, Ended, FAILED, NO_SERVER, Place, Running, USAGE, bytes, gone, is_running,
    processes_naming, processor_ticks, run, signal, unisono,
};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// The names of the fields of an object, sorted.
fn fields(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn an_instance_lives_and_ends() {
    // Proves: start, status and stop say what they did in JSON of the documented form; stop leaves
    // no process and no socket.
    let place = Place::new();
    let started = place.start(&["--servers", "3"]);
    assert_eq!(started["schema"], "unisono.start/1");
    assert_eq!(started["instance"], place.instance().to_str().unwrap());
    let servers = started["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 3);
    for (id, server) in servers.iter().enumerate() {
        assert_eq!(fields(server), ["address", "data", "id", "pid"]);
        assert_eq!(server["id"], id);
        assert!(is_running(server["pid"].as_u64().unwrap() as u32));
        assert!(Path::new(server["data"][0].as_str().unwrap()).is_dir());
    }
    let status = place.run(&["status", "--json"]).done().json();
    assert_eq!(status["schema"], "unisono.status/1");
    for (id, server) in status["servers"].as_array().unwrap().iter().enumerate() {
        let known = [
            "address",
            "bytes_moved",
            "cache_bytes",
            "catalogue_copies",
            "clients",
            "collective_bytes",
            "copies_behind_of",
            "cores",
            "dirty_bytes",
            "disks",
            "files",
            "files_behind",
            "host",
            "id",
            "pid",
            "refill",
            "repaired",
            "requests",
            "running",
            "system_seconds",
            "user_seconds",
        ];
        assert_eq!(fields(server), known);
        assert_eq!((&server["id"], &server["running"]), (&id.into(), &true.into()));
        assert_eq!(server["clients"], 0, "whoever asks is not counted");
        assert_eq!((&server["files"], &server["host"]), (&0.into(), &Value::Null));
        assert_eq!(fields(&server["disks"][0]), ["capacity_bytes", "free_bytes"]);
        assert_eq!(server["pid"], servers[id]["pid"]);
    }
    let text = place.run(&["status"]).done();
    assert_eq!(text.text().lines().count(), 4, "{}", text.text());
    let pids = place.server_pids();
    let stopped = place.run(&["stop", "--json"]).done().json();
    assert_eq!((&stopped["schema"], &stopped["stopped"]), (&"unisono.stop/1".into(), &3.into()));
    assert!(!pids.into_iter().any(is_running), "stop returns when all have ended");
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
    let sockets = std::fs::read_dir(place.instance()).unwrap();
    let names = sockets.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let sockets: Vec<String> = names.filter(|name| name.ends_with(".sock")).collect();
    assert_eq!(sockets, [""; 0]);
}

#[test]
fn stop_says_where_the_data_is_and_how_to_remove_it() {
    let place = Place::with_servers(2);
    let shown = place.instance().display().to_string();
    let stopped = place.run(&["stop"]).done();
    let lines: Vec<&str> = stopped.text().lines().collect();
    let data = |server: u32| format!("  {shown}/data/server-{server}");
    let removal = format!("to remove it: rm -r {shown}");
    assert_eq!(lines, ["2 servers stopped; the data remains:", &data(0), &data(1), &removal]);
    let disk = place.path("disk").display().to_string();
    place.start(&["--servers", "1", "--data", &disk]);
    let stopped = place.run(&["stop", "--json"]).done().json();
    assert_eq!(stopped["data"], serde_json::json!([{ "host": null, "directories": [disk] }]));
    place.start(&["--servers", "1", "--data", &disk]);
    let stopped = place.run(&["stop"]).done();
    let removal = format!("to remove it, remove these directories and {shown}");
    assert!(stopped.text().ends_with(&format!("  {disk}\n{removal}\n")), "{}", stopped.text());
}

#[test]
fn an_instance_is_private() {
    // Proves: nobody else can enter the instance's directory, read its key, logs or data, or
    // connect to its sockets, whatever the umask.
    let place = Place::new();
    let start = place.command(&["start", "--servers", "2"]);
    let mut command = std::process::Command::new("sh");
    command.env("UNISONO_ALLOW_ROOT", "true");
    command.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(start.get_program());
    run({
        command.args(start.get_args());
        command
    })
    .done();
    let instance = place.instance();
    assert_eq!(mode(&instance), 0o700);
    assert_eq!(mode(&instance.join("clients")), 0o700);
    assert_eq!(mode(&instance.join("key")), 0o600);
    assert_eq!(std::fs::read(instance.join("key")).unwrap().len(), 32);
    for server in 0..2 {
        assert_eq!(mode(&instance.join(format!("server-{server}.sock"))), 0o600);
        assert_eq!(mode(&instance.join(format!("server-{server}.log"))), 0o600);
    }
    let other = Place::with_servers(1);
    let key = |place: &Place| std::fs::read(place.instance().join("key")).unwrap();
    assert_ne!(key(&place), key(&other), "every instance has a key of its own");
}

#[test]
fn a_directory_that_was_there_is_left_as_it_is() {
    // Proves: start refuses, with code 2 and in three parts, a directory that others may enter,
    // that is a link, or that holds something else, and changes nothing of it; it takes an empty
    // private one, and one that was an instance's.
    let place = Place::new();
    let (directory, link) = (place.instance(), place.path("link"));
    let set = |mode| std::fs::set_permissions(&directory, PermissionsExt::from_mode(mode)).unwrap();
    let refused = |named: &str| {
        let path = directory.to_str().unwrap();
        place.run(&["start", "--servers", "1"]).refused(USAGE, &[path, named]);
    };
    std::fs::write(&directory, "x").unwrap();
    refused("not a directory");
    std::fs::remove_file(&directory).unwrap();
    std::fs::create_dir(&directory).unwrap();
    for wide in [0o755, 0o777, 0o710] {
        set(wide);
        refused(&format!("{wide:o}"));
        assert_eq!(mode(&directory), wide);
    }
    set(0o700);
    std::os::unix::fs::symlink(&directory, &link).unwrap();
    for path in [link.clone(), link.join("")] {
        let mut start = unisono(&["start", "--servers", "1", "--instance"]);
        start.arg(&path);
        run(start).refused(USAGE, &[link.to_str().unwrap(), "link"]);
    }
    std::fs::write(directory.join("mine"), "x").unwrap();
    refused("not empty");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    std::fs::remove_file(directory.join("mine")).unwrap();
    for _ in 0..2 {
        place.start(&["--servers", "1"]);
        place.run(&["stop"]).done();
    }
    set(0o750);
    refused("750");
}

#[test]
fn clients_of_tcp_servers_are_told_what_is_wrong_with_the_key() {
    // Proves: where servers listen by TCP, every command says at once, with code 3, that the key is
    // open to others or missing; with Unix sockets none needs it.
    let place = Place::new();
    place.start(&["--servers", "1", "--tcp", "localhost"]);
    let key = place.instance().join("key");
    let set = |mode| std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
    let local = place.file("local", b"x");
    let commands: [&[&str]; 5] =
        [&["ls"], &["status"], &["stop"], &["get", "a"], &["put", local.to_str().unwrap()]];
    set(0o644);
    for words in commands {
        place.run(words).refused(NO_SERVER, &[key.to_str().unwrap(), "644"]);
    }
    set(0o600);
    place.run(&["ls"]).done();
    let away = place.path("away");
    std::fs::rename(&key, &away).unwrap();
    place.run(&["ls"]).refused(NO_SERVER, &[key.to_str().unwrap()]);
    std::fs::rename(&away, &key).unwrap();
    place.run(&["stop"]).done();
    place.start(&["--servers", "1"]);
    std::fs::remove_file(&key).unwrap();
    place.run(&["ls"]).done();
    place.run(&["stop"]).done();
}

#[test]
fn a_stop_that_fails_says_why() {
    // Proves: when a server cannot write back because its data is gone, stop says so with code 1
    // and the server goes on; a stop after the data is back ends it.
    let place = Place::with_servers(1);
    let mut clients = support::group(&place, 2);
    clients.iter_mut().for_each(|client| client.order(&support::FRAGMENTS, "endless"));
    let moved = |server: &Value| server["bytes_moved"].as_u64() > Some(0);
    support::until("bytes move", || place.status().iter().all(moved).then_some(()));
    // They would notice, and remove the file.
    clients.iter().for_each(|client| signal(client.pid(), Signal::STOP));
    let (data, away) = (place.instance().join("data/server-0"), place.path("away"));
    std::fs::rename(&data, &away).unwrap();
    place.run(&["stop"]).refused(FAILED, &["cannot stop server 0", data.to_str().unwrap()]);
    let pid = place.server_pids()[0];
    assert!(is_running(pid));
    std::fs::rename(&away, &data).unwrap();
    drop(clients);
    assert_eq!(place.run(&["stop", "--json"]).done().json()["stopped"], 1);
    gone(pid);
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    // Proves: a key of mode 0644, or of another length, is refused by start and by a server, in
    // three parts that name the file.
    let place = Place::with_servers(1);
    place.run(&["stop"]).done();
    let key = place.instance().join("key");
    let named = key.to_str().unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    place.run(&["start", "--servers", "1"]).refused(NO_SERVER, &[named, "644"]);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&key, b"short").unwrap();
    place.run(&["start", "--servers", "1"]).refused(NO_SERVER, &[named, "5 bytes"]);
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
}

#[test]
fn an_instance_is_started_once() {
    // Proves: a second start is refused and disturbs nothing; so is one whose data another
    // instance is using.
    let place = Place::with_servers(2);
    let pids = place.server_pids();
    place.run(&["start", "--servers", "2"]).refused(USAGE, &["is running", &pids[0].to_string()]);
    assert_eq!(place.server_pids(), pids);
    assert_eq!(place.status().len(), 2);
    let mut thief = unisono(&["start", "--servers", "2", "--instance"]);
    thief.arg(place.path("thief"));
    for server in 0..2 {
        thief.arg("--data").arg(place.instance().join(format!("data/server-{server}")));
    }
    run(thief).refused(NO_SERVER, &["server 0"]);
    assert_eq!(place.status().len(), 2);
    assert_eq!(processes_naming(&place.path("thief")), [0; 0]);
}

#[test]
fn of_several_starts_at_once_one_succeeds() {
    // Proves: whoever comes first starts the servers, the others are told that they run, and
    // nobody takes away what another has written: the servers can be asked and stopped.
    for _ in 0..5 {
        let place = Place::new();
        let start = || Running::start(place.command(&["start", "--servers", "2"]));
        let starts: Vec<Running> = (0..4).map(|_| start()).collect();
        let ended: Vec<Ended> = starts.into_iter().map(Running::end).collect();
        let (done, refused): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|one| one.exit_code() == Some(DONE));
        assert_eq!(done.len(), 1, "{refused:?}");
        refused.into_iter().for_each(|one| _ = one.refused(USAGE, &["is running"]));
        assert_eq!(place.status().len(), 2);
        assert_eq!(place.run(&["stop", "--json"]).done().json()["stopped"], 2);
        assert_eq!(processes_naming(&place.path("")), [0; 0]);
    }
}

#[test]
fn a_stop_without_the_servers_key_says_so() {
    // Proves: servers that refuse whoever stops them are not waited for until they end, and go on.
    let place = Place::new();
    place.start(&["--servers", "1", "--tcp", "localhost"]);
    let key = place.instance().join("key");
    let right = std::fs::read(&key).unwrap();
    std::fs::write(&key, [7; 32]).unwrap();
    place.run(&["stop"]).refused(NO_SERVER, &["cannot stop server 0", "its key may differ"]);
    std::fs::write(&key, right).unwrap();
    place.run(&["stop"]).done();
}

#[test]
fn data_without_its_catalogue_is_not_taken_for_new() {
    // Proves: a start with data whose catalogue was emptied or lost is refused, as numbers of files
    // would be given again; with the catalogue back all is there.
    let place = Place::with_servers(2);
    let local = place.file("local", &bytes(100_000));
    // Nothing of it is on the server that has the catalogue.
    place.run(&["layout", "set", "/", "--pool", "1"]).done();
    place.run(&["put", local.to_str().unwrap(), "kept"]).done();
    place.run(&["stop"]).done();
    let records = place.instance().join("data/server-0/catalogue/records.redb");
    let away = place.path("away");
    std::fs::rename(&records, &away).unwrap();
    let start = || place.run(&["start", "--servers", "2"]);
    start().refused(DATA_CHECK, &["catalogue is lost", "records.redb"]);
    std::fs::write(&records, b"").unwrap();
    start().refused(DATA_CHECK, &["catalogue is lost"]);
    std::fs::rename(&away, &records).unwrap();
    start().done();
    assert_eq!(place.files(), ["kept"]);
}

#[test]
fn files_survive_a_restart() {
    // Proves: after stop and start, by a relative path too, every file has its name, its size and
    // its bytes; a removed one stays removed; new ones do not take the place of old ones.
    let place = Place::new();
    let data: Vec<String> = (0..4).map(|disk| format!("disk-{disk}")).collect();
    let mut words = vec!["--servers", "2"];
    data.iter().for_each(|directory| words.extend(["--data", directory]));
    place.start(&words);
    let contents: Vec<Vec<u8>> = [1, 100_000, 3_000_001].map(bytes).into();
    for (number, content) in contents.iter().enumerate() {
        let local = place.file("local", content);
        let name = format!("file {number}");
        let put = ["put", "--block", "64KiB", "--json", local.to_str().unwrap(), &name];
        let record = place.run(&put).done().json();
        assert_eq!(record["disks_per_server"], 2);
    }
    place.run(&["rm", "file 0"]).done();
    for _ in 0..2 {
        place.run(&["stop"]).done();
        place.run(&["ls"]).refused(NO_SERVER, &["instance"]);
        let mut start = unisono(&["start"]);
        start.current_dir(place.path("")).args(&words).args(["--instance", "instance"]);
        run(start).done();
        assert_eq!(place.files(), ["file 1", "file 2"]);
        for number in [1, 2] {
            let got = place.run(&["get", &format!("file {number}"), "-"]).done();
            assert!(got.output == contents[number], "the bytes of file {number}");
        }
        let local = place.file("local", b"new");
        place.run(&["put", local.to_str().unwrap(), "file 0"]).done();
        place.run(&["rm", "file 0"]).done();
    }
}

#[test]
fn disks_cannot_be_mixed_up() {
    // Proves: data directories in another order, shared among another number of servers, or with
    // an unreadable label are refused in three parts that name them, and nothing is started.
    let place = Place::new();
    let disks: Vec<String> =
        ["a", "b", "c", "d"].map(|disk| place.path(disk).to_str().unwrap().to_owned()).into();
    let words = |servers: &'static str, order: &[usize]| {
        let data = order.iter().flat_map(|&disk| ["--data".to_owned(), disks[disk].clone()]);
        let start = ["start", "--servers", servers].map(str::to_owned);
        start.into_iter().chain(data).collect::<Vec<String>>()
    };
    place.run(&words("2", &[0, 1, 2, 3])).done();
    place.run(&["stop"]).done();
    let refused = |servers, order: &[usize], named: &[&str]| {
        place.run(&words(servers, order)).refused(USAGE, named);
        assert_eq!(processes_naming(&place.path("")), [0; 0]);
    };
    refused("2", &[1, 0, 2, 3], &[&disks[1], "server 1 of 2"]);
    refused("2", &[0, 1, 3, 2], &[&disks[3], "disk 1 of 2"]);
    refused("4", &[0, 1, 2, 3], &[&disks[0], "server 0 of 2"]);
    refused("2", &[0, 1], &[&disks[0]]);
    refused("3", &[0, 1, 2, 3], &["4 directories for 3 servers"]);
    refused("2", &[0, 0], &["named twice"]);
    place.run(&words("2", &[0, 1, 2, 3])).done();
    place.run(&["stop"]).done();
    std::fs::write(place.path("c/unisono-disk.json"), "{").unwrap();
    refused("2", &[0, 1, 2, 3], &[&disks[2], "cannot be read"]);
    std::fs::write(place.path("c/unisono-disk.json"), "").unwrap();
    refused("2", &[0, 1, 2, 3], &[&disks[2], "cannot be read"]);
}

#[test]
fn data_that_was_named_is_not_forgotten() {
    // Proves: a start that names no data, of an instance whose files lie in directories that were
    // named, is refused with their names; when they have no files, or others are named, it is not.
    let place = Place::new();
    let named = ["start", "--servers", "1", "--data", "named"];
    let plain = ["start", "--servers", "1"];
    place.run(&named).done();
    place.run(&["stop"]).done();
    place.run(&plain).done();
    place.run(&["stop"]).done();
    std::fs::remove_dir_all(place.instance().join("data")).unwrap();
    place.run(&named).done();
    let local = place.file("local", b"kept");
    place.run(&["put", local.to_str().unwrap(), "kept"]).done();
    place.run(&["stop"]).done();
    let kept = place.path("named").display().to_string();
    let refused = place.run(&plain).refused(USAGE, &["files are in", &kept]);
    let told = format!("--servers 1 --data {kept}");
    assert!(refused.error.contains(&told), "{}", refused.error);
    assert!(!place.instance().join("data").exists(), "nothing is made");
    place.run(&named).done();
    assert_eq!(place.files(), ["kept"]);
}

#[test]
fn files_outlive_a_lost_label() {
    // Proves: where the label of the only disk is lost, all files are as they were, before and
    // after more starts; so they are when the label comes back.
    let place = Place::with_servers(1);
    let content = bytes(300_000);
    let local = place.file("local", &content);
    let label = place.instance().join("data/server-0/unisono-disk.json");
    let put = |name: &str| place.run(&["put", local.to_str().unwrap(), name]).done();
    put("first");
    place.run(&["stop"]).done();
    let first_label = std::fs::read(&label).unwrap();
    std::fs::remove_file(&label).unwrap();
    for name in ["second", "third"] {
        place.start(&["--servers", "1"]);
        put(name);
        place.run(&["stop"]).done();
    }
    std::fs::write(&label, first_label).unwrap();
    place.start(&["--servers", "1"]);
    for name in ["first", "second", "third"] {
        assert!(place.run(&["get", name, "-"]).done().output == content, "{name}");
    }
}

#[test]
fn data_of_two_instances_cannot_be_mixed() {
    // Proves: data directories that fit by their places but come from two instances, or of which
    // some are new, are refused in three parts that name them; those of each instance go on.
    let place = Place::new();
    let start = |directories: &[&str]| {
        let mut command = place.command(&["start", "--servers", "2"]);
        for one in directories {
            command.arg("--data").arg(place.path(one));
        }
        run(command)
    };
    let label = |one: &str| std::fs::read_to_string(place.path(one).join("unisono-disk.json"));
    let content = bytes(200_000);
    let local = place.file("local", &content);
    for pair in [["a0", "a1"], ["b0", "b1"]] {
        start(&pair).done();
        place.run(&["put", "--block", "64KiB", local.to_str().unwrap(), pair[0]]).done();
        place.run(&["stop"]).done();
    }
    let named = place.path("b1");
    start(&["a0", "b1"]).refused(USAGE, &[named.to_str().unwrap(), "another"]);
    let named = place.path("c");
    start(&["a0", "c"]).refused(USAGE, &[named.to_str().unwrap(), "no label"]);
    start(&["c", "b1"]).refused(USAGE, &[named.to_str().unwrap(), "no label"]);
    assert!(label("c").is_err(), "a refused start labels nothing");
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
    for pair in [["a0", "a1"], ["b0", "b1"]] {
        start(&pair).done();
        assert!(place.run(&["get", pair[0], "-"]).done().output == content);
        place.run(&["stop"]).done();
        let label: Value = serde_json::from_str(&label(pair[0]).unwrap()).unwrap();
        assert_eq!(fields(&label), ["disk", "disks_per_server", "server", "servers", "set"]);
        assert_eq!(label["set"].as_str().unwrap().len(), 32);
    }
}

#[test]
fn a_dead_server_is_named() {
    // Proves: when server 1 was killed, status says so with code 3 and shows the others, what there
    // is can be listed, other commands fail with its number and code 3, and stop and a new start
    // work.
    let place = Place::with_servers(3);
    let content = bytes(2_500_000);
    let local = place.file("local", &content);
    place.run(&["put", local.to_str().unwrap(), "kept"]).done();
    let pids = place.server_pids();
    signal(pids[1], Signal::KILL);
    gone(pids[1]);
    let status = place.run(&["status", "--json"]).failed(NO_SERVER, &["server 1"]).json();
    let running = status["servers"].as_array().unwrap().iter().map(|one| &one["running"]);
    assert_eq!(running.collect::<Vec<_>>(), [true, false, true]);
    let cause = status["servers"][1]["cause"].as_str().unwrap();
    assert!(cause.contains("server 1 disconnected"), "{cause}");
    let text = place.run(&["status"]).failed(NO_SERVER, &["server 1"]);
    assert!(text.text().contains("server 1  does not answer"), "{}", text.text());
    let space = place.run(&["df"]).failed(NO_SERVER, &["server 1"]);
    assert!(space.text().contains("1        does not answer"), "{}", space.text());
    assert_eq!(place.files(), ["kept"]);
    assert!(place.run(&["stat", "kept"]).done().text().contains("2500000"));
    place.run(&["ls", "kept"]).done();
    place.run(&["get", "kept", "-"]).refused(NO_SERVER, &["kept", "server 1"]);
    place.run(&["put", local.to_str().unwrap(), "new"]).refused(NO_SERVER, &["server 1"]);
    place.run(&["bench", "--size", "1MiB"]).refused(NO_SERVER, &["server 1"]);
    let stopped = place.run(&["stop", "--json"]).done().json();
    assert_eq!(stopped["stopped"], 2, "only those that ran are counted");
    assert_eq!(stopped["gone"], serde_json::json!([1]), "the other is told");
    assert!(!pids.into_iter().any(is_running));
    place.start(&["--servers", "3"]);
    assert_eq!(place.files(), ["kept"]);
    assert!(place.run(&["get", "kept", "-"]).done().output == content);
}

#[test]
fn root_must_say_that_it_means_it() {
    // Proves: root starts servers only with --allow-root, whatever command it is; others need not
    // say it.
    let place = Place::new();
    let start = |words: &[&str]| {
        let mut command = place.command(&[&["start", "--servers", "1"], words].concat());
        command.env_remove("UNISONO_ALLOW_ROOT");
        run(command)
    };
    if rustix::process::geteuid().is_root() {
        start(&[]).refused(USAGE, &["as root"]);
        for words in [&["bench", "--size", "1MiB"][..], &["bench", "tops"], &["demo"], &["doctor"]]
        {
            let mut command = unisono(words);
            command.env_remove("UNISONO_ALLOW_ROOT");
            run(command).refused(USAGE, &["as root"]);
        }
        assert!(!place.instance().exists(), "nothing may be made");
        start(&["--allow-root"]).done();
        place.run(&["stop"]).done();
        let mut by_environment = place.command(&["start", "--servers", "1"]);
        by_environment.env("UNISONO_ALLOW_ROOT", "1");
        run(by_environment).done();
    } else {
        start(&[]).done();
    }
}

#[test]
fn the_doctor_looks_at_everything() {
    // Proves: the doctor finds a working machine well, with and without an instance, leaves nothing
    // behind, and says with the code of the fault what is wrong: a server that was killed, a
    // directory that is not there.
    let place = Place::new();
    let found = place.run(&["doctor", "--json"]).done().json();
    let findings = found["findings"].as_array().expect("it found something");
    assert_eq!(findings.len(), 5);
    assert!(findings.iter().all(|finding| finding["ok"] == true), "{found}");
    place.start(&["--servers", "2"]);
    let directory = place.path("trial");
    std::fs::create_dir(&directory).expect("a test must have room");
    let words = ["doctor", "--directory", directory.to_str().expect("a path in UTF-8")];
    let well = place.run(&words).done();
    assert_eq!(well.text().lines().filter(|line| line.starts_with("ok ")).count(), 5);
    assert!(well.text().contains("2 servers"), "{}", well.text());
    assert_eq!(std::fs::read_dir(&directory).expect("it is there").count(), 0);
    signal(place.server_pids()[1], Signal::KILL);
    gone(place.server_pids()[1]);
    let ill = place.run(&words).failed(NO_SERVER, &["server 1"]);
    assert!(ill.text().contains("FAIL  instance"), "{}", ill.text());
    place.run(&["doctor", "--directory", "/nowhere"]).failed(USAGE, &["/nowhere"]);
}

#[test]
fn every_command_needs_an_instance() {
    // Proves: where no instance was started, or its file is damaged, every command that needs one
    // fails with code 3 and says where it looked.
    let place = Place::new();
    let local = place.file("local", b"x");
    let local = local.to_str().unwrap();
    let commands: [&[&str]; 16] = [
        &["cp", local, "unisono://a"],
        &["cat", "a"],
        &["mv", "a", "b"],
        &["mkdir", "d"],
        &["tree"],
        &["find"],
        &["du"],
        &["df"],
        &["stop"],
        &["status"],
        &["put", local],
        &["get", "a"],
        &["ls"],
        &["stat", "a"],
        &["rm", "a"],
        &["bench", "--size", "1MiB"],
    ];
    let named = place.instance().to_str().unwrap().to_owned();
    for words in commands {
        place.run(words).refused(NO_SERVER, &[&named]);
    }
    std::fs::create_dir(place.instance()).unwrap();
    std::fs::write(place.instance().join("instance.json"), "{\"servers\": 7}").unwrap();
    for words in commands {
        place.run(words).refused(NO_SERVER, &[&named]);
    }
    let mut by_environment = unisono(&["ls"]);
    by_environment.env("UNISONO_INSTANCE", place.instance());
    run(by_environment).refused(NO_SERVER, &[&named]);
}

#[test]
fn idle_servers_use_no_processor_time() {
    // Proves: servers that have worked and now have nothing to do, with a client connected that
    // has nothing to do either, use no processor time in a second.
    let place = Place::with_servers(2);
    let bench = ["bench", "--size", "4MiB", "--repeat", "1", "--clients", "2", "--json"];
    place.run(&bench).done();
    let _idle = support::group(&place, 2);
    let connected = |server: &Value| server["clients"] == 2;
    support::until("both clients are connected", || {
        place.status().iter().all(connected).then_some(())
    });
    let pids = place.server_pids();
    let ticks = || pids.iter().map(|pid| processor_ticks(*pid)).collect::<Vec<u64>>();
    let before = ticks();
    let (_sender, nothing) = channel::<()>();
    let waited = nothing.recv_timeout(Duration::from_secs(1));
    assert_eq!(waited, Err(RecvTimeoutError::Timeout));
    for (before, after) in before.into_iter().zip(ticks()) {
        // One tick may be that of the answer to the last status.
        assert!(after <= before + 1, "{before} ticks before, {after} after");
    }
}
