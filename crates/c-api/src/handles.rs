//! The types behind the handles of the header, and the making of a handle.

use crate::arguments::{Handle, Out};
use crate::border::Failure;
use crate::condition::Condition;
use crate::operations::Op;
use crate::parts::Part;
use client::{Connection, File, Group, Page, RangeLock, Records};
use std::sync::{Mutex, RwLock};
use trace::Writer;

/// `unisono_t *`.
pub(crate) type ConnectionHandle = Handle<Connection>;
/// `unisono_file_t *`.
pub(crate) type FileHandle = Handle<File>;
/// `unisono_group_t *`.
pub(crate) type GroupHandle = Handle<Group>;
/// `unisono_lock_t *`.
pub(crate) type LockHandle = Handle<RangeLock>;
/// `unisono_page_t *`.
pub(crate) type PageHandle = Handle<Page>;
/// `unisono_op_t *`.
pub(crate) type OpHandle = Handle<Op>;
/// `unisono_part_t *`.
pub(crate) type PartHandle = Handle<RwLock<Part>>;

/// `unisono_condition_t *`.
pub(crate) type ConditionHandle = Handle<Condition>;
/// `unisono_records_t *`.
pub(crate) type RecordsHandle = Handle<Records>;

/// `unisono_trace_t *`.
pub(crate) type TraceHandle = Handle<Mutex<Writer>>;

/// Handles are used by any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Connection>();
    any_thread::<File>();
    any_thread::<Group>();
    any_thread::<Page>();
    any_thread::<RangeLock>();
    any_thread::<Op>();
    any_thread::<Condition>();
    any_thread::<Records>();
    any_thread::<RwLock<Part>>();
    any_thread::<Mutex<Writer>>();
};

/// Stores a handle of what `make` makes, or NULL when that fails.
pub(crate) fn make<T>(
    out: &Out<Handle<T>>,
    name: &'static str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    let slot = out.slot(name)?;
    slot.set(Handle::NONE);
    slot.set(Handle::new(make()?));
    Ok(())
}
