//! Proves: a module that a user sends selects records as a condition does, in all results of
//! `select`; one that fails ends its call with a cause, and servers go on meanwhile.

use crate::support;
use std::path::{Path, PathBuf};
use support::{Ended, Place, USAGE};

const TYPE: &str = "id:u4, energy:f8";
const COUNT: u32 = 200_000;

/// The module that selects records whose energy is above 7.5, with their ids.
const ABOVE: &str = include_str!("../../../docs/modules/above.wat");

fn with_events() -> Place {
    let place = Place::with_servers(2);
    let event = |id: u32| {
        let energy = f64::from(id.wrapping_mul(7919) % 1_000) / 100.0;
        [&id.to_le_bytes()[..], &energy.to_le_bytes()].concat()
    };
    let events: Vec<u8> = (0..COUNT).flat_map(event).collect();
    let local = place.file("local", &events);
    let put = ["put", "--block", "64KiB"].map(std::ffi::OsStr::new);
    place.run(&[&put[..], &[local.as_os_str(), "events".as_ref()]].concat()).done();
    place
}

/// A local file with the binary form of a module.
fn module(place: &Place, name: &str, text: &str) -> PathBuf {
    place.file(name, &wat::parse_str(text).expect("it is a module"))
}

fn select(place: &Place, module: &Path, words: &[&str]) -> Ended {
    let module = module.to_str().expect("it is a text");
    let begin = ["select", "events", "--type", TYPE, "--module", module];
    place.run(&[&begin[..], words].concat())
}

fn text(ended: Ended) -> String {
    String::from_utf8_lossy(&ended.done().output).into_owned()
}

#[test]
fn a_module_selects_as_a_condition_does() {
    let place = with_events();
    let above = module(&place, "above.wasm", ABOVE);
    let by_condition =
        |words: &[&str]| place.run(&[&["select", "events", "--type", TYPE], words].concat());
    for (by_module, same) in [
        (&[][..], &["--where", "energy > 7.5"][..]),
        (&["--where", "id % 3 == 0"], &["--where", "energy > 7.5 and id % 3 == 0"]),
        (&["--count"], &["--count", "--where", "energy > 7.5"]),
        (&["--sum", "answer()"], &["--sum", "id", "--where", "energy > 7.5"]),
        (&["--max", "answer()", "--json"], &["--max", "id", "--where", "energy > 7.5", "--json"]),
    ] {
        assert_eq!(text(select(&place, &above, by_module)), text(by_condition(same)), "{same:?}");
    }
    let out = place.path("part.bin");
    let parts = ["--by", "answer() % 3", "--parts", "3", "--output"];
    let parts = [&parts[..], &[out.to_str().expect("it is a text")]].concat();
    select(&place, &above, &parts).done();
    let part = || (0..3).map(|number| std::fs::read(place.path(&format!("part.{number}.bin"))));
    let found: Vec<_> = part().map(|bytes| bytes.expect("it was written")).collect();
    let words = ["--by", "id % 3", "--where", "energy > 7.5", "--parts", "3", "--output"];
    by_condition(&[&words[..], &[out.to_str().expect("it is a text")]].concat()).done();
    assert!(part().map(|bytes| bytes.expect("it was written")).eq(found));
}

#[test]
fn a_module_that_fails_is_told_and_disturbs_nobody() {
    let place = with_events();
    let with_body = |name: &str, body: &str| {
        let text = format!(
            "(module (memory (export \"memory\") 1) (func (export \"select\") \
             (param i32 i32 i32 i32) (result i32) {body}))"
        );
        module(&place, name, &text)
    };
    let endless = with_body("endless", "(loop $again br $again) i32.const 0");
    for (module, cause) in [
        (&endless, "it has not ended after"),
        (&with_body("traps", "unreachable"), "unreachable"),
        (&with_body("fails", "i32.const 7"), "it has returned the error 7"),
        (&module(&place, "imports", "(module (import \"a\" \"b\" (func)))"), "may import nothing"),
        (&place.file("text", b"(module)"), "no module of WebAssembly in binary form"),
        (
            &place.file("large", &[&b"\0asm"[..], &vec![0; 1 << 20]].concat()),
            "the limit is 1048576",
        ),
    ] {
        select(&place, module, &["--count"]).failed(USAGE, &["cause:", cause]);
    }
    let missing = place.path("missing");
    select(&place, &missing, &["--count"]).failed(USAGE, &["cannot read the module"]);
    select(&place, &endless, &["--count", "--operator", "peak"]).failed(USAGE, &["--operator"]);
    select(&place, &endless, &["--sum", "answer"]).failed(USAGE, &["there is no field"]);
    let above = module(&place, "above.wasm", ABOVE);
    assert_eq!(text(select(&place, &above, &["--count"])), format!("{}\n", COUNT / 1_000 * 249));
    // Servers answer others while a module does not end.
    std::thread::scope(|scope| {
        let looping = scope.spawn(|| select(&place, &endless, &["--count"]));
        for _ in 0..5 {
            place.run(&["ls"]).done();
        }
        let ended = looping.join().expect("it ends");
        ended.failed(USAGE, &["it has not ended after"]);
    });
}
