//! The files of a calibration: a scenario, and the disk that it names.

use super::load::Loads;
use super::parameters::{Measured, Parameters};
use interface::{ExitCode, UserError, WholeFile};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Returns the paths of the scenario and of its disk.
///
/// # Errors
/// Refuses a name that is not that of a scenario.
pub(super) fn paths(output: &Path) -> Result<(PathBuf, PathBuf), UserError> {
    let stem = output.file_stem().and_then(|stem| stem.to_str());
    let is_toml = output.extension().is_some_and(|extension| extension == "toml");
    let Some(stem) = stem.filter(|_| is_toml) else {
        return Err(UserError::usage(
            format!("cannot write the scenario to {}", output.display()),
            "its name does not end in .toml",
            "name a file such as this-machine.toml",
        ));
    };
    Ok((output.to_owned(), output.with_file_name(format!("{stem}-disk.toml"))))
}

/// Writes both files, the scenario last.
///
/// # Errors
/// Fails when one of them cannot be written.
pub(super) fn write(
    scenario: &Path,
    disk: &Path,
    (parameters, loads): (&Parameters, Loads),
    calibrated_at: u64,
) -> Result<(), UserError> {
    let name = disk.file_name().unwrap_or_default().to_string_lossy();
    let mut text = String::from(
        "# This machine as `unisono sim calibrate` measured it: a scenario for `unisono sim` and \
         `unisono what-if`.\n",
    );
    let Loads { copies, wakes, alone, rest } = loads;
    let _ = writeln!(
        text,
        "# Costs are as measured, times a load that was fitted: {copies} for bytes and pieces\n\
         # and the disks' threads, {wakes} for threads that wake one another, {alone} for small \
         calls\n# without a message, {rest} for other work."
    );
    let _ = writeln!(text, "machine = \"this-machine\"");
    let _ = writeln!(text, "disk = {name:?}");
    let _ = writeln!(
        text,
        "block = \"1MiB\"\nservers = 1\nclients = 4\nsize = \"64MiB\"\n\n[parameters]"
    );
    let _ = writeln!(text, "calibrated-at = {calibrated_at}");
    text.push_str(&lines(&parameters.machine));
    let mut described = String::from(
        "# The disk of this machine as `unisono sim calibrate` measured it: the system's page \
         cache above its medium.\nkind = \"page-cache\"\ncapacity_bytes = 1_099_511_627_776\n",
    );
    described.push_str(&lines(&parameters.disk));
    save(disk, &described)?;
    save(scenario, &text)
}

fn lines(measured: &[Measured]) -> String {
    let line =
        |Measured { key, value, source }: &Measured| format!("# {source}\n{key} = {value}\n");
    measured.iter().map(line).collect()
}

fn save(path: &Path, text: &str) -> Result<(), UserError> {
    let save = || {
        let file = WholeFile::create(path)?;
        file.writer()?.write_all(text.as_bytes())?;
        file.finish()
    };
    save().map_err(|error: std::io::Error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot write {}", path.display()),
            error.to_string(),
            "name a file in a directory that you may write to, with --output",
        )
    })
}
