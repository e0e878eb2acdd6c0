//! Limit of this process on the size of files (`ulimit -f`).
//!
//! By default a write beyond the limit ends the process without a word (SIGXFSZ). A process that
//! handles the signal gets EFBIG instead, which disks and records report as missing space.

use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Makes writes beyond the limit fail, for as long as this process lives. Its children do not
/// inherit that. Call it inside [`run`](crate::run).
pub(crate) fn report_as_error() -> io::Result<()> {
    // The handler stays when the stream of its signals is dropped.
    signal(SignalKind::from_raw(libc::SIGXFSZ)).map(drop)
}
