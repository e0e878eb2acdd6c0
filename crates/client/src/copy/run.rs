//! Carries out a copy: several files at the same time, each by a worker.

use super::ends;
use super::failure::Failure;
use super::plan::{CopyPlan, FileCopy};
use super::worker::Worker;
use crate::files::{BLOCK_BYTES, Usual};
use crate::library::{Connection, ConnectionOptions, Group};
use crate::names::Place;
use crate::session::Session;
use interface::UserError;
use policy::OwnPart;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use units::MIB;
use wire::FileRecord;

/// Bytes copied at a time, for each file under way.
const WINDOW_BYTES: u64 = 16 * MIB;

/// Files that are copied at the same time.
const FILES_AT_ONCE: usize = 4;

/// Result of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copied {
    /// Files copied.
    pub files: u64,
    /// Their total size in bytes, holes included.
    pub bytes: u64,
}

impl Session {
    /// Carries out a plan. Calls `progress` with the number of bytes done, from any thread. The
    /// first error ends the copy; files that were complete by then stay.
    ///
    /// # Errors
    /// Errors of the servers and of the local file system; data that differs from the source.
    pub fn copy(
        &self,
        plan: &CopyPlan,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Copied, UserError> {
        let what = format!("cannot copy to {}", plan.target());
        let connection = self.connection()?;
        for directory in plan.directories() {
            match directory {
                Place::Local(path) => {
                    let inside = directory.path_below(plan.target());
                    let is_inside = inside.is_some_and(|inside| !inside.is_empty());
                    ends::make_directory(&what, path, is_inside)?;
                }
                Place::Instance(name) => {
                    connection.make_directory(name, true).map_err(|error| error.doing(&what))?
                }
            }
        }
        let block_bytes = plan.block_bytes();
        let disks_per_server = self.stripe(block_bytes.unwrap_or(BLOCK_BYTES))?.disks_per_server;
        let usual = Usual { block_bytes, disks_per_server };
        // A file of the instance may have grown since the plan was made.
        let known = |file: &FileCopy| matches!(file.from, Place::Local(_)).then_some(file.bytes);
        let largest = plan.files().iter().try_fold(0, |most, file| Some(known(file)?.max(most)));
        let window = WINDOW_BYTES.max(block_bytes.unwrap_or(0));
        let window = largest.map_or(window, |largest| window.min(largest.max(ends::UNTOLD_BYTES)));
        let next = Mutex::new(plan.files().iter());
        let (copied, failure) = (Mutex::new(Copied::default()), Failure::default());
        let work = || {
            let worker = match Worker::new(&connection, window, usual, plan.options()) {
                Ok(worker) => worker,
                Err(error) => return failure.tell(error.doing(&what)),
            };
            while !failure.is_there() {
                let file = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(file) = file else { return };
                match worker.copy(file, progress, &failure) {
                    Ok(bytes) => {
                        let mut copied = copied.lock().unwrap_or_else(PoisonError::into_inner);
                        copied.files += 1;
                        copied.bytes += bytes;
                    }
                    Err(error) => failure.tell(error),
                }
            }
        };
        // Waits for every worker, also after a failure: each removes its incomplete file.
        std::thread::scope(|scope| {
            for _ in 0..FILES_AT_ONCE.min(plan.files().len()) {
                scope.spawn(work);
            }
        });
        let copied = copied.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.first().map_or(Ok(copied), Err)
    }

    /// Connects without a buffer pool, which copies do not need.
    pub(super) fn connection(&self) -> Result<Connection, UserError> {
        let options = ConnectionOptions { pool_bytes: 0, ..ConnectionOptions::from_environment()? };
        Connection::open_with(self.instance(), options)
    }

    /// Copies a local file in; the name must be free. A copy that fails leaves no file, nor does
    /// one that a signal ends after [`crate::clean_up_on_signals`]. A copy that is killed (SIGKILL)
    /// leaves a file beside the target, whose name begins with a dot.
    pub fn put(
        &self,
        local: &Path,
        name: &str,
        block_bytes: Option<u64>,
    ) -> Result<FileRecord, UserError> {
        let plan = CopyPlan::of_file(local, Place::Instance(name.to_owned()), block_bytes)?;
        if self.find(name)?.is_some() {
            let what = format!("cannot copy {} to {name:?}", local.display());
            let fault = filesystem::Fault::FileExists { name: name.to_owned() };
            return Err(UserError::of_fault(&what, &fault));
        }
        self.copy(&plan, &|_| ())?;
        self.stat_file(name)
    }

    /// Copies a file out, to `target`. `local` names the target in errors.
    pub fn get(
        &self,
        name: &str,
        target: &mut dyn Write,
        local: &str,
    ) -> Result<FileRecord, UserError> {
        let what = format!("cannot copy {name:?} to {local}");
        let failing = |error: UserError| error.doing(&what);
        let connection = self.connection().map_err(failing)?;
        let file = connection.open_file(name).map_err(failing)?;
        let group = Group::alone(&connection).map_err(failing)?;
        let bytes = file.bytes();
        let mut window = vec![0; WINDOW_BYTES.max(file.page_bytes()).min(bytes.max(1)) as usize];
        let mut offset = 0;
        while offset < bytes {
            let length = (window.len() as u64).min(bytes - offset);
            let part = &mut window[..length as usize];
            group.read(&file, &OwnPart::contiguous(offset, length), part).map_err(failing)?;
            target.write_all(part).map_err(|error| ends::local_error(&what, &error))?;
            offset += length;
        }
        target.flush().map_err(|error| ends::local_error(&what, &error))?;
        let record = file.record().as_ref().clone();
        file.close().map_err(failing)?;
        Ok(record)
    }
}
