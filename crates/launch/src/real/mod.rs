//! Real instances: a set of servers, on this machine or on several hosts, and what clients do with
//! them.

mod copy;
mod data;
mod direct;
mod doctor;
mod files;
mod hosts;
mod instance;
mod library;
mod member;
mod names;
mod origin;
mod output;
mod parallel;
mod part;
mod private;
mod process;
mod process_name;
mod server;
mod session;
mod stop;
mod temporary;

pub use copy::{Copied, CopyPlan, FileCopy, no_directory};
pub use data::DataDirectories;
pub use direct::Direct;
pub use doctor::{Finding, doctor};
pub use hosts::{Choice, HostOptions, HostPlan, Launcher, Seat, Venue, Wish, keep, serve_told};
pub(crate) use instance::absolute;
pub use instance::{
    DIRTY_PERCENT, Instance, InstanceFile, ServerEntry, ServerOptions, default_instance_directory,
};
pub use library::{Library, LibraryBuffer, LibraryFile, LibraryPage, Operation};
pub(crate) use member::{Member, own_address_towards};
pub use names::{Place, SCHEME, instance_name};
pub use output::LocalOutput;
pub(crate) use part::PartFile;
pub use private::refuse_root;
pub(crate) use process::{Child, Cleanup, Undo, on_stdin_closed, run_to_end};
pub use process::{Program, clean_up_on_signals};
pub use server::serve_process;
pub(crate) use session::connect_from;
pub use session::{ServerState, Session};
pub use stop::Stopped;
pub use temporary::TemporaryInstance;
