//! Commands on files and directories of an instance.

pub(crate) mod copies;
mod entries;
mod globs;
pub(crate) mod layout;
pub(crate) mod names;
pub(crate) mod scrub;
pub(crate) mod select;
