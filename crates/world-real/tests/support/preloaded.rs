//! Library `device.c`, which is preloaded so that a device fails or is slow, or the process is
//! killed. The tests of the command share this file, so it needs nothing beside it but its source.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the directory that the library affects.
pub(crate) const FAULTS: &str = "UNISONO_FAULTS";

/// Builds the library in `directory`; returns `None`, with a note, if there is no compiler.
pub(crate) fn build(directory: &Path) -> Option<PathBuf> {
    let library = directory.join("device.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-x", "c", "-", "-o"]).arg(&library).arg("-ldl");
    let Ok(mut running) = compiler.stdin(Stdio::piped()).spawn() else {
        println!("skipped: there is no C compiler");
        return None;
    };
    let mut input = running.stdin.take().expect("it was given one");
    input.write_all(include_bytes!("device.c")).expect("a compiler reads its source");
    drop(input);
    assert!(running.wait().expect("it ends").success(), "the library is correct C");
    Some(library)
}
