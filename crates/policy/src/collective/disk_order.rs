//! In which order a disk takes the blocks of a collective: disk-directed I/O's central choice.
//!
//! Invariants: every block comes out exactly once; memory holds at most one window of
//! [`SORT_WINDOW_BLOCKS`] blocks, however long the list, and none of a list that is sorted already.

use crate::choice::{self, Choice, help_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Blocks that are sorted at a time: 512 KiB of block numbers, 512 MiB of file in 8 KiB blocks.
pub const SORT_WINDOW_BLOCKS: usize = 65_536;

/// The order in which a disk takes its blocks.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub enum DiskOrder {
    /// In file order.
    AsAsked = 0,
    /// By physical address (TOCS 1997, section 4: "presort").
    Sorted = 1,
    /// Sorted, but each server starts at its own share of the list and wraps around, so that not
    /// all servers send to the same client at once.
    Staggered = 2,
}

/// Disk orders by name, in the order in which users see them.
const CHOICES: [Choice<DiskOrder>; 3] = [
    Choice {
        value: DiskOrder::Sorted,
        name: "sorted",
        help: "by physical address on the disk (the papers' presort)",
    },
    Choice { value: DiskOrder::AsAsked, name: "as-asked", help: "as the blocks lie in the file" },
    Choice {
        value: DiskOrder::Staggered,
        name: "staggered",
        help: "by physical address, each server starting at its own share of the list",
    },
];

impl DiskOrder {
    /// Names of the orders.
    pub const WORDS: &[&str] = &choice::names(&CHOICES);

    /// Help text: the orders with an explanation of each.
    pub const HELP: &str = help_text!(
        "Order in which servers that direct a transfer serve the blocks of a disk. ",
        CHOICES,
        "."
    );
}

impl FromStr for DiskOrder {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        choice::parse(word, &CHOICES, "order")
    }
}

impl fmt::Display for DiskOrder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(choice::name_of(self, &CHOICES))
    }
}

/// The blocks of `blocks` in the order `order`, made while it is walked.
///
/// `blocks_total` is how many there are. A staggered list of server `start_share.0` of
/// `start_share.1` starts at that fraction of the sorted list. `address` is the physical address
/// of a block on its disk; only the order of addresses counts. A list longer than
/// [`SORT_WINDOW_BLOCKS`] is sorted window by window; sorting keeps the order of equal addresses.
pub fn disk_order<B, A>(
    order: DiskOrder,
    blocks: B,
    blocks_total: u64,
    start_share: (u32, u32),
    address: A,
) -> impl Iterator<Item = u64> + use<B, A>
where
    B: Iterator<Item = u64> + Clone,
    A: Fn(u64) -> u64,
{
    let start = match order {
        DiskOrder::AsAsked | DiskOrder::Sorted => 0,
        DiskOrder::Staggered => share_of(blocks_total, start_share),
    };
    match order {
        DiskOrder::AsAsked => Ordered::AsAsked(blocks),
        _ => Ordered::Windows(Windows::starting_at(blocks, start, address)),
    }
}

/// The position in a list of `total` at the fraction `share`; the start for an impossible share.
fn share_of(total: u64, (part, parts): (u32, u32)) -> u64 {
    if parts == 0 {
        return 0;
    }
    let start = u128::from(total) * u128::from(part % parts) / u128::from(parts);
    u64::try_from(start).unwrap_or(0)
}

/// Either way of walking the list.
enum Ordered<B, A> {
    AsAsked(B),
    Windows(Windows<B, A>),
}

impl<B: Iterator<Item = u64> + Clone, A: Fn(u64) -> u64> Iterator for Ordered<B, A> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Self::AsAsked(blocks) => blocks.next(),
            Self::Windows(windows) => windows.next(),
        }
    }
}

/// The list in sorted windows, from some place to the end and then from the start to that place:
///
/// ```text
/// window   0      1      2
///        3 4 5 | 6 1 2 | ...     the number says when a block comes; the start lies in window 1
/// ```
struct Windows<B, A> {
    /// The whole list.
    blocks: B,
    /// Windows not yet taken, in this round.
    ahead: B,
    address: A,
    window: Window<B>,
    /// Whole windows in front of the place of the start.
    windows_skipped: u64,
    /// Blocks of the sorted window there that come last of all.
    prefix: usize,
    round: Round,
}

