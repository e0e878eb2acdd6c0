//! The library `device.c`, which is preloaded where a device is to fail, to be slow, or to kill its
//! process. Shared with the tests of the command, so it needs nothing beside it but its source.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the directory that the library is about, in the process that has it.
pub(crate) const FAULTS: &str = "UNISONO_FAULTS";

/// Builds the library in `directory`; `None`, and says so, where there is no compiler.
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
