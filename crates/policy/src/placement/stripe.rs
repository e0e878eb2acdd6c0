//! Striping: the mapping between blocks of a file and servers, disks and slots. Blocks go
//! round-robin over all servers, or as a [`PageMap`] states.
//!
//! Invariants:
//! - `locate` and `block_of` are inverse to each other.
//! - The blocks of one disk, in file order, fill its slots 0, 1, 2, … without a hole. Only of a
//!   file in place, block `b` is in slot `b`, whatever its server.
//!
//! Two servers with two disks each; a cell is a block:
//!
//! ```text
//!           server 0          server 1
//!        disk 0  disk 1    disk 0  disk 1
//! slot 0    0       2         1       3
//! slot 1    4       6         5       7
//! ```

use super::page_map::PageMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error;
use units::{ByteRange, DiskId, ServerId};

/// Largest block of a file, in bytes (1 GiB): servers hold whole blocks in memory.
pub const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// Mapping from the blocks of a file to disks. Without a map, consecutive blocks go to consecutive
/// servers. The blocks of one server go round-robin over its disks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stripe {
    /// Bytes in a block; 1 to [`BLOCK_BYTES_MAX`].
    pub block_bytes: u64,
    /// Number of servers; at least 1.
    pub servers: u32,
    /// Number of disks of each server; at least 1.
    pub disks_per_server: u32,
    /// Server of each block, and its slot.
    pub placement: Placement,
}

/// Server of each block of a file, and its slot there.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Placement {
    /// Blocks go round-robin over all servers, which hold them without holes.
    #[default]
    RoundRobin,
    /// Blocks go to servers as the map states.
    Map(PageMap),
    /// Blocks go round-robin over all servers, which all work on one ordinary file: a block lies at
    /// its own place in it.
    InPlace {
        /// Number of the ordinary file in its file system.
        inode: u64,
    },
}

impl From<Option<PageMap>> for Placement {
    fn from(map: Option<PageMap>) -> Self {
        map.map_or(Self::RoundRobin, Self::Map)
    }
}

/// Place of a block of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// Server that owns the disk.
    pub server: ServerId,
    /// Disk, among those of the server.
    pub disk: DiskId,
    /// Place on the disk, counted in blocks of this file.
    pub slot: u64,
}

/// Reason for which a stripe is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum StripeError {
    /// The block is empty or larger than [`BLOCK_BYTES_MAX`].
    #[error("a block of {block_bytes} bytes is not possible: use 1 to {BLOCK_BYTES_MAX} bytes")]
    BlockBytes {
        /// Size that was requested.
        block_bytes: u64,
    },
    /// There is no disk to put a block on.
    #[error("{servers} servers with {disks_per_server} disks each have no disk: use at least 1")]
    NoDisk {
        /// Number of servers that was requested.
        servers: u32,
        /// Number of disks of each server that was requested.
        disks_per_server: u32,
    },
    /// A file in place has several disks.
    #[error("a file in place is one file for each server, not {disks_per_server}")]
    InPlace {
        /// Number of disks of each server that was requested.
        disks_per_server: u32,
    },
    /// The map names a server that the file does not have.
    #[error("the map names server {server} of the file, which has {servers}")]
    Map {
        /// Server that the map names.
        server: u32,
        /// Number of servers of the file.
        servers: u32,
    },
}

impl Stripe {
    /// Stripe of blocks of `block_bytes` bytes, round-robin over all servers.
    pub fn round_robin(block_bytes: u64, servers: u32, disks_per_server: u32) -> Self {
        Self { block_bytes, servers, disks_per_server, placement: Placement::RoundRobin }
    }

    /// Stripe of an ordinary file that servers work on together, in blocks of `block_bytes` bytes.
    pub fn in_place(block_bytes: u64, servers: u32, inode: u64) -> Self {
        let placement = Placement::InPlace { inode };
        Self { block_bytes, servers, disks_per_server: 1, placement }
    }

