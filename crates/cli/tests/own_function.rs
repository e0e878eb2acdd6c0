//! Proves: servers that are started by a program with functions of its own select records by them;
//! one that fails ends its call and nothing else; other servers say that they have none.

use crate::support;
use std::path::Path;
use support::{Place, USAGE, program, run};

const TYPE: &str = "id:u4, p:3f4, energy:f8";

/// A particle with a momentum along each axis, and an energy.
fn particle(id: u32, p: [f32; 3], energy: f64) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    p.iter().for_each(|p| bytes.extend(p.to_le_bytes()));
    bytes.extend(energy.to_le_bytes());
    bytes
}

#[test]
fn servers_select_by_functions_of_their_program() {
    let place = Place::new();
    let path = Path::new(env!("CARGO_BIN_EXE_unisono")).with_file_name("examples/own_function");
    assert!(path.is_file(), "{}: cargo build --workspace --examples", path.display());
    let mut start = program(path, &["start", "--servers", "3", "--instance"]);
    start.arg(place.instance());
    run(start).done();
    // Masses of 4, 0, 12 and, since it is none, 0.
    let particles = [
        particle(1, [3.0, 0.0, 0.0], 5.0),
        particle(2, [0.0, 1.0, 0.0], 1.0),
        particle(3, [3.0, 4.0, 0.0], 13.0),
        particle(4, [0.0, 0.0, 9.0], 1.0),
    ];
    let many: Vec<u8> = particles.iter().cycle().take(40_000).flatten().copied().collect();
    let local = place.file("local", &many);
    let put = ["put", "--block", "64KiB"].map(std::ffi::OsStr::new);
    place.run(&[&put[..], &[local.as_os_str(), "particles".as_ref()]].concat()).done();
    let select =
        |words: &[&str]| place.run(&[&["select", "particles", "--type", TYPE], words].concat());
    let mass = "custom.mass(p[0], p[1], p[2], energy)";
    let heavy = format!("{mass} > 3.5");
    let number =
        |words: &[&str]| String::from_utf8_lossy(&select(words).done().output).trim().to_owned();
    assert_eq!(number(&["--count", "--where", &heavy]), "20000");
    assert_eq!(number(&["--max", mass]), "12.0");
    assert_eq!(number(&["--sum", mass, "--where", "id == 1"]), "40000.0");
    let out = place.path("heavy");
    let found = ["--where", &heavy, "--output", out.to_str().expect("it is a text")];
    select(&found).done();
    let expected: Vec<u8> = [&particles[0], &particles[2]]
        .into_iter()
        .cycle()
        .take(20_000)
        .flatten()
        .copied()
        .collect();
    assert!(std::fs::read(&out).expect("it was written") == expected);
    let fails = "custom.failing(energy) > 0";
    select(&["--count", "--where", fails])
        .failed(USAGE, &["the function custom.failing has failed"]);
    // Nothing else has.
    assert_eq!(number(&["--count", "--where", &heavy]), "20000");
    for wrong in ["custom.mass(energy) > 1", "custom.other(energy) > 1"] {
        select(&["--count", "--where", wrong]).failed(USAGE, &["the servers have no function"]);
    }
    place.run(&["stop"]).done();
    place.start(&["--servers", "3"]);
    select(&["--count", "--where", &heavy])
        .failed(USAGE, &["no function custom.mass of 4 numbers"]);
}
