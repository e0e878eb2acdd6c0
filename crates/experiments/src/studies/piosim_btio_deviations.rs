//! Rows of the studies of BTIO in which claims of the paper do not hold.

use super::claims::Deviation;

/// Servers gather the small requests of the global barrier in their caches, in the order of the
/// file, and write whole blocks. So many requests cost little. The segments of two-phase I/O
/// alternate at each disk.
pub(super) const FULL: [Deviation; 1] = [Deviation {
    claim: "time: two-phase < global-barrier",
    rows: &[
        "simple disk, 4 clients, 1 server",
        "simple disk, 4 clients, 4 servers",
        "simple disk, 4 clients, 16 servers",
        "simple disk, 9 clients, 1 server",
        "simple disk, 9 clients, 4 servers",
        "simple disk, 9 clients, 16 servers",
        "simple disk, 16 clients, 1 server",
        "simple disk, 16 clients, 4 servers",
        "simple disk, 16 clients, 16 servers",
        "caches, 4 clients, 1 server",
        "caches, 4 clients, 4 servers",
        "caches, 4 clients, 16 servers",
        "caches, 9 clients, 1 server",
        "caches, 9 clients, 4 servers",
        "caches, 9 clients, 16 servers",
        "caches, 16 clients, 1 server",
        "caches, 16 clients, 4 servers",
        "caches, 16 clients, 16 servers",
    ],
}];

/// Servers write late, so that the requests of one client keep several disks busy.
pub(super) const SERVERS: [Deviation; 1] = [Deviation {
    claim: "time of 1 client: with 16 servers at least 0.9 x that with 1",
    rows: &[
        "simple, 1 client, I/O only",
        "full global-barrier, 1 client, I/O only",
        "full two-phase, 1 client, I/O only",
        "simple, 1 client, computation",
    ],
}];

/// Without computation, one client keeps 16 servers busy by collective calls. With computation, 16
/// processors compute so much faster than 4 that this outweighs the only server.
pub(super) const RANKING: [Deviation; 3] = [
    Deviation {
        claim: "time: 1 + 16 > 16 + 1",
        rows: &["full global-barrier, I/O only", "full two-phase, I/O only"],
    },
    Deviation {
        claim: "time: 16 + 1 > 4 + 13",
        rows: &["simple, computation", "full global-barrier, computation"],
    },
    Deviation {
        claim: "time: 4 + 13 > 9 + 8",
        rows: &["full global-barrier, I/O only", "full two-phase, I/O only"],
    },
];
