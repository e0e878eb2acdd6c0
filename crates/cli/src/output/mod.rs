//! Results and errors, as text and JSON on the terminal and as files.

pub(crate) mod file;
pub(crate) mod format;
pub(crate) mod origin;
pub(crate) mod present;
pub(crate) mod protection;
