//! Proves: `select` finds the records that a scan finds, and writes them in every form so that it
//! is read again; bad input is told with what to do; a lost server is an error and nothing is left.

use crate::support;
use rustix::process::Signal;
use std::path::Path;
use support::{Ended, FAILED, NO_SERVER, Place, USAGE, signal};

/// Bytes of a record: an id, an energy, two coordinates, a tag.
const RECORD: usize = 4 + 8 + 2 * 4 + 3;
const TYPE: &str = "id:u4, energy:f8, at:2f4, tag:S3";
const COUNT: u32 = 20_000;

/// Records in an order that no field has.
fn records() -> Vec<u8> {
    let record = |number: u32| {
        let id = number.wrapping_mul(7919) % COUNT;
        let mut record = id.to_le_bytes().to_vec();
        record.extend((f64::from(id % 1_000) / 10.0).to_le_bytes());
        record.extend((id as f32).to_le_bytes());
        record.extend((-(id as f32)).to_le_bytes());
        record.extend([b'a' + (id % 26) as u8, b'x', 0]);
        record
    };
    (0..COUNT).flat_map(record).collect()
}

fn id_of(record: &[u8]) -> u32 {
    u32::from_le_bytes([record[0], record[1], record[2], record[3]])
}

/// The records whose ids are as wanted.
fn chosen(all: &[u8], wanted: impl Fn(u32) -> bool) -> Vec<u8> {
    all.chunks_exact(RECORD).filter(|record| wanted(id_of(record))).flatten().copied().collect()
}

fn select(place: &Place, words: &[&str]) -> Ended {
    place.run(&[&["select", "events"], words].concat())
}

/// A place with records behind a few other bytes, in blocks that end in records.
fn with_records(all: &[u8]) -> Place {
    let place = Place::with_servers(3);
    let local = place.file("local", &[&[0x55; 7][..], all].concat());
    let put = ["put", "--block", "4KiB"].map(std::ffi::OsStr::new);
    let words = [&put[..], &[local.as_os_str(), "events".as_ref()]].concat();
    place.run(&words).done();
    place
}

#[test]
fn records_are_written_in_every_form() {
    let all = records();
    let place = with_records(&all);
    let typed = ["--type", TYPE, "--offset", "7"];
    let wanted = "energy < 3 and not id in {5, 6} or at[1] <= -19990";
    let is_wanted = |id: u32| id % 1_000 < 30 && id != 5 && id != 6 || id >= 19_990;
    let expected = chosen(&all, is_wanted);
    let write = |name: &str, words: &[&str]| {
        let path = place.path(name);
        let output = ["--where", wanted, "--output", path.to_str().expect("it is a text")];
        let ended = select(&place, &[&typed[..], &output, words].concat()).done();
        (std::fs::read(path).expect("it was written"), ended)
    };
    let (raw, ended) = write("raw", &["--json"]);
    assert_eq!(raw, expected);
    let told = ended.json();
    assert_eq!(told["files"][0]["records"], expected.len() / RECORD);
    assert_eq!(told["of_records"], COUNT);
    let (csv, _) = write("table.csv", &[]);
    let csv = String::from_utf8(csv).expect("it is a text");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("id,energy,at[0],at[1],tag"));
    for (line, record) in lines.by_ref().zip(expected.chunks_exact(RECORD)) {
        let id = id_of(record);
        let (energy, tag) = (f64::from(id % 1_000) / 10.0, (b'a' + (id % 26) as u8) as char);
        assert_eq!(line, format!("{id},{energy:?},{0:?},{1:?},{tag}x", id as f32, -(id as f32)));
    }
    let printed = select(&place, &[&typed[..], &["--where", wanted]].concat()).done();
    assert_eq!(String::from_utf8_lossy(&printed.output), csv);
    let (npy, _) = write("table.npy", &[]);
    assert_eq!(npy[npy.len() - expected.len()..], expected);
    // A file that describes itself needs no type.
    let table = place.path("table.npy");
    place.run(&["put".as_ref(), table.as_os_str(), "table".as_ref()]).done();
    let counted = place.run(&["select", "table", "--count", "--where", "id % 2 == 1"]).done();
    let odd = chosen(&all, |id| is_wanted(id) && id % 2 == 1).len() / RECORD;
    assert_eq!(String::from_utf8_lossy(&counted.output).trim(), odd.to_string());
    let (parquet, _) = write("table.parquet", &[]);
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let (forced, _) = write("forced.csv", &["--format", "raw"]);
    assert_eq!(forced, expected);
}

