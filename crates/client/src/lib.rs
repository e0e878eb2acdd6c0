//! The library that programs link: finds an instance, connects to its servers, and uses its files.
//!
//! [`Instance`] is an instance by its directory. [`Connection`], [`File`] and [`Group`] have the
//! calls of a program: open, read, write, pages, collectives. [`Session`] has names, and copies
//! files in and out.
//!
//! *Invariants:*
//! - Nothing here starts or stops a server; the crate `cluster` does.
//! - This crate puts the real world under clients; servers get theirs from `cluster`.
//! - A copy is atomic: its name appears after all of its data is written.

mod cleanup;
mod copy;
mod files;
mod instance;
mod library;
mod lost_files;
mod mounted;
mod names;
mod parallel;
mod protection;
mod scrub;
mod session;

pub use cleanup::{Cleanup, Undo, clean_up_and_exit, clean_up_on_signals};
pub use copy::{CopyPlan, LocalOutput, STANDARD_STREAM, no_directory};
pub use filesystem::collective::Share;
pub use filesystem::{COPIES_MAX, CollectivePlan, PlannedTransfer};
pub use instance::{
    CLIENTS_DIRECTORY, DIRTY_PERCENT, DISK_TIMEOUT_S, Direct, Foreign, INSTANCE_SCHEMA, Instance,
    InstanceFile, LostDisk, Member, Origin, ProcessName, ServerEntry, absolute,
    default_instance_directory, own_address_towards, refuse_foreign, refuse_foreign_links,
    wire_protection,
};
pub use interface::{ErrorKind, ErrorPlace, ExitCode, Strategy, UserError};
pub use library::{
    BLOCKING_BYTES_MAX, Blocks, Buffer, CollectiveOptions, Connection, ConnectionOptions,
    FILE_TRANSFERS_MAX, File, FileTransfer, Form, Group, HINTS, Hint, HintSite, Hints,
    InPlaceOptions, NewFileNode, NewFileOptions, Operation, Page, RangeLock, RawFileTransfer,
    RawMemory, Records, Slice, VectorOperation, Verdict, hints_of_environment,
    in_place_block_bytes, wait_any,
};
pub use lost_files::LostFile;
pub use mounted::{
    INSTANCE_ATTRIBUTE, MOUNT_SOURCE, MOUNT_TYPES, MountedName, NAME_ATTRIBUTE, unescaped_path,
};
pub use names::{Place, SCHEME, instance_name};
pub use parallel::for_each_at_once;
pub use policy::{
    Access, Buffering, Condition, Constant, Declared, Dimension, Direction, DiskOrder,
    Distribution, Expression, FieldAt, HISTOGRAM_EDGES_MAX, Level, ListEntry, LockKind, Nested,
    OwnPart, ProtectedBytes, Protection, RecordGrid, Reduced, Reduction, UnknownProtection,
};
pub use scrub::ScrubbedFile;
pub use session::{
    ServerState, Session, catalogue_copy, connect_from, server_answers, stop_server,
};
pub use units::{ClientId, FileId, ServerId, Timestamp};
pub use wire::Place as NodePlace;
pub use wire::{
    AttributeChanges, Attributes, Entry, EntryKind, Fault, FileDefaults, FileRecord,
    LINK_BYTES_MAX, NewKind, NodeEntry, PlannedBlock, ProcessorUse, ROOT, RefillStatus,
    RenameManner, ServerStatus, Special, part_flaw,
};
pub use world_real::WireProtection;
