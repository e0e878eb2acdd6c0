//! Proves: the program in the README is that of the example, which is compiled; the example writes
//! what it says, by several processes together.

use crate::support;
use client::{ClientId, Connection, Group, Instance, OwnPart};
use std::path::Path;
use support::Place;

/// A file of the repository.
fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_program_of_the_readme_is_the_example() {
    let (readme, example) = (text("README.md"), text("examples/collective.rs"));
    let (_, sample) = readme.split_once("```rust\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    assert!(sample.lines().count() >= 15, "the sample is a whole program:\n{sample}");
    assert!(example.contains(sample), "the README shows another program:\n{sample}");
}

#[test]
fn the_call_of_the_readme_writes_each_block_in_its_place() {
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let instance = Instance::at(place.instance());
    std::thread::scope(|scope| {
        for rank in 0..3_u32 {
            let instance = instance.clone();
            scope.spawn(move || {
                let connection = Connection::open(&instance).unwrap();
                let group = Group::form(&connection, "field writers", rank, 3).unwrap();
                let file = connection.open_or_create("field").unwrap();
                let part = OwnPart::Dealt {
                    distribution: client::Distribution {
                        shape: vec![3000],
                        record_bytes: 8,
                        dimensions: vec![client::Dimension::Block],
                        grid: vec![3],
                        clients: 3,
                    },
                    client: ClientId(rank),
                    file_offset: 0,
                };
                let values = (0..1000_u64).map(|value| value + 1000 * u64::from(rank));
                let block: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
                group.write(&file, &part, &block).unwrap();
                file.close().unwrap();
            });
        }
    });
    let whole: Vec<u8> = (0..3000_u64).flat_map(u64::to_le_bytes).collect();
    assert!(place.run(&["get", "field", "-"]).done().output == whole);
}
