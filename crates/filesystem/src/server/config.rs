//! Parameters of a server.

use crate::Costs;
use crate::server::clients::group_rosters::RosterCache;
use policy::Rules;
use units::ServerId;

/// What a server is told at its start.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Its number; server 0 keeps the catalogue.
    pub id: ServerId,
    /// Number of servers of the instance.
    pub servers: u32,
    /// Room of its block cache, in bytes; at least one block is always held.
    pub cache_bytes: u64,
    /// So many hundredths of it may be dirty; with more, the blocks that have been so longest are
    /// written back until half of that is left. 100 for whatever there is room for.
    pub dirty_percent: u32,
    /// Blocks that a collective, or the part of one client, holds for each disk: two, while one is
    /// at the disk the other is on the network (TOCS 1997, section 4).
    pub buffers_per_disk: u32,
    /// Bytes that all of these together hold, besides the cache, each disk the same part; there is
    /// room for those of one collective in any case. As many may wait for room in the cache with
    /// the requests that brought them. `u64::MAX` for as many as are wanted: then no client is let
    /// go for keeping memory from others either.
    pub buffer_bytes: u64,
    /// What its own work costs its processor.
    pub costs: Costs,
    /// By which rules blocks may leave its cache.
    pub rules: Rules,
    /// Group rosters that this server shares with others of its process.
    pub rosters: RosterCache,
}
