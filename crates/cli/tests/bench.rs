//! Proves: `bench` and `sim` measure what they are told to, check every byte, report it in JSON of
//! the documented form, and refuse what makes no sense before anything is started.

use crate::support;
use serde_json::Value;
use support::{Ended, NO_SERVER, Place, USAGE, run, unisono};

/// The fields of a row that only one of the reports has.
const BENCH_FIELDS: [&str; 2] = ["client_peak_bytes", "server_peak_bytes"];
const SIM_FIELDS: [&str; 3] = ["digest", "events", "host_seconds"];

/// The fields of a row of either report.
const FIELDS: [&str; 17] = [
    "block_bytes",
    "clients",
    "coefficient_of_variation",
    "disks_per_server",
    "file_bytes",
    "layout",
    "machine",
    "mib_s",
    "moved_mib_s",
    "pattern",
    "record_bytes",
    "seconds",
    "servers",
    "strategy",
    "sync",
    "trials",
    "verified",
];

fn bench(place: &Place, words: &str) -> Ended {
    let mut command = unisono(&["bench", "--directory"]);
    command.arg(place.path("")).args(words.split_whitespace());
    run(command)
}

fn sim(words: &str) -> Ended {
    let small = "sim --size 64KiB --clients 4 --servers 2 --trials 2";
    run(unisono(&small.split(' ').chain(words.split_whitespace()).collect::<Vec<_>>()))
}

/// The rows of a report of `schema`, each with every documented field, and measured.
fn rows(report: &Value, schema: &str) -> Vec<Value> {
    assert_eq!(report["schema"], schema);
    assert_eq!(report.as_object().expect("a report").len(), 2);
    let rows = report["results"].as_array().expect("rows").clone();
    let own = if schema == "unisono.bench/1" { &BENCH_FIELDS[..] } else { &SIM_FIELDS };
    let mut documented = [&FIELDS[..], own].concat();
    documented.sort_unstable();
    for row in &rows {
        let fields = row.as_object().expect("a row is an object").keys();
        let found: Vec<&str> = fields.map(String::as_str).collect();
        assert_eq!(found, documented);
        for field in ["mib_s", "moved_mib_s", "seconds"] {
            assert!(row[field].as_f64().is_some_and(|figure| figure > 0.0), "{field} in {row}");
        }
    }
    rows
}

/// The words of a field in each row.
fn column(rows: &[Value], field: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    rows.iter().map(|row| text(&row[field])).collect()
}

#[test]
fn ordinary_files_are_measured_in_place() {
    // Proves: the servers work on files of the directory, in blocks that its file system likes or
    // that are asked for; nothing is left there; what is no directory is refused.
    let (place, home) = (Place::new(), tempfile::tempdir().expect("a test has room"));
    let path = home.path().to_str().expect("it is UTF-8");
    let words = format!("--size 1MiB --clients 2 --servers 2 --in-place {path}");
    let report = bench(&place, &format!("{words} --json")).done().json();
    let measured = rows(&report, "unisono.bench/1");
    assert_eq!(measured.len(), 6, "two patterns by three strategies");
    for row in measured {
        assert_eq!((&row["layout"], &row["block_bytes"]), (&"in-place".into(), &(1 << 20).into()));
    }
    let shown = bench(&place, &format!("{words} --block 64KiB --pattern rbc")).done();
    let said = format!("ordinary files in {}, in blocks of 65536 bytes", path);
    assert!(shown.error.contains(&said), "{}", shown.error);
    assert_eq!(std::fs::read_dir(home.path()).expect("it is there").count(), 0);
    bench(&place, "--in-place /dev/null").refused(USAGE, &["in place", "no directory"]);
}

