//! Notes that the recorder of each rank leaves beside its stream: lines `not-recorded NAME`, and at
//! the end `cost CALLS NANOSECONDS`.

use interface::UserError;
use std::collections::BTreeSet;
use std::path::Path;

/// Begin of the names of notes; the number of the rank follows.
const PREFIX: &str = "recorder.";

/// Number of calls from which their mean cost means something.
const CALLS_MIN: u64 = 1000;

/// Notes of all ranks.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Notes {
    /// Names of calls that were not recorded, in the order of the alphabet.
    pub(super) not_recorded: Vec<String>,
    calls: u64,
    nanoseconds: u64,
}

/// True for the name of a file of notes.
pub(super) fn is_notes(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

impl Notes {
    /// Reads the notes in a directory and removes them.
    ///
    /// # Errors
    /// Fails when they cannot be read.
    pub(super) fn take(directory: &Path) -> Result<Self, UserError> {
        let failed = |error: std::io::Error| {
            UserError::usage(
                format!("cannot read the notes in {}", directory.display()),
                error.to_string(),
                "leave the directory alone while a program is recorded",
            )
        };
        let (mut notes, mut names) = (Self::default(), BTreeSet::new());
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_notes(&entry.file_name().to_string_lossy()) {
                let text = std::fs::read_to_string(entry.path()).map_err(failed)?;
                text.lines().for_each(|line| notes.add(line, &mut names));
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        notes.not_recorded = names.into_iter().collect();
        Ok(notes)
    }

    fn add(&mut self, line: &str, names: &mut BTreeSet<String>) {
        if let Some(name) = line.strip_prefix("not-recorded ") {
            names.insert(name.to_owned());
        } else if let Some(cost) = line.strip_prefix("cost ") {
            let mut numbers = cost.split(' ').map(|number| number.parse().unwrap_or(0));
            self.calls += numbers.next().unwrap_or(0);
            self.nanoseconds += numbers.next().unwrap_or(0);
        }
    }

    /// Time that a call took longer because it was recorded; `None` when no rank says, and for few
    /// calls, of which the first ones take long.
    pub(super) fn nanoseconds_per_call(&self) -> Option<f64> {
        (self.calls >= CALLS_MIN).then(|| self.nanoseconds as f64 / self.calls as f64)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: notes of all ranks are put together, and taken away.
    use super::*;

    #[test]
    fn notes_are_put_together() {
        let place = tempfile::tempdir().expect("a test must have room");
        let write = |name: &str, text: &str| {
            std::fs::write(place.path().join(name), text).expect("a test must have room");
        };
        write("recorder.0", "not-recorded MPI_Win_create\ncost 1000 200000\n");
        write(
            "recorder.1",
            "not-recorded MPI_Comm_spawn\nnot-recorded MPI_Win_create\ncost 3000 2",
        );
        write("recorder.old", "not-recorded nothing\n");
        let notes = Notes::take(place.path()).expect("they can be read");
        assert_eq!(notes.not_recorded, ["MPI_Comm_spawn", "MPI_Win_create"]);
        assert_eq!(notes.nanoseconds_per_call(), Some(200_002.0 / 4000.0));
        assert_eq!(std::fs::read_dir(place.path()).expect("it is there").count(), 1);
        let none = Notes::take(place.path()).expect("there are none");
        assert_eq!((none.nanoseconds_per_call(), none), (None, Notes::default()));
    }
}
