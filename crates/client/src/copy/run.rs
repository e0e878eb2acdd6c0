//! Carrying out a copy: several files under way at once, each in a lane.

use super::ends;
use super::failure::Failure;
use super::lane::Lane;
use super::plan::{CopyPlan, FileCopy};
use crate::files::{BLOCK_BYTES, Usual, make_directories};
use crate::names::Place;
use crate::session::Session;
use filesystem::{Client, Group};
use futures_util::future::{join_all, try_join_all};
use interface::UserError;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::Path;
use units::{ClientId, Duration, MIB};
use wire::FileRecord;
use world::{Address, Payloads};
use world_real::RealWorld;

/// Bytes that are copied at a time, of each file under way.
const WINDOW_BYTES: u64 = 16 * MIB;

/// Files that are copied at the same time.
const FILES_AT_ONCE: usize = 4;

/// What came of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copied {
    /// Files copied.
    pub files: u64,
    /// Their bytes, holes included.
    pub bytes: u64,
}

impl Session {
    /// Carries out a plan; `progress` hears of bytes that are done. The first error ends it: files
    /// that were whole by then stay.
    pub fn copy(&self, plan: &CopyPlan, progress: &dyn Fn(u64)) -> Result<Copied, UserError> {
        let what = format!("cannot copy to {}", plan.target());
        self.with_connected(&what, async |client| {
            for directory in plan.directories() {
                match directory {
                    Place::Local(path) => std::fs::create_dir_all(path)
                        .map_err(|error| ends::local_error(&what, &error))?,
                    Place::Instance(name) => make_directories(client, name)
                        .await
                        .map_err(|fault| UserError::of_fault(&what, &fault))?,
                }
            }
            self.copy_files(client, plan, progress).await
        })
    }

    async fn copy_files(
        &self,
        client: &Client<RealWorld>,
        plan: &CopyPlan,
        progress: &dyn Fn(u64),
    ) -> Result<Copied, UserError> {
        let what = format!("cannot copy to {}", plan.target());
        let block_bytes = plan.block_bytes();
        let disks_per_server = self.stripe(block_bytes.unwrap_or(BLOCK_BYTES))?.disks_per_server;
        let usual = Usual { block_bytes, disks_per_server };
        let verifies = plan.verifies();
        // A file of the instance may be longer than the catalogue knew when the plan was made.
        let known = |file: &FileCopy| matches!(file.from, Place::Local(_)).then_some(file.bytes);
        let largest = plan.files().iter().try_fold(0, |most, file| Some(known(file)?.max(most)));
        let window = WINDOW_BYTES.max(block_bytes.unwrap_or(0));
        let window = largest.map_or(window, |largest| window.min(largest.max(ends::UNTOLD_BYTES)));
        let lanes = (0..FILES_AT_ONCE.min(plan.files().len()) as u64).map(async |number| {
            let group = alone(client.clone(), number).await?;
            Lane::new(self.instance(), group, window, usual, verifies).await
        });
        let lanes = try_join_all(lanes).await;
        let lanes = lanes.map_err(|fault| UserError::of_fault(&what, &fault))?;
        let next = RefCell::new(plan.files().iter());
        let (copied, failure) = (Cell::new(Copied::default()), Failure::default());
        let running = lanes.iter().map(async |lane| {
            while !failure.is_there() {
                let Some(file) = next.borrow_mut().next() else { return };
                match lane.copy(file, progress, &failure).await {
                    Ok(bytes) => {
                        let Copied { files, bytes: before } = copied.get();
                        copied.set(Copied { files: files + 1, bytes: before + bytes });
                    }
                    Err(error) => failure.tell(error),
                }
            }
        });
        // To the end of each, also after a failure: each removes what it has half made.
        join_all(running).await;
        join_all(lanes.into_iter().map(Lane::close)).await;
        failure.first().map_or(Ok(copied.get()), Err)
    }

    /// Copies a local file in; the name must be free. A copy that fails leaves no file, nor does
    /// one that a signal ends after [`crate::clean_up_on_signals`]; one that is killed (SIGKILL)
    /// leaves a file beside it, of a name that begins with a dot.
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

    /// Copies a file out, to `target`; `local` names it in errors.
    pub fn get(
        &self,
        name: &str,
        target: &mut dyn Write,
        local: &str,
    ) -> Result<FileRecord, UserError> {
        let what = format!("cannot copy {name:?} to {local}");
        self.with_connected(&what, async |client| {
            let failed = |fault: filesystem::Fault| UserError::of_fault(&what, &fault);
            let record = client.open(name).await.map_err(failed)?;
            let group = alone(client.clone(), 0).await.map_err(failed)?;
            let window = WINDOW_BYTES.max(record.stripe.block_bytes).min(record.bytes.max(1));
            let memory = group.client().world().memory(window);
            let shared = group.share(memory).await.map_err(failed)?;
            let mut offset = 0;
            while offset < record.bytes {
                let length = window.min(record.bytes - offset);
                let segment = [(offset, 0, length)];
                ends::transfer(&group, &record, policy::Direction::Read, &segment, &shared)
                    .await
                    .map_err(failed)?;
                let written = shared
                    .memory()
                    .with_bytes_mut(|bytes| target.write_all(&bytes[..length as usize]));
                written.map_err(|error| ends::local_error(&what, &error))?;
                offset += length;
            }
            target.flush().map_err(|error| ends::local_error(&what, &error))?;
            group.unshare(shared).await;
            client.close(&record).await.map_err(failed)?;
            Ok(record)
        })
    }
}

/// A group of one client.
async fn alone(
    client: Client<RealWorld>,
    number: u64,
) -> Result<Group<RealWorld>, filesystem::Fault> {
    let itself = [Address(String::new())].into();
    Group::join(client, number, ClientId(0), itself, Duration::ZERO).await
}
