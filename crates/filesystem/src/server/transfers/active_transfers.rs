//! Active transfers of a server: collectives, and parts of single clients.
//!
//! Invariant: a transfer is listed exactly as long as its [`ActiveTransferGuard`] lives.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use units::{FileId, PeerId};
use wire::{CallId, Fault};

/// Key of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TransferKey {
    /// Collective call of a group.
    Call(CallId),
    /// Part of one client, by its connection and the number that it gave.
    Part(PeerId, u64),
}

/// Active transfers of one server.
#[derive(Default)]
pub(crate) struct ActiveTransfers {
    all: RefCell<BTreeMap<TransferKey, ActiveTransfer>>,
    /// Abort signal: notified when a client has left, and when a transfer must end or has ended.
    abort_signal: Signal,
}

struct ActiveTransfer {
    file: FileId,
    /// Fault with which the transfer must end; `None` while it may go on.
    abort_reason: Option<Fault>,
}

/// Entry of a transfer in [`ActiveTransfers`]; removed when dropped.
pub(crate) struct ActiveTransferGuard<'a> {
    transfers: &'a ActiveTransfers,
    key: TransferKey,
}

impl ActiveTransfers {
    /// Enters a transfer on `file`.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when a transfer with this key is active.
    pub(crate) fn enter(
        &self,
        key: TransferKey,
        file: FileId,
    ) -> Result<ActiveTransferGuard<'_>, Fault> {
        match self.all.borrow_mut().entry(key) {
            Entry::Occupied(_) => {
                let number = match key {
                    TransferKey::Call(call) => call.number,
                    TransferKey::Part(_, number) => number,
                };
                let cause = format!("transfer {number} is already under way");
                Err(Fault::BadRequest { cause })
            }
            Entry::Vacant(vacant) => {
                vacant.insert(ActiveTransfer { file, abort_reason: None });
                Ok(ActiveTransferGuard { transfers: self, key })
            }
        }
    }

    /// Aborts the transfer `key` for a reason, if it is active.
    pub(crate) fn abort(&self, key: TransferKey, reason: Fault) {
        if let Some(transfer) = self.all.borrow_mut().get_mut(&key) {
            transfer.abort_reason = Some(reason);
        }
        self.notify();
    }

    /// Aborts all transfers on a file.
    pub(crate) fn abort_on(&self, file: FileId, fault: &Fault) {
        for transfer in self.all.borrow_mut().values_mut() {
            if transfer.file == file {
                transfer.abort_reason = Some(fault.clone());
            }
        }
        self.notify();
    }

    /// Waits until all aborted transfers on a file have ended. Transfers that begin later know the
    /// new state of the file.
    pub(crate) async fn until_aborted_ended(&self, file: FileId) {
        let all_ended = || {
            let all = self.all.borrow();
            all.values().all(|one| one.file != file || one.abort_reason.is_none())
        };
        self.abort_signal.until(|| all_ended().then_some(())).await;
    }

    /// Waits until `reason` returns a fault. Calls it now and after each abort signal.
    pub(crate) async fn until_aborted(&self, reason: impl FnMut() -> Option<Fault>) -> Fault {
        self.abort_signal.until(reason).await
    }

    /// Raises the abort signal: every transfer looks for a reason to end.
    pub(crate) fn notify(&self) {
        self.abort_signal.notify();
    }
}

impl ActiveTransferGuard<'_> {
    /// Returns the fault with which the transfer must end, once it must.
    pub(crate) fn abort_reason(&self) -> Option<Fault> {
        self.transfers.all.borrow().get(&self.key)?.abort_reason.clone()
    }
}

impl Drop for ActiveTransferGuard<'_> {
    fn drop(&mut self) {
        self.transfers.all.borrow_mut().remove(&self.key);
        self.transfers.notify();
    }
}
