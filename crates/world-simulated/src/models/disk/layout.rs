//! The layout of a disk: the placement of the slots of an object.
//!
//! A slot is the place of one block, counted in the order of the object.
//!
//! Invariants:
//!
//! - Different slots never share a sector.
//! - A block is always one run of sectors.

use crate::models::ModelInfo;
use std::fmt;
use std::str::FromStr;
use units::SplitMix64;

/// Distribution of slots over a disk (Kotz, ACM TOCS 15(1), 1997, section 5), with all that users
/// know of it. To add one: declare it below, and list it in [`LayoutKind::ALL`].
#[derive(Clone, Copy)]
pub struct LayoutKind {
    /// Name and help text.
    info: ModelInfo,
    /// Constructor of the groups of a disk for blocks of some sectors. It returns nothing when a
    /// group does not fit the disk.
    groups: fn(DiskShape, u64) -> Option<Groups>,
}

/// Slots that stay together, and the order of such groups.
struct Groups {
    /// Slots of a group.
    slots: u64,
    /// Sectors from the start of one group to the start of the next.
    sectors: u64,
    /// True when the groups are in random order.
    is_shuffled: bool,
}

impl LayoutKind {
    /// Slots one after the other from the start of the disk.
    pub const CONTIGUOUS: Self = Self {
        info: ModelInfo { name: "contiguous", help: "one after the other" },
        groups: |_, block_sectors| {
            Some(Groups { slots: 1, sectors: block_sectors, is_shuffled: false })
        },
    };

    /// Each slot at a place of its own, drawn from the whole disk.
    pub const RANDOM_BLOCKS: Self = Self {
        info: ModelInfo { name: "random-blocks", help: "each block at a random place" },
        groups: |_, block_sectors| {
            Some(Groups { slots: 1, sectors: block_sectors, is_shuffled: true })
        },
    };

    /// Slots consecutive within a track, the tracks drawn from the whole disk. No block leaves its
    /// track (the paper "placed blocks consecutively within each track", and a block must be
    /// readable with one command): of 72 sectors, four blocks of 16 use 64. A block longer than a
    /// track has as many consecutive tracks as it needs.
    pub const RANDOM_TRACKS: Self = Self {
        info: ModelInfo {
            name: "random-tracks",
            help: "consecutive within a track, with the tracks at random places",
        },
        groups: |disk, block_sectors| {
            let sectors = block_sectors.checked_next_multiple_of(disk.track_sectors)?;
            let fits = sectors <= disk.capacity_sectors;
            let slots = sectors / block_sectors;
            fits.then_some(Groups { slots, sectors, is_shuffled: true })
        },
    };

    /// All layouts, in the order in which users see them.
    pub const ALL: &[Self] = &[Self::CONTIGUOUS, Self::RANDOM_BLOCKS, Self::RANDOM_TRACKS];

    /// Names of the layouts.
    pub const WORDS: &[&str] = &{
        let mut words = [""; Self::ALL.len()];
        let mut index = 0;
        while index < words.len() {
            words[index] = Self::ALL[index].info.name;
            index += 1;
        }
        words
    };

    /// Help text: the layouts with an explanation of each.
    pub fn help() -> String {
        let layouts = ModelInfo::help_of(Self::ALL.iter().map(|layout| layout.info));
        format!("Layout of the file's blocks on a disk. {layouts}.")
    }
}

impl Eq for LayoutKind {}

impl PartialEq for LayoutKind {
    /// Compares the names, which differ from layout to layout.
    fn eq(&self, other: &Self) -> bool {
        self.info.name == other.info.name
    }
}

impl fmt::Debug for LayoutKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.info.name)
    }
}

impl FromStr for LayoutKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|layout| layout.info.name == word);
        found.copied().ok_or_else(|| {
            format!("{word:?} is not a known layout; use one of {}", Self::WORDS.join(", "))
        })
    }
}

impl fmt::Display for LayoutKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.info.name)
    }
}

/// Layout of one disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Distribution of the slots.
    pub kind: LayoutKind,
    /// Seed of the random order of places, where there is one.
    pub seed: u64,
}

/// Reason why slots cannot be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// The disk is too small for one block, or a size is zero.
    #[error(
        "blocks of {block_sectors} sectors do not fit on a disk of {capacity_sectors} sectors in \
         tracks of {track_sectors}"
    )]
    NoPlace {
        /// Sectors of a block.
        block_sectors: u64,
        /// Sectors of a track.
        track_sectors: u64,
        /// Sectors of the disk.
        capacity_sectors: u64,
    },
    /// The disk does not have this slot.
    #[error("slot {slot} after the first {first_slot} is beyond the {slots} slots of the disk")]
    NoSlot {
        /// The requested slot.
        slot: u64,
        /// Number of slots of the disk before slot 0 of the object.
        first_slot: u64,
        /// Slots of the disk.
        slots: u64,
    },
}

