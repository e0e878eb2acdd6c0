//! A process of its own, with a library in front of the system's calls, so that its device can fail
//! or the process end at any of them.

use super::Place;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the directory that the library is about, in the process that has it.
const FAULTS: &str = "UNISONO_FAULTS";

/// The library `device.c`.
pub(crate) struct Library(Place);

impl Library {
    /// Builds it; `None`, and says so, where there is no compiler.
    pub(crate) fn build() -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/device.c");
        let built = Self(Place::new());
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(built.file()).arg(source).arg("-ldl");
        let Ok(status) = compiler.status() else {
            println!("skipped: there is no C compiler");
            return None;
        };
        assert!(status.success(), "the library is correct C");
        Some(built)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("device.so")
    }

    /// A process that runs test `name` of the file that calls this, and no other, about `place`.
    pub(crate) fn process(&self, name: &str, place: &Place) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
        command.args(["--exact", name, "--nocapture"]);
        command.env("LD_PRELOAD", self.file()).env(FAULTS, place.path());
        command
    }
}

/// The directory that the library is about, in the process that has it.
pub(crate) fn failing_directory() -> Option<PathBuf> {
    std::env::var_os(FAULTS).map(PathBuf::from)
}
