//! An instance: servers that belong together, found through one private directory.
//!
//! ```text
//! DIRECTORY/            0700
//!   instance.json       which servers there are and where; there from the end of a start to a stop
//!   key                 0600, the secret of connections beyond this machine
//!   server-0.sock …     where they listen
//!   server-0.log …      what they say, and the launchers of those on other hosts
//!   keeper.log          what the supervisor of such launchers says
//!                       (both locked as long as the processes that write them live)
//!   origin              tells this directory from a copy, if servers run on other hosts
//!   clients/            sockets of clients that work in groups, if servers listen on sockets
//!   data/server-0/ …    blocks, unless other directories were named
//!   directories.json    which directories the last instance on this machine had
//! ```
//!
//! Clients on another machine need a copy of the first two, and servers that listen by TCP.

mod direct;
mod directory;
mod file;
mod member;
mod origin;
mod path;
mod process_name;
mod trust;

pub use direct::Direct;
pub use directory::{CLIENTS_DIRECTORY, Instance, default_instance_directory};
pub use file::{
    DIRTY_PERCENT, DISK_TIMEOUT_S, INSTANCE_SCHEMA, InstanceFile, LostDisk, ServerEntry,
    wire_protection,
};
pub use member::{Member, own_address_towards};
pub use origin::Origin;
pub use path::absolute;
pub use process_name::ProcessName;
pub use trust::{Foreign, refuse_foreign, refuse_foreign_links};