/// Sizes of a disk on which a layout depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskShape {
    /// Sectors of a track.
    pub track_sectors: u64,
    /// Sectors of the disk.
    pub capacity_sectors: u64,
}

/// A layout on a disk of given sizes. It keeps no table, so a terabyte costs no memory.
#[derive(Clone, Debug)]
pub struct Placement {
    first_slot: u64,
    block_sectors: u64,
    /// Slots that stay together: as many blocks as a track holds, or one.
    group_slots: u64,
    /// Sectors from the start of one group to the start of the next.
    group_sectors: u64,
    /// Permutation of the groups; `None` keeps their order.
    order: Option<Permutation>,
    groups: u64,
}

impl Placement {
    /// Places blocks of `block_sectors` on a disk. Slot 0 is slot `first_slot` of the disk: objects
    /// that use different slots of the disk, under the same layout and seed, never overlap.
    ///
    /// # Errors
    /// [`LayoutError::NoPlace`] when the disk cannot hold one block, or a size is zero.
    pub fn new(
        layout: Layout,
        disk: DiskShape,
        block_sectors: u64,
        first_slot: u64,
    ) -> Result<Self, LayoutError> {
        let DiskShape { track_sectors, capacity_sectors } = disk;
        let no_place = LayoutError::NoPlace { block_sectors, track_sectors, capacity_sectors };
        if block_sectors == 0 || track_sectors == 0 || block_sectors > capacity_sectors {
            return Err(no_place);
        }
        let group = (layout.kind.groups)(disk, block_sectors).ok_or(no_place)?;
        let groups = capacity_sectors / group.sectors;
        let order = group.is_shuffled.then(|| Permutation::new(groups, layout.seed));
        let (group_slots, group_sectors) = (group.slots, group.sectors);
        Ok(Self { first_slot, block_sectors, group_slots, group_sectors, order, groups })
    }

    /// Returns the first sector of `slot`; its other sectors follow.
    ///
    /// # Errors
    /// [`LayoutError::NoSlot`] when the disk does not have this slot.
    pub fn first_sector(&self, slot: u64) -> Result<u64, LayoutError> {
        let Self { first_slot, group_slots, .. } = *self;
        let slots = self.groups * group_slots;
        let on_disk = slot.checked_add(first_slot).filter(|on_disk| *on_disk < slots);
        let on_disk = on_disk.ok_or(LayoutError::NoSlot { slot, first_slot, slots })?;
        let (group, within) = (on_disk / group_slots, on_disk % group_slots);
        let group = self.order.as_ref().map_or(group, |order| order.apply(group));
        Ok(group * self.group_sectors + within * self.block_sectors)
    }

    /// Number of slots from slot 0 to the end of the disk.
    pub fn slots(&self) -> u64 {
        (self.groups * self.group_slots).saturating_sub(self.first_slot)
    }
}

