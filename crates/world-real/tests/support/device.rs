//! A process of its own, with a library in front of the system's calls, so that its device can fail
//! or the process end at any of them.

use super::Place;
use super::preloaded::{self, FAULTS};
use std::path::PathBuf;
use std::process::Command;

/// The library `device.c`.
pub(crate) struct Library(Place);

impl Library {
    /// Builds it; `None`, and says so, where there is no compiler.
    pub(crate) fn build() -> Option<Self> {
        let place = Place::new();
        preloaded::build(place.path()).map(|_| Self(place))
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
