//! Order in which a disk serves the blocks of a collective: the central choice of disk-directed
//! I/O.
//!
//! Invariants:
//! - Every block comes out exactly once.
//! - Memory holds at most one window of [`SORT_WINDOW_BLOCKS`] blocks, for lists of any length. It
//!   holds none of a list that is sorted already.

use crate::choice::{self, Choice, help_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Number of blocks sorted at a time: 512 KiB of block numbers, 512 MiB of file in 8 KiB blocks.
pub const SORT_WINDOW_BLOCKS: usize = 65_536;

/// Order in which a disk serves its blocks. Names and help texts are in the table below.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub enum DiskOrder {
    /// File order.
    AsAsked = 0,
    /// Order of physical addresses (TOCS 1997, section 4: "presort").
    Sorted = 1,
    /// Order of physical addresses, but each server starts at its own share of the list and wraps
    /// around. So the servers do not all send to the same client at once.
    Staggered = 2,
}

/// Disk orders by name, in the order in which users see them.
const CHOICES: [Choice<DiskOrder>; 3] = [
    Choice {
        value: DiskOrder::Sorted,
        name: "sorted",
        help: "by physical address on the disk (the papers' presort)",
    },
    Choice {
        value: DiskOrder::AsAsked,
        name: "as-asked",
        help: "in the order of the blocks in the \
                                                                 file",
    },
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
        "Order in which servers serve the blocks of a disk in a directed transfer. ",
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

/// Iterates over `blocks` in the order `order`, lazily.
///
/// - `blocks_total` is the number of blocks.
/// - A staggered list of server `start_share.0` of `start_share.1` starts at that fraction of the
///   sorted list.
/// - `address` is the physical address of a block on its disk. Only the order of addresses counts.
///
/// A list longer than [`SORT_WINDOW_BLOCKS`] is sorted window by window. Sorting keeps the order of
/// equal addresses.
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

/// Position in a list of `total` at the fraction `share`; the start for an impossible share.
fn share_of(total: u64, (part, parts): (u32, u32)) -> u64 {
    if parts == 0 {
        return 0;
    }
    let start = u128::from(total) * u128::from(part % parts) / u128::from(parts);
    u64::try_from(start).unwrap_or(0)
}

/// Walk over the list.
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

/// List in sorted windows, from some place to the end and then from the start to that place:
///
/// ```text
/// window   0      1      2
///        3 4 5 | 6 1 2 | ...     a number tells when a block comes; the walk starts in window 1
/// ```
struct Windows<B, A> {
    /// Whole list.
    blocks: B,
    /// Blocks of the windows that this round has not taken yet.
    ahead: B,
    address: A,
    window: Window<B>,
    /// Number of whole windows before the start of the walk.
    windows_skipped: u64,
    /// Number of blocks of the first sorted window that come last of all.
    prefix: usize,
    round: Round,
}

/// Sorted part of the list. A part that is sorted already is walked again and not kept. All parts
/// are when a file lies in the order of its blocks.
enum Window<B> {
    AsItIs { blocks: B, left: usize },
    Kept(std::vec::IntoIter<u64>),
}

impl<B: Iterator<Item = u64>> Window<B> {
    /// First `count` blocks of the window.
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

/// Progress of the walk.
enum Round {
    /// No window is taken yet.
    Start,
    /// From the start to the end of the list.
    ToEnd,
    /// Whole windows from the start of the list; this many are left.
    FromBeginning(u64),
    /// The last window is taken.
    Last,
}

impl<B: Iterator<Item = u64> + Clone, A: Fn(u64) -> u64> Windows<B, A> {
    fn starting_at(blocks: B, start: u64, address: A) -> Self {
        let windows_skipped = start / SORT_WINDOW_BLOCKS as u64;
        let prefix = (start % SORT_WINDOW_BLOCKS as u64) as usize;
        let (ahead, window) = (blocks.clone(), Window::Kept(Vec::new().into_iter()));
        Self { blocks, ahead, address, window, windows_skipped, prefix, round: Round::Start }
    }

    /// Takes the next window of the list and sorts it.
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

    /// Takes the next window of the walk; false when none is left.
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
                // A list that is shorter than `blocks_total` ends here.
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
