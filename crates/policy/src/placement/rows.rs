//! Rows of files that are protected by parity: which blocks have one parity block together, and
//! where it lies.
//!
//! Invariants:
//! - The blocks of a row and its parity lie on servers that differ from one another.
//! - `parity` and `row_at` are inverse to each other.
//! - The parity blocks on one disk, in the order of rows, fill its slots 0, 1, 2, … without a hole.
//!
//! Three servers, rows of two blocks; `p2` is the parity of row 2:
//!
//! ```text
//!  server 0   server 1   server 2
//!     0          1          p0
//!     3          p1         2
//!     p2         4          5
//! ```

use super::stripe::{Location, Stripe};
use std::ops::Range;
use units::{ByteRange, DiskId, ServerId};

/// Rows of a file: each has the same number of consecutive blocks, and one parity block.
#[derive(Clone, Debug)]
pub struct Rows {
    stripe: Stripe,
    /// Number of blocks of a row; less than the number of servers.
    blocks: u64,
    /// Rows after which the first block of a row is on the same server again. Their parity blocks
    /// are on different servers.
    turn: u64,
}

/// Piece of a row that one server holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowPiece {
    /// Number of the row.
    pub row: u64,
    /// First byte in the object of the server.
    pub offset: u64,
    /// The same bytes in the block of the row.
    pub within: ByteRange,
}

impl Rows {
    /// Rows of `blocks` blocks of a file whose blocks go round-robin over more than `blocks`
    /// servers.
    pub(super) fn new(stripe: &Stripe, blocks: u32) -> Self {
        let (servers, blocks) = (u64::from(stripe.servers), u64::from(blocks));
        let turn = servers / greatest_common_divisor(servers, blocks);
        Self { stripe: stripe.clone(), blocks, turn }
    }

    /// Stripe of the file.
    pub fn stripe(&self) -> &Stripe {
        &self.stripe
    }

    /// Row of a block.
    pub fn row_of(&self, block: u64) -> u64 {
        block / self.blocks
    }

    /// Blocks of a row, also beyond the end of the file.
    pub fn blocks(&self, row: u64) -> Range<u64> {
        row * self.blocks..(row + 1) * self.blocks
    }

    /// Places of the blocks of a row, in the order of the servers of the file.
    pub fn data(&self, row: u64) -> Vec<Location> {
        let mut places: Vec<_> = self.blocks(row).map(|block| self.stripe.locate(block)).collect();
        places.sort_unstable_by_key(|at| at.server);
        places
    }

    /// Place of the parity block of a row, among the objects with parity.
    pub fn parity(&self, row: u64) -> Location {
        let (servers, disks) =
            (u64::from(self.stripe.servers), u64::from(self.stripe.disks_per_server));
        let turn = row / self.turn;
        let behind = (row % self.turn) * self.blocks % servers + self.blocks + self.shift(turn);
        let slot = turn / self.step();
        Location {
            server: ServerId((behind % servers) as u32),
            disk: DiskId((slot % disks) as u32),
            slot: slot / disks,
        }
    }

    /// Row whose parity block is at a place: the inverse of [`parity`](Self::parity).
    pub fn row_at(&self, Location { server, disk, slot }: Location) -> u64 {
        let servers = u64::from(self.stripe.servers);
        let place = u64::from(server.0);
        let slot = slot * u64::from(self.stripe.disks_per_server) + u64::from(disk.0);
        let turn = slot * self.step() + place % self.step();
        let first = (0..self.turn).find(|row| {
            (row * self.blocks % servers + self.blocks + self.shift(turn)) % servers == place
        });
        turn * self.turn + first.expect("each turn has a parity block on every server of its class")
    }

    /// Size in bytes of the object with parity on a disk, for a file of `file_bytes` bytes, in
    /// whole blocks.
    pub fn parity_bytes(&self, server: ServerId, disk: DiskId, file_bytes: u64) -> u64 {
        let rows = self.row_count(file_bytes);
        let row = |slot| self.row_at(Location { server, disk, slot });
        // The rows of the slots ascend.
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if row(middle) < rows { low = middle + 1 } else { high = middle }
        }
        low * self.stripe.block_bytes
    }

    /// Bytes that a block in the last row of a file of `file_bytes` bytes has in the object that a
    /// server has on a disk, if it has one there.
    pub fn last_row(&self, server: ServerId, disk: DiskId, file_bytes: u64) -> Option<ByteRange> {
        let row = self.row_count(file_bytes).checked_sub(1)?;
        let data = self.data(row);
        let own = data.iter().find(|at| (at.server, at.disk) == (server, disk))?;
        Some(self.object_range(*own, ByteRange::new(0, self.stripe.block_bytes)))
    }

    /// Number of rows of a file of `file_bytes` bytes.
    pub fn row_count(&self, file_bytes: u64) -> u64 {
        self.stripe.blocks_in(ByteRange::new(0, file_bytes)).end.div_ceil(self.blocks)
    }

    /// Cuts a range of the object that a server has on a disk into pieces of rows.
    pub fn pieces(
        &self,
        server: ServerId,
        disk: DiskId,
        range: ByteRange,
    ) -> impl Iterator<Item = RowPiece> + '_ {
        blocks_of(range, self.stripe.block_bytes).map(move |(slot, within, offset)| {
            let block = self.stripe.block_of(Location { server, disk, slot });
            RowPiece { row: self.row_of(block), offset, within }
        })
    }

    /// Bytes of an object that a piece of the block at a place is.
    pub fn object_range(&self, at: Location, within: ByteRange) -> ByteRange {
        let start = at.slot * self.stripe.block_bytes;
        ByteRange::new(start + within.start, start + within.end)
    }

    /// Number of servers between the last block of a row of a turn and its parity block. It takes
    /// all values that leave the parity on a server of its own.
    fn shift(&self, turn: u64) -> u64 {
        turn % (u64::from(self.stripe.servers) - self.blocks)
    }

    /// Number of turns in which each server has one parity block.
    fn step(&self) -> u64 {
        u64::from(self.stripe.servers) / self.turn
    }
}

