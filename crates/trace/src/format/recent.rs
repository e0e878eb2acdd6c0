//! Recent messages and collective operations: a repeated one takes a byte.
//!
//! Writer and reader keep the same 256 slots. What is said in full is put in the slot that its hash
//! names; what is there already is said by the number of the slot. Slots begin as four zeros.

/// Number of slots: what one byte can name.
const SLOTS: usize = 256;

/// Slots with four numbers each.
pub(crate) struct Recent(Box<[[u64; 4]; SLOTS]>);

impl Recent {
    /// Slots of zeros.
    pub(crate) fn new() -> Self {
        Self(Box::new([[0; 4]; SLOTS]))
    }

    /// Slot in which the numbers are, if they are in theirs; else puts them there.
    #[inline]
    pub(crate) fn find_or_put(&mut self, numbers: [u64; 4]) -> Option<u8> {
        let slot = slot(numbers);
        let held = &mut self.0[usize::from(slot)];
        if *held == numbers {
            return Some(slot);
        }
        *held = numbers;
        None
    }

    /// Numbers in a slot.
    pub(crate) fn at(&self, slot: u8) -> [u64; 4] {
        self.0[usize::from(slot)]
    }
}

/// Slot of four numbers: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4), number
/// after number.
#[inline]
fn slot(numbers: [u64; 4]) -> u8 {
    let mix =
        |hash: u64, number: u64| (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (numbers.into_iter().fold(0, mix) >> 56) as u8
}
