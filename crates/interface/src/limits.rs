//! What a machine can do without a file system of ours, as reports show it.

use serde::{Deserialize, Serialize};

/// Limits of this machine, in 2^20 bytes a second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// One thread copies memory, blocks of 1 MiB out of 64 MiB: what `memcpy` reaches when the
    /// data is not in a cache near the processor.
    pub memory_copy_mib_s: f64,
    /// `dd if=/dev/zero of=FILE bs=1M` makes a new file of the size of the cases, in the page
    /// cache. As for all of `dd`, with the time that it takes to start.
    pub dd_write_mib_s: f64,
    /// The same with `conv=fsync`: until the data is on stable storage.
    pub dd_write_fsync_mib_s: f64,
    /// `dd if=FILE of=/dev/null bs=1M` reads that file, as it lies in the page cache.
    pub dd_read_mib_s: f64,
}