#[test]
fn every_strategy_moves_every_byte() {
    // Proves: each strategy in several patterns, record sizes and directions, with as many rows as
    // there are cases, in the order of the words, verified; no process or file is left.
    let place = Place::new();
    let words = "--json --size 1536KiB --clients 6 --servers 3 --repeat 2 --block 64KiB \
                 --pattern ra,rn,rb,rbc,wcc,wnb --record 24,8KiB";
    let rows = rows(&bench(&place, words).done().json(), "unisono.bench/1");
    assert_eq!(rows.len(), 6 * 2 * 3);
    let strategies = column(&rows[..3], "strategy");
    assert_eq!(strategies, ["caching", "two-phase", "disk-directed"]);
    assert_eq!(column(&[rows[0].clone(), rows[6].clone()], "pattern"), ["ra", "rn"]);
    for row in &rows {
        let counts = ["clients", "servers", "trials", "block_bytes", "file_bytes"];
        let counts = counts.map(|field| row[field].as_u64().unwrap());
        assert_eq!(counts, [6, 3, 2, 64 << 10, 1536 << 10]);
        assert_eq!((&row["verified"], &row["sync"]), (&true.into(), &false.into()));
        assert_eq!(row["machine"], "this-machine");
        let ratio = row["moved_mib_s"].as_f64().unwrap() / row["mib_s"].as_f64().unwrap();
        let copies = if row["pattern"] == "ra" { 6.0 } else { 1.0 };
        assert!((ratio - copies).abs() < 1e-9, "{row}");
    }
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0);
    assert_eq!(support::processes_naming(&place.path("")), [0; 0]);
}

#[test]
fn groups_of_clients_take_turns() {
    // Proves: a global barrier, and node groups of every size and of a size greater than the number
    // of clients, move every byte.
    let place = Place::new();
    let words = "--json --size 384KiB --clients 6 --servers 2 --repeat 1 --block 64KiB \
                 --pattern ra,rb,rbc,wcc,wnb --record 24,8KiB \
                 --strategy global-barrier,node-grouping";
    for size in ["", "--node-group-size 1", "--node-group-size 4", "--node-group-size 100"] {
        let words = format!("{words} {size}");
        let rows = rows(&bench(&place, &words).done().json(), "unisono.bench/1");
        assert_eq!(rows.len(), 5 * 2 * 2);
        assert_eq!(column(&rows[..2], "strategy"), ["global-barrier", "node-grouping"]);
        assert!(rows.iter().all(|row| row["verified"] == true), "{words}");
    }
    assert_eq!(support::processes_naming(&place.path("")), [0; 0]);
}

#[test]
fn distributions_are_words_too() {
    // Proves: --distribution names what a pattern has no letters for, reading and with --write;
    // grids and shapes need not divide evenly.
    let place = Place::new();
    for distribution in
        ["block,cyclic", "cyclic(3)", "cyclic(2),none,block", "none,cyclic(5)", "all"]
    {
        for direction in ["", "--write"] {
            let words = format!(
                "--json --size 200200 --record 7 --clients 5 --servers 2 --repeat 1 --block 4096 \
                 --distribution {distribution} {direction}"
            );
            let ended = bench(&place, &words);
            if (distribution, direction) == ("all", "--write") {
                ended.refused(USAGE, &["wa", "overlap"]);
                continue;
            }
            let rows = rows(&ended.done().json(), "unisono.bench/1");
            assert_eq!(column(&rows, "verified"), ["true"; 3], "{distribution} {direction}");
        }
    }
}

#[test]
fn one_client_one_server_one_byte() {
    // Proves: the smallest of everything works, more clients than records, and blocks larger than
    // the file.
    let place = Place::new();
    for words in [
        "--size 1 --record 1 --clients 1 --servers 1 --block 1",
        "--size 24 --record 8 --clients 7 --servers 2",
        "--size 1000 --record 10 --clients 3 --servers 3 --block 3 --outstanding 1 --cache 1",
    ] {
        let words = format!("--json --repeat 1 --pattern rb,wc,rcc,wbn {words}");
        let rows = rows(&bench(&place, &words).done().json(), "unisono.bench/1");
        assert_eq!(column(&rows, "verified"), ["true"; 12], "{words}");
    }
}

