//! Collective calls that read and write parts of several files.
//!
//! Each part is a transfer of its own at the servers, as if it were the only one: they begin in
//! order, and are under way together. So disks are busy with all of them, and a member waits once
//! ([0092](../../../../docs/decisions/0092-one-call-moves-several-files.md)).

use super::collective_options::CollectiveOptions;
use super::file::File;
use super::group::Group;
use super::member::FileCall;
use super::operation::Operation;
use super::user_memory::{RawMemory, Slice};
use futures_util::stream::{self, StreamExt};
use interface::UserError;
use policy::{Direction, OwnPart};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// Largest number of transfers of one call.
pub const FILE_TRANSFERS_MAX: usize = 1 << 16;

/// Number of transfers of one call that are under way at once. Each holds two blocks for each disk
/// of its file.
const UNDER_WAY_MAX: usize = 16;

/// A member's part in one of the transfers of [`Group::transfer_files`].
pub struct FileTransfer<'a> {
    /// An open file. Several transfers may be of the same one.
    pub file: &'a File,
    /// Bytes of the file.
    pub part: OwnPart,
    /// Memory, which also says if the file is read or written.
    pub slice: Slice<'a>,
}

/// As [`FileTransfer`], with memory that the caller keeps until the end of the operation.
pub struct RawFileTransfer {
    /// Read or write.
    pub direction: Direction,
    /// An open file.
    pub file: File,
    /// Bytes of the file.
    pub part: OwnPart,
    /// Memory. Those of several transfers do not overlap, unless all of these are writes.
    pub memory: RawMemory,
}

impl Group {
    /// Transfers this member's parts of several files, together with all members. Collective: all
    /// members name the same files, in the same order, to read and to write alike. Returns the
    /// number of bytes of its parts. Where two transfers of the call meet in a file, and one is a
    /// write, it is undefined which comes first.
    ///
    /// # Errors
    /// As for [`Group::read`]; [`ErrorKind::Usage`](interface::ErrorKind::Usage) for more than
    /// [`FILE_TRANSFERS_MAX`] transfers, and for a file of another connection. Every member's call
    /// ends with the same error, that of the first file which has one; the other files are
    /// transferred.
    pub fn transfer_files(
        &self,
        options: CollectiveOptions,
        transfers: Vec<FileTransfer<'_>>,
    ) -> Result<u64, UserError> {
        let (slices, others): (Vec<_>, Vec<_>) =
            transfers.into_iter().map(|one| (one.slice, (one.file.clone(), one.part))).unzip();
        Slice::transfer_all(slices, |memories| {
            let transfers = memories.into_iter().zip(others);
            let transfers = transfers.map(|((direction, memory), (file, part))| RawFileTransfer {
                direction,
                file,
                part,
                memory,
            });
            self.start_files(options, transfers.collect())
        })
    }

    /// Begins a [`Group::transfer_files`] with memory of the caller. Collective: members begin
    /// their calls in the same order.
    pub fn start_files(
        &self,
        options: CollectiveOptions,
        transfers: Vec<RawFileTransfer>,
    ) -> Operation<u64> {
        let (rank, size) = (self.rank(), self.size());
        let what = move || format!("rank {rank} of {size} cannot transfer files collectively");
        if transfers.len() > FILE_TRANSFERS_MAX {
            let cause = format!("the call has {} transfers", transfers.len());
            let help =
                format!("make several calls; one has at most {FILE_TRANSFERS_MAX} transfers");
            return Operation::ended(Err(UserError::usage(what(), cause, help)));
        }
        let mut checked = transfers.iter().map(|one| self.check_connection(&one.file));
        if let Some(refused) = checked.find_map(Result::err) {
            return Operation::ended(Err(refused));
        }
        let calls =
            transfers.into_iter().map(|RawFileTransfer { direction, file, part, memory }| {
                FileCall { direction, options, known: file.known().clone(), part, memory }
            });
        let calls: Vec<FileCall> = calls.collect();
        let (member, failed) = (self.member(), Arc::new(OnceLock::new()));
        let culprit = Arc::clone(&failed);
        let what = move || culprit.get().cloned().unwrap_or_else(what);
        self.connection().begin(what, true, move |shared| {
            let member = Rc::clone(member.get());
            // The order of calls is that of the jobs.
            let begun: Vec<_> = calls
                .into_iter()
                .map(|call| (member.begin_call(call.options.strategy), call))
                .collect();
            async move {
                let moving = begun.into_iter().map(|(place, call)| {
                    let (verb, name) = (call.verb(), call.known.get().name.clone());
                    let (member, shared) = (&member, &shared);
                    async move {
                        let moved = member.make(shared, place, call, false).await;
                        moved.map(|moved| moved.bytes).map_err(|fault| (verb, name, fault))
                    }
                });
                // All of them end before one's fault is returned, so that the members agree on it.
                let moved: Vec<_> =
                    stream::iter(moving).buffered(UNDER_WAY_MAX).collect::<Vec<_>>().await;
                let moved: Result<u64, _> = moved.into_iter().sum();
                moved.map_err(|(verb, name, fault)| {
                    let what = format!("rank {rank} of {size} cannot {verb} {name:?} collectively");
                    // It is set here only.
                    let _ = failed.set(what);
                    fault
                })
            }
        })
    }
}