/// Cuts a range into parts of blocks: slot, bytes in the block, first byte in the object.
fn blocks_of(range: ByteRange, block_bytes: u64) -> impl Iterator<Item = (u64, ByteRange, u64)> {
    let slots = if range.is_empty() {
        0..0
    } else {
        range.start / block_bytes..range.end.div_ceil(block_bytes)
    };
    slots.map(move |slot| {
        let first = slot * block_bytes;
        let (start, end) = (range.start.max(first), range.end.min(first + block_bytes));
        (slot, ByteRange::new(start - first, end - first), start)
    })
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    //! Proves, for up to 7 servers with up to 3 disks and all lengths of rows: no two blocks of a
    //! row and its parity share a server, parity is spread evenly and without holes, and all
    //! mappings are inverse to each other.
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const BLOCK: u64 = 10;

    fn all() -> impl Iterator<Item = (Rows, u32, u32, u64)> {
        (2..8_u32).flat_map(|servers| {
            (1..servers).flat_map(move |blocks| {
                (1..4).map(move |disks| {
                    let stripe = Stripe::round_robin(BLOCK, servers, disks);
                    (Rows::new(&stripe, blocks), servers, disks, u64::from(blocks))
                })
            })
        })
    }

    #[test]
    fn blocks_of_a_row_and_its_parity_are_on_different_servers() {
        for (rows, servers, disks, blocks) in all() {
            let mut slots = BTreeMap::<(u32, u32), u64>::new();
            for row in 0..500 {
                let data = rows.data(row);
                let parity = rows.parity(row);
                let on: BTreeSet<u32> = data.iter().map(|at| at.server.0).collect();
                assert_eq!(on.len() as u64, blocks);
                assert!(data.is_sorted_by_key(|at| at.server));
                assert!(!on.contains(&parity.server.0), "{servers} {blocks} {row}");
                assert!(parity.server.0 < servers && parity.disk.0 < disks);
                assert_eq!(rows.row_at(parity), row);
                let slot = slots.entry((parity.server.0, parity.disk.0)).or_default();
                assert_eq!(parity.slot, *slot, "no hole");
                *slot += 1;
            }
            let (least, most) = (slots.values().min().unwrap(), slots.values().max().unwrap());
            assert_eq!(slots.len() as u32, servers * disks);
            // At most one turn more.
            assert!(most - least <= 2, "{servers} {blocks} {disks}: {slots:?}");
        }
    }

    #[test]
    fn objects_with_parity_are_as_long_as_the_rows() {
        for (rows, servers, disks, blocks) in all() {
            for bytes in [0_u64, 1, 9, 10, 11, 99, 640, 1_001] {
                let count = bytes.div_ceil(BLOCK).div_ceil(blocks);
                assert_eq!(rows.row_count(bytes), count);
                let mut found = 0;
                for (server, disk) in
                    (0..servers).flat_map(|server| (0..disks).map(move |disk| (server, disk)))
                {
                    let (server, disk) = (ServerId(server), DiskId(disk));
                    let length = rows.parity_bytes(server, disk, bytes);
                    found += length / BLOCK;
                    for slot in 0..length / BLOCK {
                        let row = rows.row_at(Location { server, disk, slot });
                        assert!(row < count);
                        let at = rows.parity(row);
                        assert_eq!((at.server, at.disk, at.slot), (server, disk, slot));
                        let range = rows.object_range(at, ByteRange::new(0, BLOCK));
                        assert_eq!((range.start, range.length()), (slot * BLOCK, BLOCK));
                    }
                }
                assert_eq!(found, count, "each row has one");
            }
        }
    }

    #[test]
    fn a_range_of_an_object_is_cut_at_its_blocks() {
        for (rows, servers, disks, _) in all() {
            let (server, disk) = (ServerId(servers - 1), DiskId(disks - 1));
            let pieces: Vec<_> = rows.pieces(server, disk, ByteRange::new(7, 33)).collect();
            let within: Vec<_> = pieces.iter().map(|it| (it.within.start, it.within.end)).collect();
            assert_eq!(within, [(7, 10), (0, 10), (0, 10), (0, 3)]);
            for piece in &pieces {
                let own = rows.data(piece.row);
                let at = own.iter().find(|at| at.server == server).unwrap();
                assert_eq!(at.disk, disk);
                assert_eq!(rows.object_range(*at, piece.within).start, piece.offset);
            }
            assert_eq!(rows.pieces(server, disk, ByteRange::new(5, 5)).count(), 0);
        }
    }
}