/// A part of the list, sorted. One that comes sorted, as all of them do where a file lies in the
/// order of its blocks, is walked again and not kept.
enum Window<B> {
    AsItIs { blocks: B, left: usize },
    Kept(std::vec::IntoIter<u64>),
}

impl<B: Iterator<Item = u64>> Window<B> {
    /// Its first `count` blocks.
    fn up_to(self, count: usize) -> Self {
        match self {
            Self::AsItIs { blocks, left } => Self::AsItIs { blocks, left: left.min(count) },
            Self::Kept(blocks) => {
                let mut blocks: Vec<u64> = blocks.collect();
                blocks.truncate(count);
                Self::Kept(blocks.into_iter())
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::AsItIs { left, .. } => *left == 0,
            Self::Kept(blocks) => blocks.len() == 0,
        }
    }
}

impl<B: Iterator<Item = u64>> Iterator for Window<B> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Self::AsItIs { left: 0, .. } => None,
            Self::AsItIs { blocks, left } => {
                *left -= 1;
                blocks.next()
            }
            Self::Kept(blocks) => blocks.next(),
        }
    }
}

/// How far the walk is.
enum Round {
    /// Nothing is taken yet.
    Start,
    /// From the start to the end of the list.
    ToEnd,
    /// Whole windows from the beginning of the list; this many are left.
    FromBeginning(u64),
    /// Everything is in the last window taken.
    Last,
}

impl<B: Iterator<Item = u64> + Clone, A: Fn(u64) -> u64> Windows<B, A> {
    fn starting_at(blocks: B, start: u64, address: A) -> Self {
        let windows_skipped = start / SORT_WINDOW_BLOCKS as u64;
        let prefix = (start % SORT_WINDOW_BLOCKS as u64) as usize;
        let (ahead, window) = (blocks.clone(), Window::Kept(Vec::new().into_iter()));
        Self { blocks, ahead, address, window, windows_skipped, prefix, round: Round::Start }
    }

    /// The next window of the list, sorted.
    fn take_window(&mut self) -> Window<B> {
        let blocks = self.ahead.clone();
        let (mut left, mut is_sorted, mut last) = (0, true, 0);
        for block in self.ahead.by_ref().take(SORT_WINDOW_BLOCKS) {
            let address = (self.address)(block);
            is_sorted &= last <= address;
            (left, last) = (left + 1, address);
        }
        if is_sorted {
            return Window::AsItIs { blocks, left };
        }
        let mut window: Vec<u64> = blocks.take(left).collect();
        window.sort_by_cached_key(|block| (self.address)(*block));
        Window::Kept(window.into_iter())
    }

    /// Takes the next window that is due; false when nothing is left.
    fn advance(&mut self) -> bool {
        match self.round {
            Round::Start => {
                let blocks_skipped = self.windows_skipped * SORT_WINDOW_BLOCKS as u64;
                if let Some(last) = blocks_skipped.checked_sub(1) {
                    self.ahead.nth(usize::try_from(last).unwrap_or(usize::MAX));
                }
                self.window = self.take_window();
                self.window.by_ref().take(self.prefix).for_each(drop);
                self.round = Round::ToEnd;
                true
            }
            Round::ToEnd => {
                self.window = self.take_window();
                if self.window.is_empty() {
                    self.ahead = self.blocks.clone();
                    self.round = Round::FromBeginning(self.windows_skipped);
                }
                true
            }
            Round::FromBeginning(0) if self.prefix == 0 => false,
            Round::FromBeginning(0) => {
                self.window = self.take_window().up_to(self.prefix);
                self.round = Round::Last;
                true
            }
            Round::FromBeginning(left) => {
                self.window = self.take_window();
                // A list shorter than its owner said ends here.
                let ended = self.window.is_empty();
                self.round = if ended { Round::Last } else { Round::FromBeginning(left - 1) };
                !ended
            }
            Round::Last => false,
        }
    }
}

impl<B: Iterator<Item = u64> + Clone, A: Fn(u64) -> u64> Iterator for Windows<B, A> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(block) = self.window.next() {
                return Some(block);
            }
            if !self.advance() {
                return None;
            }
        }
    }
}
