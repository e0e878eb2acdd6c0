//! Proves: `sim` takes a scenario from a file and from options, explains it as a file that gives
//! the same results, and refuses what makes no sense with its place.

use crate::support;
use serde_json::Value;
use support::{Ended, Place, USAGE, run, unisono};

/// A small machine of every kind of key.
const FILE: &str = "\
machine = \"tocs97\"
layout = \"random-blocks\"
pattern = [\"rb\", \"wcc\"]
record = 64
size = \"64KiB\"
clients = 4
servers = 2
disks-per-server = 2
strategy = \"all\"
trials = 2
sync = true

[parameters]
buffers-per-disk = 3
queue = \"fcfs\"
client-write-ns = 40_000
";

/// `sim` in the directory of a place.
fn sim(place: &Place, words: &str) -> Ended {
    let words = format!("sim {words}");
    let mut command = unisono(&words.split_whitespace().collect::<Vec<_>>());
    command.current_dir(place.path(""));
    run(command)
}

/// The rows, without what depends on the host.
fn rows(ended: &Ended) -> Vec<Value> {
    let mut rows = ended.json()["results"].as_array().expect("rows").clone();
    for row in &mut rows {
        assert!(row.as_object_mut().expect("a row").remove("host_seconds").is_some());
    }
    rows
}

#[test]
fn machines_that_are_too_large_are_refused_at_once() {
    // Proves: a scenario that would take gigabytes is refused with the limit and its keys, before
    // it takes them, as are too many trials; it can be explained nevertheless.
    let place = Place::new();
    let size = "--machine tr94 --pattern rc --strategy disk-directed --size 256KiB";
    let large = format!("{size} --servers 1000000 --trials 1");
    let refused = sim(&place, &large).refused(USAGE, &["1000016 nodes", "the limit is 4 GiB"]);
    assert!(refused.error.contains("the keys clients and servers"), "{}", refused.error);
    sim(&place, &format!("{large} --explain")).done();
    let many = format!("{size} --trials 1048576 --pattern rb,rc");
    sim(&place, &many).refused(USAGE, &["3145728 trials", "1048576"]);
}

#[test]
fn what_is_explained_gives_the_same_results() {
    // Proves: a file, the options that say the same, and what `--explain` prints of either give
    // equal rows, digests included.
    let place = Place::new();
    place.file("case.toml", FILE.as_bytes());
    let options = "--machine tocs97 --layout random-blocks --pattern rb,wcc --record 64 \
                   --size 64KiB --clients 4 --servers 2 --disks 2 --strategy all --trials 2 --sync \
                   --buffers 3 --set queue=fcfs --set client-write-ns=40000";
    let of_file = rows(&sim(&place, "--scenario case.toml --json").done());
    assert_eq!(of_file.len(), 6);
    assert_eq!(of_file[0]["changed"][1], "buffers-per-disk = 3");
    assert_eq!(rows(&sim(&place, &format!("{options} --json")).done()), of_file);
    for (name, words) in [("one.toml", "--scenario case.toml"), ("two.toml", options)] {
        let explained = sim(&place, &format!("{words} --explain")).done();
        place.file(name, &explained.output);
        assert_eq!(rows(&sim(&place, &format!("--scenario {name} --json")).done()), of_file);
    }
}

#[test]
fn options_come_before_the_file() {
    let place = Place::new();
    place.file("case.toml", FILE.as_bytes());
    let words = "--scenario case.toml --explain --clients 5 --sync=false --pattern rc \
                 --set queue=cscan";
    let text = sim(&place, words).done().text().to_owned();
    for line in [
        "# Value: option --clients.\nclients = 5\n",
        "# Value: option --sync.\nsync = false\n",
        "# Value: option --pattern.\npattern = \"rc\"\n",
        "# Value: case.toml, line 7.\nservers = 2\n",
        "# Value: case.toml, line 14; preset tocs97 has 2.\nbuffers-per-disk = 3\n",
        "# Value: option --set queue; preset tocs97 has \"cscan-of-file\".\nqueue = \"cscan\"\n",
        "# Value: preset tocs97.\noutstanding-per-disk = 4\n",
        "# Value: default.\nblock = \"8KiB\"\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let json = sim(&place, &format!("{words} --json")).done().json();
    assert_eq!(json["schema"], "unisono.scenario/1");
    assert_eq!(json["scenario"]["clients"]["value"], 5);
    assert_eq!(json["parameters"]["buffers-per-disk"]["from"]["line"], 14);
    assert_eq!(json["parameters"]["send-ns"]["from"]["preset"], "tocs97");
}

#[test]
fn nonsense_is_refused_where_it_is() {
    let place = Place::new();
    let refused = |text: &str, words: &str, parts: &[&str], help: &str| {
        place.file("case.toml", text.as_bytes());
        let words = format!("--scenario case.toml {words}");
        let ended = sim(&place, &words).refused(USAGE, parts);
        let told = ended.error.lines().any(|it| it.starts_with("help:") && it.contains(help));
        assert!(told, "{help} is missing in {}", ended.error);
    };
    refused("\nclient = 4", "", &["case.toml, line 2"], "did you mean clients?");
    refused("clients = \"x\"", "", &["case.toml, line 1", "from 1 to 1048576"], "scenarios.md");
    refused("machine = \"tosc97\"", "", &["line 1", "tr94, tocs97, ideal"], "did you mean tocs97?");
    let none = "[parameters]\nbuffers-per-disk = 0";
    refused(none, "", &["case.toml, line 2", "from 1 to 4096"], "scenarios.md");
    refused("disks-per-server = 0", "--explain", &["case.toml, line 1"], "scenarios.md");
    let large = "block = \"256KiB\"";
    refused(
        large,
        "--machine tocs97 --explain",
        &["case.toml", "262144", "131072"],
        "smaller block",
    );
    refused("", "--set buffer=2", &["--set", "\"buffer\""], "did you mean buffers-per-disk?");
    refused("", "--set queue=scan", &["--set queue", "fcfs, cscan"], "did you mean cscan?");
    refused("", "--buffers 0", &["--buffers"], "--help");
    refused("trials = 2", "--plot heads.svg --pattern rb", &["one trial"], "--trials 1");
    refused("", "--explain --plot heads.svg", &["--explain"], "--help");
    sim(&place, "--scenario none.toml").refused(USAGE, &["none.toml"]);
}