/// A pseudo-random permutation of `0 .. size`: a Feistel network over the next even power of two,
/// applied until it falls below `size`, on the average less than four times (cycle walking:
/// J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
#[derive(Clone, Debug)]
struct Permutation {
    size: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    fn new(size: u64, seed: u64) -> Self {
        assert!(size > 0, "a permutation needs a domain");
        let bits = u64::BITS - (size - 1).leading_zeros();
        let keys = [1, 2, 3, 4].map(|round| {
            SplitMix64::mix(seed.wrapping_add(SplitMix64::INCREMENT.wrapping_mul(round)))
        });
        Self { size, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Maps `value`, which must be below the size.
    fn apply(&self, value: u64) -> u64 {
        let mut image = self.apply_to_domain(value);
        while image >= self.size {
            image = self.apply_to_domain(image);
        }
        image
    }

    fn apply_to_domain(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (SplitMix64::mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const HP: DiskShape = DiskShape { track_sectors: 72, capacity_sectors: 2_647_080 };

    fn layout_of(kind: LayoutKind, seed: u64) -> Layout {
        Layout { kind, seed }
    }

    fn place(layout: Layout, disk: DiskShape, block_sectors: u64) -> Placement {
        Placement::new(layout, disk, block_sectors, 0).expect("the disk has places")
    }

    /// Proves that each layout is declared once, is parsed as it is shown, and is explained.
    #[test]
    fn names() {
        let names: BTreeSet<&str> = LayoutKind::WORDS.iter().copied().collect();
        assert_eq!(names.len(), LayoutKind::ALL.len());
        for (kind, word) in LayoutKind::ALL.iter().zip(LayoutKind::WORDS) {
            assert_eq!((word.parse(), kind.to_string().as_str()), (Ok(*kind), *word));
            assert!(LayoutKind::help().contains(&format!("{word}: ")), "{word}");
        }
        assert!("".parse::<LayoutKind>().is_err());
    }

    /// Proves that every permutation of up to 300 places takes each place once.
    #[test]
    fn small_permutations_are_bijections() {
        for size in 1..=300 {
            for seed in 0..5 {
                let order = Permutation::new(size, seed);
                let images: BTreeSet<u64> = (0..size).map(|value| order.apply(value)).collect();
                assert_eq!(images, (0..size).collect(), "size {size}, seed {seed}");
            }
        }
    }

    /// Proves that the layouts fill an HP 97560 with 8 KB blocks, none twice, none cut by its end,
    /// and under random tracks none cut by a track.
    #[test]
    fn layouts_fill_a_disk_without_overlap() {
        let layouts = [
            (layout_of(LayoutKind::CONTIGUOUS, 0), 165_442),
            (layout_of(LayoutKind::RANDOM_BLOCKS, 1), 165_442),
            (layout_of(LayoutKind::RANDOM_TRACKS, 1), 36_765 * 4),
        ];
        for (layout, slots) in layouts {
            let placement = place(layout, HP, 16);
            assert_eq!(placement.slots(), slots);
            let mut taken = vec![false; HP.capacity_sectors as usize];
            for slot in 0..slots {
                let first = placement.first_sector(slot).expect("the slot exists");
                let sectors = first as usize..first as usize + 16;
                assert!(taken[sectors.clone()].iter().all(|taken| !taken), "{layout:?} {slot}");
                taken[sectors].fill(true);
                let one_track = first / 72 == (first + 15) / 72;
                assert!(one_track || layout.kind != LayoutKind::RANDOM_TRACKS);
            }
            assert!(matches!(
                placement.first_sector(slots),
                Err(LayoutError::NoSlot { slot, .. }) if slot == slots
            ));
        }
    }

    /// Proves that places on a disk of 64 TiB differ for sampled slots, and look uniform: each
    /// sixteenth of the disk gets its share within 10 %.
    #[test]
    fn large_permutations_spread() {
        let disk = DiskShape { track_sectors: 72, capacity_sectors: 1 << 37 };
        let placement = place(layout_of(LayoutKind::RANDOM_BLOCKS, 97), disk, 16);
        let step = placement.slots() / 160_000;
        let samples = (0..80_000).chain((0..80_000).map(|index| 100_000 + index * step));
        let mut seen = BTreeSet::new();
        let mut shares = [0; 16];
        for slot in samples {
            let first = placement.first_sector(slot).expect("the slot exists");
            assert!(first.is_multiple_of(16) && first < disk.capacity_sectors);
            assert!(seen.insert(first), "slot {slot} lies on another");
            shares[(first >> 33) as usize] += 1;
        }
        assert!(shares.iter().all(|share| (9_000..11_000).contains(share)), "{shares:?}");
    }

    /// Proves that `first_slot` shifts an object behind another, and that seeds differ.
    #[test]
    fn objects_share_a_disk() {
        let layout = layout_of(LayoutKind::RANDOM_BLOCKS, 5);
        let whole = place(layout, HP, 16);
        let second = Placement::new(layout, HP, 16, 1_000).expect("the disk has places");
        assert_eq!(second.slots(), whole.slots() - 1_000);
        assert_eq!(second.first_sector(7), whole.first_sector(1_007));
        assert!(second.first_sector(u64::MAX).is_err());
        let other = place(layout_of(LayoutKind::RANDOM_BLOCKS, 6), HP, 16);
        let same = (0..1_000).filter(|slot| other.first_sector(*slot) == whole.first_sector(*slot));
        assert!(same.count() < 3);
    }

    /// Proves that blocks longer than a track get whole tracks of their own, and that impossible
    /// sizes are refused.
    #[test]
    fn odd_sizes() {
        let long = place(layout_of(LayoutKind::RANDOM_TRACKS, 0), HP, 128);
        assert_eq!(long.slots(), 36_765 / 2);
        assert!((0..100).all(|slot| long.first_sector(slot).is_ok_and(|first| first % 144 == 0)));
        for (track_sectors, capacity_sectors, block_sectors) in
            [(72, 10, 16), (0, 100, 16), (72, 100, 0), (72, 100, 80), (72, u64::MAX, u64::MAX)]
        {
            let disk = DiskShape { track_sectors, capacity_sectors };
            let layout = layout_of(LayoutKind::RANDOM_TRACKS, 0);
            assert!(Placement::new(layout, disk, block_sectors, 0).is_err(), "{disk:?}");
        }
    }
}
