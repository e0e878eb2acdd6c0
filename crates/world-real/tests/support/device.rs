//! Process with a library in front of its system calls, so that its device can fail or the process
//! end at any of them.

use super::Place;
use super::preloaded::{self, FAULTS};
use std::path::PathBuf;
use std::process::Command;

/// Directory with the built library `device.c`.
pub(crate) struct Library(Place);

impl Library {
    /// Builds the library; returns `None`, with a note, if there is no compiler.
    pub(crate) fn build() -> Option<Self> {
        let place = Place::new();
        preloaded::build(place.path()).map(|_| Self(place))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("device.so")
    }

    /// Returns a command that runs test `name` of the calling file, and no other, on `place`.
    pub(crate) fn process(&self, name: &str, place: &Place) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
        command.args(["--exact", name, "--nocapture"]);
        command.env("LD_PRELOAD", self.file()).env(FAULTS, place.path());
        command
    }
}

/// Returns the directory that the preloaded library affects, in the process that has it.
pub(crate) fn failing_directory() -> Option<PathBuf> {
    std::env::var_os(FAULTS).map(PathBuf::from)
}
