//! Proves: an instance by TCP works with each protection of its connections, says which one it has,
//! and takes the one for its address when none is chosen.

use crate::support;
use serde_json::Value;
use support::{Place, USAGE, bytes, run};

/// Words of the option, and what `status` says.
const PROTECTIONS: [(&str, &str); 3] = [
    ("plain", "connections by TCP, plain"),
    ("integrity", "connections by TCP, integrity (not encrypted)"),
    ("private", "connections by TCP, private (encrypted)"),
];

/// Protection of an instance, as its status says.
fn told(place: &Place) -> Value {
    place.run(&["status", "--json"]).done().json()["wire"].clone()
}

#[test]
fn each_protection_moves_data_and_is_told() {
    for (word, words) in PROTECTIONS {
        let place = Place::new();
        let data = bytes(3 << 20);
        let local = place.file("local", &data);
        let started = place.start(&["--servers", "2", "--tcp", "127.0.0.1", "--wire", word]);
        assert_eq!(started["wire"], word);
        assert_eq!(told(&place), word);
        let text = place.run(&["status"]).done();
        assert!(text.text().contains(words), "{}", text.text());
        place.run(&["put", local.to_str().unwrap(), "f"]).done();
        let copy = place.path("copy");
        place.run(&["get", "f", copy.to_str().unwrap()]).done();
        assert!(std::fs::read(copy).unwrap() == data, "{word}");
        // Each strategy with every byte checked. Clients of two-phase transfers also connect to one
        // another.
        let words = ["--size", "4MiB", "--clients", "4", "--record", "8KiB", "--repeat", "1"];
        let bench = ["bench", "--pattern", "wbc,rbc", "--json"];
        let rows = place.run(&[&bench[..], &words].concat()).done().json();
        assert_eq!(rows["results"].as_array().unwrap().len(), 2 * 3, "{rows}");
        place.run(&["stop"]).done();
    }
}

#[test]
fn the_address_decides_without_a_word() {
    let place = Place::new();
    let started = place.start(&["--servers", "1", "--tcp", "127.0.0.1"]);
    assert_eq!((&started["wire"], told(&place)), (&"plain".into(), "plain".into()));
    place.run(&["stop"]).done();
    // Nothing is sent there.
    let elsewhere = client::own_address_towards("192.0.2.77:9");
    match elsewhere.ok().filter(|own| !own.is_loopback() && own.is_ipv4()) {
        None => eprintln!("not tested: this machine has only a loopback interface"),
        Some(own) => {
            let place = Place::new();
            let started = place.start(&["--servers", "1", "--tcp", &own.to_string()]);
            assert_eq!((&started["wire"], told(&place)), (&"private".into(), "private".into()));
            place.run(&["stop"]).done();
        }
    }
}

#[test]
fn unix_sockets_need_no_protection() {
    let place = Place::new();
    let mut start = place.command(&["start", "--servers", "1", "--wire", "private"]);
    start.arg("--json");
    let started = run(start).done();
    assert!(started.error.contains("--wire private changes nothing"), "{}", started.error);
    assert_eq!((&started.json()["wire"], told(&place)), (&Value::Null, Value::Null));
    let text = place.run(&["status"]).done();
    assert!(text.text().contains("connections by Unix sockets"), "{}", text.text());
    place.run(&["stop"]).done();
}

#[test]
fn an_unknown_word_is_refused() {
    let place = Place::new();
    for command in [&["start"][..], &["bench", "--tcp", "127.0.0.1"], &["run"]] {
        let words = [command, &["--wire", "secret"], &["true"][..usize::from(command == ["run"])]];
        let told = ["'secret' for '--wire", "write plain, integrity or private"];
        place.run(&words.concat()).refused(USAGE, &told);
    }
}