#[test]
fn a_running_instance_is_measured() {
    // Proves: a bench of an instance, with stable storage, uses its servers and disks and leaves
    // its files as they were; the table has a line for each case.
    let place = Place::new();
    let data = ["a", "b", "c", "d"].map(|disk| place.path(disk).to_str().unwrap().to_owned());
    let mut words = vec!["--servers", "2"];
    data.iter().for_each(|directory| words.extend(["--data", directory]));
    place.start(&words);
    let local = place.file("local", b"x");
    place.run(&["put", local.to_str().unwrap()]).done();
    let words = ["bench", "--size", "3MiB", "--clients", "3", "--repeat", "4", "--sync"];
    let json = [&words[..], &["--json", "--pattern", "wbc,rc", "--record", "512"]].concat();
    let rows = rows(&place.run(&json).done().json(), "unisono.bench/1");
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let counts = ["servers", "disks_per_server", "trials"].map(|field| row[field].as_u64());
        assert_eq!(counts, [Some(2), Some(2), Some(4)]);
        assert_eq!((&row["verified"], &row["sync"]), (&true.into(), &true.into()));
    }
    let table = place.run(&[&words[..], &["--record", "512"]].concat()).done();
    assert_eq!(table.text().lines().count(), 1 + 2 * 3, "{}", table.text());
    assert_eq!(table.text().matches("every byte").count(), 6, "{}", table.text());
    assert_eq!(place.files(), ["local"]);
    place.assert_nothing_held();
}

#[test]
fn a_bench_that_makes_no_sense_is_refused() {
    // Proves: each mistake ends with code 2 and names what is wrong, in three parts, before
    // anything is started.
    let place = Place::new();
    let mistakes: [(&str, &[&str]); 24] = [
        ("--clients 0", &["--clients", "at least one"]),
        ("--clients 5000", &["5000"]),
        ("--clients -1", &["-1"]),
        ("--servers 0", &["--servers", "at least one"]),
        ("--servers 5000", &["5000"]),
        ("--repeat 0", &["--repeat", "at least one"]),
        ("--outstanding 0", &["--outstanding", "at least one"]),
        ("--size 0", &["0 bytes", "record"]),
        ("--record 0", &["records of 0 bytes"]),
        ("--size 1000 --record 3", &["1000", "records of 3 bytes"]),
        ("--record 7", &["268435456", "records of 7 bytes"]),
        ("--size many", &["many"]),
        ("--size 99999999999999999999", &["99999999999999999999"]),
        ("--block 0", &["block of 0 bytes"]),
        ("--block 2GiB", &["block of 2147483648 bytes"]),
        (
            "--strategy disk",
            &[
                "\"disk\"",
                "caching, two-phase, disk-directed, noncollective, global-barrier or node-grouping",
            ],
        ),
        ("--strategy caching,magic", &["\"magic\""]),
        ("--pattern rbx", &["\"rbx\"", "did you mean \"rb\""]),
        ("--pattern wa", &["wa", "overlap"]),
        ("--distribution block,blok", &["\"blok\""]),
        ("--distribution cyclic(0)", &["\"cyclic(0)\""]),
        ("--distribution block --pattern rb", &["--distribution", "--pattern"]),
        ("--data a --servers 2", &["1 directories for 2 servers"]),
        ("--frobnicate", &["--frobnicate"]),
    ];
    for (words, named) in mistakes {
        bench(&place, words).refused(USAGE, named);
    }
    let mut nowhere = unisono(&["bench", "--size", "1MiB", "--directory"]);
    nowhere.arg(place.path("missing"));
    run(nowhere).refused(USAGE, &["missing"]);
    place.run(&["bench", "--size", "1MiB"]).refused(NO_SERVER, &["instance"]);
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0);
}

#[test]
fn a_simulation_is_the_same_for_the_same_seed() {
    // Proves: equal seeds give equal digests, times and counts of events; another seed another
    // digest where blocks lie at random; traced bytes are all in their places.
    let words = "--json --pattern rbc,wcn --record 8,8KiB --layout random-blocks";
    let simulate = |seed: &str| {
        let words = format!("{words} --seed {seed}");
        rows(&sim(&words).done().json(), "unisono.sim/1")
    };
    let (first, again, other) = (simulate("7"), simulate("7"), simulate("8"));
    assert_eq!(first.len(), 2 * 2 * 3);
    for field in ["digest", "seconds", "mib_s", "events"] {
        assert_eq!(column(&first, field), column(&again, field), "{field}");
    }
    assert_ne!(column(&first, "digest"), column(&other, "digest"));
    assert_eq!(column(&first, "machine"), ["tr94"; 12]);
    assert_eq!(column(&first, "layout"), ["random-blocks"; 12]);
    let traced = sim(&format!("{words} --seed 7 --payload traced")).done().json();
    let traced = rows(&traced, "unisono.sim/1");
    assert_eq!(column(&traced, "verified"), ["true"; 12]);
    assert_eq!(column(&traced, "seconds"), column(&first, "seconds"), "tracing takes no time");
    for distribution in ["block,cyclic", "cyclic(3)", "all"] {
        let words = format!("--json --payload traced --record 16 --distribution {distribution}");
        let rows = rows(&sim(&words).done().json(), "unisono.sim/1");
        assert_eq!(column(&rows, "verified"), ["true"; 3], "{distribution}");
    }
}

