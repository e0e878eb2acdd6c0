//! Limits of a machine without our file system, as reports show them.

use serde::{Deserialize, Serialize};

/// Limits of this machine, in 2^20 bytes a second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// One thread copies memory, blocks of 1 MiB out of 64 MiB: the rate of `memcpy` when the data
    /// is not in a cache near the processor.
    pub memory_copy_mib_s: f64,
    /// `dd if=/dev/zero of=FILE bs=1M` makes a new file of the size of the cases, in the page
    /// cache. The time of every `dd` here includes its start.
    pub dd_write_mib_s: f64,
    /// `dd if=/dev/zero of=FILE bs=1M conv=fsync` makes such a file until the data is on stable
    /// storage.
    pub dd_write_fsync_mib_s: f64,
    /// `dd if=FILE of=/dev/null bs=1M` reads that file from the page cache.
    pub dd_read_mib_s: f64,
}