    /// Map from blocks to servers, if there is one.
    pub fn map(&self) -> Option<&PageMap> {
        match &self.placement {
            Placement::Map(map) => Some(map),
            Placement::RoundRobin | Placement::InPlace { .. } => None,
        }
    }

    /// Number of the ordinary file that the servers work on, if the file is one.
    pub fn inode(&self) -> Option<u64> {
        match self.placement {
            Placement::InPlace { inode } => Some(inode),
            Placement::RoundRobin | Placement::Map(_) => None,
        }
    }

    /// Refuses a stripe without bytes or disks, or with a map that names other servers. All other
    /// methods need a valid stripe.
    pub fn validate(&self) -> Result<(), StripeError> {
        let Self { block_bytes, servers, disks_per_server, .. } = *self;
        if block_bytes == 0 || block_bytes > BLOCK_BYTES_MAX {
            return Err(StripeError::BlockBytes { block_bytes });
        }
        if servers == 0 || disks_per_server == 0 {
            return Err(StripeError::NoDisk { servers, disks_per_server });
        }
        if self.inode().is_some() && disks_per_server != 1 {
            return Err(StripeError::InPlace { disks_per_server });
        }
        let named = self.map().into_iter().flat_map(|map| map.servers().iter().copied()).max();
        if let Some(server) = named.filter(|server| *server >= servers) {
            return Err(StripeError::Map { server, servers });
        }
        Ok(())
    }

    /// Number of disks of all servers together.
    pub fn disks(&self) -> u64 {
        u64::from(self.servers) * u64::from(self.disks_per_server)
    }

    /// Place of block `block`.
    pub fn locate(&self, block: u64) -> Location {
        if let Some(map) = self.map() {
            let (server, number) = map.locate(block);
            let disks = u64::from(self.disks_per_server);
            let (disk, slot) = (DiskId((number % disks) as u32), number / disks);
            return Location { server: ServerId(server), disk, slot };
        }
        let turn = block % self.disks();
        let servers = u64::from(self.servers);
        Location {
            server: ServerId((turn % servers) as u32),
            disk: DiskId((turn / servers) as u32),
            slot: if self.inode().is_some() { block } else { block / self.disks() },
        }
    }

    /// Block at the place `at`: the inverse of [`Stripe::locate`].
    ///
    /// Panics when `at` names no disk of this stripe, or a block beyond 2^64.
    pub fn block_of(&self, at: Location) -> u64 {
        let block = self.find(at);
        block.expect("a location must name a disk of its stripe and a block below 2^64")
    }

    fn find(&self, Location { server, disk, slot }: Location) -> Option<u64> {
        let turn = self.turn(server, disk)?;
        match &self.placement {
            Placement::RoundRobin => slot.checked_mul(self.disks())?.checked_add(turn),
            Placement::InPlace { .. } => (slot % self.disks() == turn).then_some(slot),
            Placement::Map(map) => {
                let row = slot.checked_mul(u64::from(self.disks_per_server))?;
                map.block_of(server.0, row.checked_add(u64::from(disk.0))?)
            }
        }
    }

    /// Bytes of the file in block `block`: fewer than a block at the file's end, none beyond it.
    pub fn block_range(&self, block: u64, file_bytes: u64) -> ByteRange {
        let start = block.saturating_mul(self.block_bytes).min(file_bytes);
        ByteRange::new(start, start.saturating_add(self.block_bytes).min(file_bytes))
    }

    /// Blocks that have a byte of `range`, in file order.
    pub fn blocks_in(&self, range: ByteRange) -> Range<u64> {
        let first = range.start / self.block_bytes;
        if range.is_empty() { first..first } else { first..range.end.div_ceil(self.block_bytes) }
    }

