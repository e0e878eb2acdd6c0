//! Limits of traces. A writer refuses what exceeds one, and so does a reader.

/// Largest number of ranks. Each has a list of all of them: 1 GiB for as many.
pub const RANKS_MAX: u32 = 1 << 14;

/// Largest number of events of a rank.
pub const EVENTS_MAX: usize = 1 << 27;

/// Largest number of communicators of a rank.
pub const COMMUNICATORS_MAX: usize = 1 << 20;

/// Largest number of members in all communicators of a rank together, MPI_COMM_WORLD not counted.
pub const MEMBERS_MAX: usize = 1 << 26;

/// Largest number of files that a rank opens.
pub const FILES_MAX: usize = 1 << 22;

/// Largest number of parts of a rank.
pub const PARTS_MAX: usize = 1 << 24;

/// Largest number of bytes in a name of a file or a host, or in the version of an MPI library.
pub const TEXT_BYTES_MAX: usize = 1 << 16;

/// Largest number of requests that one call waits for.
pub const WAITED_MAX: usize = 1 << 20;

/// Largest number of bytes of a stream.
pub const STREAM_BYTES_MAX: u64 = 1 << 36;

/// Largest number of bytes of `trace.json`.
pub const HEADER_BYTES_MAX: u64 = 1 << 26;