#[test]
fn records_are_divided_by_a_key() {
    let all = records();
    let place = with_records(&all);
    let path = place.path("part.bin");
    let words = ["--type", TYPE, "--offset", "7", "--by", "id % 3", "--parts", "3", "--output"];
    select(&place, &[&words[..], &[path.to_str().expect("it is a text")]].concat()).done();
    for part in 0..3 {
        let found = std::fs::read(place.path(&format!("part.{part}.bin")));
        assert_eq!(found.expect("it was written"), chosen(&all, |id| id % 3 == part));
    }
}

#[test]
fn numbers_need_no_records() {
    let all = records();
    let place = with_records(&all);
    let number = |words: &[&str]| {
        let ended = select(&place, &[&["--type", TYPE, "--offset", "7"], words].concat()).done();
        String::from_utf8_lossy(&ended.output).trim().to_owned()
    };
    assert_eq!(number(&["--count"]), COUNT.to_string());
    assert_eq!(number(&["--count", "--where", "id < 100"]), "100");
    let sum = u64::from(COUNT) * u64::from(COUNT - 1) / 2;
    assert_eq!(number(&["--sum", "id"]), sum.to_string());
    assert_eq!(number(&["--min", "at[1]"]), "-19999.0");
    assert_eq!(number(&["--max", "energy", "--where", "energy < 7"]), "6.9");
    assert_eq!(number(&["--max", "id", "--where", "id > 99999"]), "none");
    let bins = number(&["--histogram", "id", "--edges", "0,100,1000.5,19999"]);
    assert_eq!(bins, "0.0,100.0,100\n100.0,1000.5,901\n1000.5,19999.0,18999");
    let blocks = |words: &[&str]| {
        let words = [&["--type", TYPE, "--offset", "7", "--json"], words].concat();
        let told = select(&place, &words).done().json();
        (told["value"].as_u64(), told["blocks_skipped"].as_u64().expect("it is a number"))
    };
    let none = ["--count", "--where", "energy > 1000"];
    assert_eq!(blocks(&none), (Some(0), 0));
    number(&["--summarise", "energy;at[1]"]);
    let all = (COUNT as usize * RECORD + 7).div_ceil(4096) as u64;
    assert_eq!(blocks(&none), (Some(0), all));
    let json = number(&["--sum", "energy", "--where", "id in {1, 2}", "--json"]);
    assert!(json.contains(r#""value":0.3"#), "{json}");
}

#[test]
fn bad_input_is_told() {
    let place = with_records(&records());
    let typed = ["--type", TYPE, "--offset", "7"];
    let refused = |words: &[&str], cause: &str| {
        select(&place, words).failed(USAGE, &[cause]);
    };
    refused(&["--count"], "does not begin with a header");
    refused(&["--count", "--type", TYPE], "no whole number of records");
    refused(&["--count", "--type", "id:q4"], "is no kind");
    refused(&["--count", "--type", "u1", "--offset", "10MiB"], "no whole number of records");
    let with = |words: &[&str], cause: &str| refused(&[&typed[..], words].concat(), cause);
    with(&["--count", "--where", "energi > 5"], "did you mean \"energy\"");
    with(&["--count", "--where", "tag > 5"], "is no number");
    with(&["--count", "--records", "99999999"], "beyond the file");
    with(&["--by", "id"], "a file for each part");
    with(&["--by", "energy", "--parts", "2", "--output", "x"], "integer");
    with(&["--format", "parquet"], "known at its end only");
    with(&["--histogram", "id", "--edges", "3,2"], "ascend");
    with(&["--histogram", "id"], "--edges");
    let path = place.path("part");
    let path = path.to_str().expect("it is a text");
    with(&["--by", "id", "--parts", "2", "--output", path], "and there are 2 clients");
    assert!(!Path::new(path).exists());
    place.run(&["select", "nothing", "--count"]).failed(FAILED, &["there is no file"]);
    place.assert_nothing_held();
}

#[test]
fn a_killed_server_is_an_error_and_leaves_no_file() {
    let place = with_records(&records());
    let processes = place.server_pids();
    signal(processes[1], Signal::KILL);
    let path = place.path("out.csv");
    let output = path.to_str().expect("it is a text");
    let words = ["--type", TYPE, "--offset", "7", "--output", output];
    select(&place, &words).failed(NO_SERVER, &[]);
    assert!(!path.exists());
}