    /// Blocks of `blocks` on `disk` of `server`, ascending; none if there is no such disk. Starting
    /// anywhere and skipping ahead take constant time.
    pub fn blocks_on(
        &self,
        server: ServerId,
        disk: DiskId,
        blocks: Range<u64>,
    ) -> impl Iterator<Item = u64> + Clone + use<> {
        let Some(turn) = self.turn(server, disk) else { return BlocksOn::none() };
        if let Some(map) = self.map() {
            // The numbers of the server's blocks on one disk are equally far apart.
            let disks = u64::from(self.disks_per_server);
            let numbers = map.count_before(server.0, blocks.start)
                ..map.count_before(server.0, blocks.end.max(blocks.start));
            let round = Some((map.clone(), server.0));
            return BlocksOn::every(disks, u64::from(disk.0), numbers, round);
        }
        BlocksOn::every(self.disks(), turn, blocks, None)
    }

    /// Size in bytes of the object on `disk` of `server` for a file of `file_bytes` bytes: that
    /// of the file, if it is in place.
    pub fn object_bytes(&self, server: ServerId, disk: DiskId, file_bytes: u64) -> u64 {
        if self.inode().is_some() {
            return file_bytes;
        }
        let blocks = self.blocks_in(ByteRange::new(0, file_bytes));
        let count = self.blocks_on(server, disk, blocks).size_hint().0 as u64;
        let Some(slot) = count.checked_sub(1) else { return 0 };
        let block = self.block_of(Location { server, disk, slot });
        slot * self.block_bytes + self.block_range(block, file_bytes).length()
    }

    /// Size in bytes of a file that ends with the last byte of an object of `object_bytes` bytes on
    /// `disk` of `server`. The largest size over all objects is that of the file. `None` if no file
    /// can have such an object.
    pub fn file_bytes(&self, server: ServerId, disk: DiskId, object_bytes: u64) -> Option<u64> {
        if self.inode().is_some() {
            return Some(object_bytes);
        }
        let Some(last) = object_bytes.checked_sub(1) else { return Some(0) };
        let block = self.find(Location { server, disk, slot: last / self.block_bytes })?;
        block.checked_mul(self.block_bytes)?.checked_add(last % self.block_bytes + 1)
    }

    /// Place of a disk in the round of all disks: the remainder of its block numbers.
    fn turn(&self, server: ServerId, disk: DiskId) -> Option<u64> {
        let known = server.0 < self.servers && disk.0 < self.disks_per_server;
        known.then(|| u64::from(disk.0) * u64::from(self.servers) + u64::from(server.0))
    }
}

/// Every `step`-th block. With a map, every `step`-th number of a server's block, which the map
/// turns into the block. `StepBy` of the standard library would walk where this jumps: to start in
/// the middle of a long list would take time for the blocks before.
#[derive(Clone, Debug)]
struct BlocksOn {
    next: u64,
    end: u64,
    step: u64,
    map: Option<(PageMap, u32)>,
}

impl BlocksOn {
    fn none() -> Self {
        Self { next: 0, end: 0, step: 1, map: None }
    }

    /// Numbers of `all` with the remainder `rest` when divided by `step`.
    fn every(step: u64, rest: u64, all: Range<u64>, map: Option<(PageMap, u32)>) -> Self {
        let ahead = (rest + step - all.start % step) % step;
        Self { next: all.start.checked_add(ahead).unwrap_or(all.end), end: all.end, step, map }
    }
}

impl Iterator for BlocksOn {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.nth(0)
    }

    fn nth(&mut self, skipped: usize) -> Option<u64> {
        let ahead = self.step.saturating_mul(u64::try_from(skipped).unwrap_or(u64::MAX));
        let number = self.next.saturating_add(ahead);
        if number >= self.end {
            self.next = self.end;
            return None;
        }
        self.next = number.saturating_add(self.step);
        match &self.map {
            None => Some(number),
            Some((map, server)) => map.block_of(*server, number),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.end.saturating_sub(self.next).div_ceil(self.step)).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}
