//! Proves: servers that are started by a program with an operator of its own select records by it,
//! and its numbers serve as keys and values; other servers say that they have none.

use crate::support;
use std::path::Path;
use support::{Place, USAGE, program, run};

const TYPE: &str = "id:u4, signal:5f4";

/// A record with a number and five samples.
fn record(id: u32, signal: [f32; 5]) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    signal.iter().for_each(|sample| bytes.extend(sample.to_le_bytes()));
    bytes
}

#[test]
fn servers_select_by_an_operator_of_their_program() {
    let place = Place::new();
    let path = Path::new(env!("CARGO_BIN_EXE_unisono")).with_file_name("examples/own_operator");
    assert!(path.is_file(), "{}: cargo build --workspace --examples", path.display());
    let mut start = program(path.clone(), &["start", "--servers", "3", "--instance"]);
    start.arg(place.instance());
    run(start).done();
    // The number is no sample above 5. Peaks are at 3, nowhere, at 5 and, since it is low, nowhere.
    let records = [
        record(1, [0.0, 1.0, 9.0, 3.0, 0.0]),
        record(2, [0.0, 2.0, 4.0, 8.0, 9.0]),
        record(3, [0.0, 0.0, 1.0, 6.5, 6.0]),
        record(4, [0.0, 1.0, 2.0, 1.0, 0.0]),
    ];
    let many: Vec<u8> = records.iter().cycle().take(40_000).flatten().copied().collect();
    let local = place.file("local", &many);
    let put = ["put", "--block", "64KiB"].map(std::ffi::OsStr::new);
    place.run(&[&put[..], &[local.as_os_str(), "signals".as_ref()]].concat()).done();
    let select = |words: &[&str]| {
        place.run(&[&["select", "signals", "--type", TYPE, "--operator", "peak"], words].concat())
    };
    let golden =
        |words: &[&str]| String::from_utf8_lossy(&select(words).done().output).into_owned();
    assert_eq!(golden(&["--count"]), "20000\n");
    assert_eq!(golden(&["--count", "--where", "id > 1"]), "10000\n");
    assert_eq!(golden(&["--max", "answer()"]), "4\n");
    assert_eq!(golden(&["--sum", "answer()"]), "70000\n");
    let first = golden(&["--records", "4"]);
    let names = "id,signal[0],signal[1],signal[2],signal[3],signal[4]\n";
    assert_eq!(first, format!("{names}1,0.0,1.0,9.0,3.0,0.0\n3,0.0,0.0,1.0,6.5,6.0\n"));
    let out = place.path("by_position");
    let by = ["--by", "answer()", "--parts", "5", "--output", out.to_str().expect("it is a text")];
    select(&by).done();
    let part =
        |number: u32| std::fs::read(out.with_extension(number.to_string())).expect("it is there");
    assert!(part(3) == records[0].repeat(10_000));
    assert!(part(4) == records[2].repeat(10_000));
    assert_eq!((part(0), part(1), part(2)), (vec![], vec![], vec![]));
    // A peak at 4, and parts 0 to 3.
    let few = ["--by", "answer()", "--parts", "4", "--output", out.to_str().expect("it is a text")];
    select(&few).failed(USAGE, &["the key of record 2 is 4, and there are 4 clients (0 to 3)"]);
    let odd = ["select", "signals", "--type", "V3", "--operator", "peak", "--count"];
    let odd = [&odd[..], &["--records", "9"]].concat();
    place.run(&odd).failed(USAGE, &["the operator peak needs records of samples of four bytes"]);
    assert_eq!(golden(&["--count"]), "20000\n", "nothing else has failed");
    place.run(&["stop"]).done();
    place.start(&["--servers", "3"]);
    select(&["--count"]).failed(USAGE, &["the servers have no operator \"peak\""]);
}