#[test]
fn a_simulation_that_makes_no_sense_is_refused() {
    // Proves: each mistake ends with code 2 and names what is wrong and what there is instead.
    let mistakes: [(&str, &[&str]); 14] = [
        ("--machine cray", &["\"cray\"", "tr94, tocs97, ideal-disks"]),
        ("--layout heap", &["\"heap\"", "contiguous, random-blocks, random-tracks"]),
        ("--payload real", &["\"real\"", "phantom, traced"]),
        (
            "--strategy magic",
            &[
                "\"magic\"",
                "caching, two-phase, disk-directed, noncollective, global-barrier or node-grouping",
            ],
        ),
        ("--pattern rbcc", &["\"rbcc\"", "did you mean \"rbc\""]),
        ("--pattern wa", &["wa", "overlap"]),
        ("--record 0", &["records of 0 bytes"]),
        ("--size 65536 --record 7", &["65536", "records of 7 bytes"]),
        ("--block 0", &["block of 0 bytes"]),
        ("--disks 0", &["--disks", "at least one"]),
        ("--disks 2000000", &["2000000"]),
        ("--seed x", &["'x'"]),
        ("--clients 4 --clients 5", &["--clients"]),
        ("--distribution cyclic,", &["\"\""]),
    ];
    for (words, named) in mistakes {
        let words = format!("sim {words}");
        run(unisono(&words.split(' ').collect::<Vec<_>>())).refused(USAGE, named);
    }
}

#[test]
fn a_plot_shows_each_strategy_over_the_record_size() {
    // Proves: the picture has a line for each strategy in the legend and in the plot, and a mark
    // for each record size; a command that fails leaves none.
    let place = Place::new();
    let plot = place.path("plot.svg");
    let words = format!(
        "--size 96KiB --clients 2 --servers 1 --repeat 1 --block 8KiB --pattern rc --record 8,1KiB \
         --plot {}",
        plot.display()
    );
    bench(&place, &format!("{words} --distribution block")).code(USAGE);
    assert!(!plot.exists(), "nothing was measured");
    bench(&place, &words).done();
    let picture = std::fs::read_to_string(&plot).expect("a picture");
    assert_eq!(picture.matches("<polyline").count(), 6, "{picture}");
    for word in [">caching<", ">8 B<", ">1 KiB<", "96 KiB in blocks of 8 KiB"] {
        assert!(picture.contains(word), "{word}: {picture}");
    }
}

#[test]
fn help_is_no_error() {
    // Proves: --help of unisono and of each command, and --version, are results with code 0; no
    // command, or one that does not exist, is a mistake with code 2.
    let commands =
        ["start", "stop", "status", "put", "get", "ls", "stat", "rm", "bench", "sim", "demo"];
    let help = run(unisono(&["--help"])).done();
    for command in commands {
        assert!(help.text().contains(command), "{command} is missing in the help");
        let own = run(unisono(&[command, "--help"])).done();
        assert!(own.text().contains("--json"), "{command}: {}", own.text());
        assert_eq!(own.error, "");
    }
    for code in ["0", "1", "2", "3", "4", "5", "6", "130"] {
        let mut words = help.text().split_whitespace();
        assert!(words.any(|word| word == code), "exit code {code} must be documented");
    }
    assert!(run(unisono(&["--version"])).done().text().starts_with("unisono "));
    run(unisono(&[""; 0])).refused(USAGE, &["no command"]);
    run(unisono(&["frobnicate"])).refused(USAGE, &["frobnicate"]);
    run(unisono(&["get"])).refused(USAGE, &["NAME"]);
    run(unisono(&["put", "a", "b", "c"])).refused(USAGE, &["'c'"]);
}
