//! The directory of a trace that is recorded.

use interface::UserError;
use std::path::{Path, PathBuf};

/// Makes the directory. With `force`, a trace that is there is removed first. Returns its absolute
/// path.
///
/// # Errors
/// Refuses a directory that is there and not empty, and with `force` one with anything but a trace.
pub(super) fn make(directory: &Path, force: bool) -> Result<PathBuf, UserError> {
    let failed = |error: std::io::Error| {
        cannot_record(directory, error.to_string(), "name a directory that you can make")
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let names = names(directory).map_err(failed)?;
    if let Some(name) = names.iter().find(|name| !is_of_trace(name)) {
        return Err(cannot_record(
            directory,
            format!("the directory has the file {name}, which is not one of a trace"),
            "name another directory with --output",
        ));
    }
    if !names.is_empty() && !force {
        return Err(cannot_record(
            directory,
            "the directory has a trace already".to_owned(),
            "name another directory with --output, or replace the trace with --force",
        ));
    }
    for name in names {
        std::fs::remove_file(directory.join(name)).map_err(failed)?;
    }
    directory.canonicalize().map_err(failed)
}

fn cannot_record(directory: &Path, cause: String, help: &str) -> UserError {
    UserError::usage(format!("cannot record in {}", directory.display()), cause, help)
}

/// Names of what is in a directory.
fn names(directory: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// True for the name of a file of a trace.
fn is_of_trace(name: &str) -> bool {
    name == "trace.json" || is_stream(name) || super::notes::is_notes(name)
}

fn is_stream(name: &str) -> bool {
    name.starts_with("rank-") && name.ends_with(".events")
}

/// Bytes of all streams.
pub(super) fn stream_bytes(directory: &Path) -> u64 {
    let names = names(directory).unwrap_or_default();
    let streams = names.iter().filter(|name| is_stream(name));
    streams.filter_map(|name| Some(directory.join(name).metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    //! Proves: a directory with anything but a trace is never touched, and a trace is replaced only
    //! when the user says so.
    use super::*;

    #[test]
    fn only_traces_are_replaced() {
        let place = tempfile::tempdir().expect("a test must have room");
        let trace = place.path().join("a/b.trace");
        let made = make(&trace, false).expect("it is new");
        assert!(made.is_absolute() && made.is_dir());
        make(&trace, false).expect("it is empty");
        for name in ["trace.json", "rank-00000.events", "recorder.12"] {
            std::fs::write(trace.join(name), "x").expect("a test must have room");
        }
        let error = make(&trace, false).expect_err("it has a trace");
        assert!(error.help.contains("--force"), "{error}");
        make(&trace, true).expect("the user said so");
        assert_eq!(names(&trace).expect("it is there"), Vec::<String>::new());
        std::fs::write(trace.join("rank-00000.events"), "x").expect("a test must have room");
        std::fs::write(trace.join("thesis.tex"), "x").expect("a test must have room");
        for force in [false, true] {
            let error = make(&trace, force).expect_err("it has another file");
            assert!(error.cause.contains("thesis.tex"), "{error}");
        }
        assert_eq!(names(&trace).expect("it is there").len(), 2);
    }
}
