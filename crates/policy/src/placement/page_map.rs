//! Maps from the blocks of a file to servers, as the user states them (`mapPageToServer` of Tower
//! of Pizzas, section 2.1.2).
//!
//! Invariants:
//! - A map has 1 to [`PAGE_MAP_MAX`] turns.
//! - The blocks of one server, in file order, have the numbers 0, 1, 2, … without a hole.
//!
//! A map of four turns, `0 1 1 2`, and the places of the first blocks:
//!
//! ```text
//! block              0  1  2  3    4  5  6  7    8
//! server             0  1  1  2    0  1  1  2    0
//! number on server   0  0  1  0    1  2  3  1    2
//! ```

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// Largest number of turns of a map.
pub const PAGE_MAP_MAX: usize = 65_536;

/// Map from blocks to the servers of a file. Block `b` is on the server of turn `b % turns`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct PageMap(Arc<Table>);

#[derive(PartialEq, Eq, Debug)]
struct Table {
    /// Server of each turn.
    servers: Vec<u32>,
    /// Pairs of server and turn, ascending: the turns of one server are neighbours.
    turns: Vec<(u32, u32)>,
}

/// Reason for which a map is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PageMapError {
    /// The map has no turn, or more than [`PAGE_MAP_MAX`].
    #[error("a map of {turns} turns is not possible: use 1 to {PAGE_MAP_MAX}")]
    Turns {
        /// Number of turns.
        turns: usize,
    },
}

impl TryFrom<Vec<u32>> for PageMap {
    type Error = PageMapError;

    fn try_from(servers: Vec<u32>) -> Result<Self, PageMapError> {
        if servers.is_empty() || servers.len() > PAGE_MAP_MAX {
            return Err(PageMapError::Turns { turns: servers.len() });
        }
        let mut turns: Vec<(u32, u32)> = servers.iter().copied().zip(0..).collect();
        turns.sort_unstable();
        Ok(Self(Arc::new(Table { servers, turns })))
    }
}

impl From<PageMap> for Vec<u32> {
    fn from(map: PageMap) -> Self {
        map.0.servers.clone()
    }
}

impl PageMap {
    /// Server of each turn.
    pub fn servers(&self) -> &[u32] {
        &self.0.servers
    }

    /// Server that holds a block, and the block's number there.
    pub(crate) fn locate(&self, block: u64) -> (u32, u64) {
        let (row, turn) = self.turn(block);
        let server = self.0.servers[turn as usize];
        let own = self.turns_of(server);
        let rank = own.partition_point(|(_, own)| *own < turn);
        (server, row * own.len() as u64 + rank as u64)
    }

    /// Block with this number on a server: the inverse of [`PageMap::locate`]. `None` if the server
    /// holds no block, or the block is beyond 2^64.
    pub(crate) fn block_of(&self, server: u32, number: u64) -> Option<u64> {
        let own = self.turns_of(server);
        let count = own.len() as u64;
        let row = number.checked_div(count)?;
        let (_, turn) = own[(number % count) as usize];
        row.checked_mul(self.0.servers.len() as u64)?.checked_add(u64::from(turn))
    }

    /// Number of blocks before `block` that a server holds.
    pub(crate) fn count_before(&self, server: u32, block: u64) -> u64 {
        let (row, turn) = self.turn(block);
        let own = self.turns_of(server);
        let rank = own.partition_point(|(_, own)| *own < turn);
        (row * own.len() as u64).saturating_add(rank as u64)
    }

    /// Number of repetitions of the whole map before a block, and the turn of the block.
    fn turn(&self, block: u64) -> (u64, u32) {
        let turns = self.0.servers.len() as u64;
        (block / turns, (block % turns) as u32)
    }

    fn turns_of(&self, server: u32) -> &[(u32, u32)] {
        let turns = &self.0.turns;
        let first = turns.partition_point(|(one, _)| *one < server);
        let count = turns[first..].partition_point(|(one, _)| *one == server);
        &turns[first..first + count]
    }
}
