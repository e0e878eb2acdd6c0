//! `--compare`: the program without Unisono, once before and once after the run, so that what
//! changes on the machine meanwhile favours neither. The files are plain ones, in a directory that
//! is removed.

use super::program;
use crate::arguments::Run;
use crate::output::present;
use crate::programs::launch::{exit_code, spawn_failed};
use cluster::{JobProgram, Signals};
use interface::{ExitCode, UserError};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// The program on plain files.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct PlainRun {
    pub(super) exit_code: u8,
    /// Seconds from its start to its end.
    pub(super) seconds: f64,
    /// Seconds that its files then took to stable storage.
    pub(super) sync_seconds: f64,
}

/// The program without Unisono, before the run and after it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Compared {
    pub(super) before: PlainRun,
    pub(super) after: PlainRun,
}

impl Compared {
    /// Shorter time of the program on plain files; `None` if it did not succeed.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.least(|run| run.seconds)
    }

    /// The same with the time of its files to stable storage.
    pub(super) fn stored_seconds(&self) -> Option<f64> {
        self.least(|run| run.seconds + run.sync_seconds)
    }

    fn least(&self, time: impl Fn(&PlainRun) -> f64) -> Option<f64> {
        let both = [&self.before, &self.after];
        let [before, after] = both.map(time);
        both.iter().all(|run| run.exit_code == 0).then(|| before.min(after))
    }
}

/// Input of a comparison.
pub(super) struct Compare<'a> {
    arguments: &'a Run,
    preload: Option<&'a PathBuf>,
    parent: &'a Path,
}

impl<'a> Compare<'a> {
    /// The comparison that the user asks for, if any.
    ///
    /// # Errors
    /// Refuses a program that records itself, whose trace the other runs would replace, and a
    /// directory that cannot be written to.
    pub(super) fn of(
        arguments: &'a Run,
        preload: Option<&'a PathBuf>,
    ) -> Result<Option<Self>, UserError> {
        let Some(parent) = &arguments.compare else { return Ok(None) };
        if super::what_if::trace_of(&arguments.program).is_some() {
            return Err(UserError::usage(
                "a run that records cannot be compared",
                "the program runs three times, and each time would replace the trace",
                "leave out --compare, or `unisono record`",
            ));
        }
        tempfile::tempfile_in(parent).map_err(|error| cannot_compare(parent, &error))?;
        Ok(Some(Self { arguments, preload, parent }))
    }

    /// Runs the program on plain files. Its output is thrown away.
    ///
    /// # Errors
    /// Fails when files cannot be copied to the directory, or the program cannot be started.
    pub(super) fn run(&self, signals: &Signals, when: &str) -> Result<PlainRun, UserError> {
        let failed = |error: io::Error| cannot_compare(self.parent, &error);
        let folder = tempfile::Builder::new().prefix("unisono-plain-").tempdir_in(self.parent);
        let folder = folder.map_err(failed)?;
        // Processes of the program have other current directories.
        let place = folder.path().canonicalize().map_err(failed)?;
        for path in &self.arguments.stage_in {
            copy_in(path, &place).map_err(failed)?;
        }
        present::note(&format!("unisono: the program without Unisono, {when} the run"));
        let mut command = program::plain_command(self.arguments, self.preload, &place);
        command.stdout(Stdio::null());
        let name = &self.arguments.program[0];
        let start = Instant::now();
        let running = JobProgram::start(&mut command, signals);
        let status = running.and_then(JobProgram::wait);
        let status = status.map_err(|error| spawn_failed(name, "run", &error).error)?;
        let seconds = start.elapsed().as_secs_f64();
        let synced = Instant::now();
        sync(&place).map_err(failed)?;
        let sync_seconds = synced.elapsed().as_secs_f64();
        Ok(PlainRun { exit_code: exit_code(status), seconds, sync_seconds })
    }
}

fn cannot_compare(parent: &Path, error: &io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("cannot run the program on plain files in {}", parent.display()),
        error.to_string(),
        "name another directory: --compare=DIR",
    )
}

/// Copies a file, or a directory with everything below it, into a directory.
fn copy_in(path: &Path, directory: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return entries(path)?.iter().try_for_each(|entry| copy_in(entry, directory));
    };
    let target = directory.join(name);
    if !path.is_dir() {
        return std::fs::copy(path, &target).map(drop);
    }
    std::fs::create_dir_all(&target)?;
    entries(path)?.iter().try_for_each(|entry| copy_in(entry, &target))
}

/// Waits until all files of a directory are on stable storage.
fn sync(directory: &Path) -> io::Result<()> {
    for path in entries(directory)? {
        match path.is_dir() {
            true => sync(&path)?,
            false => std::fs::File::open(&path)?.sync_all()?,
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: the shorter of two plain runs counts, and only if both succeeded.
    use super::*;

    #[test]
    fn the_shorter_run_counts() {
        let run = |exit_code, seconds| PlainRun { exit_code, seconds, sync_seconds: 0.5 };
        let compared = Compared { before: run(0, 3.0), after: run(0, 2.0) };
        assert_eq!((compared.seconds(), compared.stored_seconds()), (Some(2.0), Some(2.5)));
        assert_eq!(Compared { before: run(1, 0.1), after: run(0, 2.0) }.seconds(), None);
    }
}
