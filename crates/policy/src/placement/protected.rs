//! Arithmetic of protection: how many bytes of files the loss of any one server would leave.
//!
//! Invariants:
//! - What is not sure to be protected does not count: a share is a lower bound, as far as the sizes
//!   of files are known.
//! - A share is 100 percent only if every byte counts.

use super::protection::Protection;
use super::stripe::Stripe;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{DiskId, FileId, ServerId};

/// What a server knows to be unprotected of a file.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Unprotected {
    /// Size of the file in bytes, as far as the server knows it.
    pub file_bytes: u64,
    /// Bytes of the server's part that no other server is sure to have, whatever the others are
    /// sure of: in its cache only, lost, or to be filled.
    pub own_bytes: u64,
    /// Places, among the servers of the file, whose copy or parity may lack changes, with the
    /// number of bytes that it would protect ([`Protection::protected_at`]).
    pub behind: Vec<(ServerId, u64)>,
}

/// Bytes of files that have a protection, and how many of them are protected now.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProtectedBytes {
    /// All bytes.
    pub bytes: u64,
    /// Bytes that the loss of any one server would leave.
    pub protected_bytes: u64,
}

impl Unprotected {
    /// True if nothing is known to be unprotected.
    pub fn is_nothing(&self) -> bool {
        self.own_bytes == 0 && self.behind.is_empty()
    }
}

impl ProtectedBytes {
    /// Puts together what the servers of a file of at least `file_bytes` bytes know. Several may
    /// know that the same copy or parity may lack changes, so the largest number counts.
    ///
    /// ```
    /// use policy::{ProtectedBytes, Unprotected};
    /// use units::ServerId;
    ///
    /// let behind = vec![(ServerId(2), 300)];
    /// let one = Unprotected { own_bytes: 50, behind: behind.clone(), ..Unprotected::default() };
    /// let other = Unprotected { behind, ..Unprotected::default() };
    /// let sum = ProtectedBytes::of_file(1000, [&one, &other]);
    /// assert_eq!((sum.protected_bytes, sum.percent()), (650, 65));
    /// ```
    pub fn of_file<'a>(file_bytes: u64, known: impl IntoIterator<Item = &'a Unprotected>) -> Self {
        let (mut bytes, mut own) = (file_bytes, 0_u64);
        let mut behind = BTreeMap::<ServerId, u64>::new();
        for one in known {
            bytes = bytes.max(one.file_bytes);
            own = own.saturating_add(one.own_bytes);
            for (place, lacking) in &one.behind {
                let most = behind.entry(*place).or_default();
                *most = (*most).max(*lacking);
            }
        }
        let unprotected = behind.into_values().fold(own, u64::saturating_add);
        // Where bytes are missing, the size may be unknown.
        let bytes = bytes.max(unprotected.min(1));
        Self { bytes, protected_bytes: bytes.saturating_sub(unprotected) }
    }

    /// Puts together what servers know of all files. `parts` has the bytes that each server has of
    /// protected files, as far as the catalogue knows. `known` has what each server knows: `None`
    /// for one that does not answer, of which nothing counts.
    pub fn of_servers(
        parts: &[(ServerId, u64)],
        known: impl IntoIterator<Item = (ServerId, Option<Vec<(FileId, Unprotected)>>)>,
    ) -> Self {
        let parts: BTreeMap<ServerId, u64> = parts.iter().copied().collect();
        let (mut files, mut unsure) = (BTreeMap::<FileId, Vec<Unprotected>>::new(), 0_u64);
        for (server, known) in known {
            if known.is_none() {
                unsure = unsure.saturating_add(parts.get(&server).copied().unwrap_or(0));
            }
            for (file, unprotected) in known.into_iter().flatten() {
                files.entry(file).or_default().push(unprotected);
            }
        }
        let all_bytes = parts.into_values().fold(0, u64::saturating_add);
        Self::of_all(all_bytes, files.values().map(|known| Self::of_file(0, known)), unsure)
    }

    /// Puts files together that are not protected in full. With the others, all are `all_bytes`
    /// long, as far as that is known. Of these, `unsure_bytes` more do not count.
    fn of_all(all_bytes: u64, files: impl Iterator<Item = Self>, unsure_bytes: u64) -> Self {
        let (mut known, mut unprotected) = (0_u64, unsure_bytes);
        for file in files {
            known = known.saturating_add(file.bytes);
            unprotected = unprotected.saturating_add(file.bytes - file.protected_bytes);
        }
        // A size that is too small makes the share smaller. One that is too large, of a file that
        // was cut since, makes it larger, but never whole.
        let bytes = all_bytes.max(known).max(unprotected.min(1));
        Self { bytes, protected_bytes: bytes.saturating_sub(unprotected) }
    }

    /// True if every byte is protected.
    pub fn is_whole(self) -> bool {
        self.protected_bytes == self.bytes
    }

    /// Share of the bytes that are protected, in percent, rounded down; 100 of no bytes.
    pub fn percent(self) -> u32 {
        let bytes = u128::from(self.bytes);
        let percent = u128::from(self.protected_bytes) * 100;
        percent.checked_div(bytes).map_or(100, |percent| percent as u32)
    }
}

impl Protection {
    /// Number of bytes of a file of `file_bytes` bytes that are protected by the copy or parity
    /// of the server at `place`. Parity protects whole rows, which may reach beyond the end.
    pub fn protected_at(self, stripe: &Stripe, place: ServerId, file_bytes: u64) -> u64 {
        if let Some(owner) = self.copied_at(place, stripe.servers) {
            return part_bytes(stripe, owner, file_bytes);
        }
        let Some(rows) = self.rows(stripe) else { return 0 };
        let disks = (0..stripe.disks_per_server).map(DiskId);
        let parity: u64 = disks.map(|disk| rows.parity_bytes(place, disk, file_bytes)).sum();
        parity.saturating_mul(rows.blocks(0).end)
    }

    /// Share of data in what is stored of a file with this stripe: 1 without protection, 1/2 with
    /// copies, and k/(k + 1) with rows of k blocks.
    pub fn data_share(self, stripe: &Stripe) -> f64 {
        match (self, self.rows(stripe)) {
            (_, Some(rows)) => {
                let blocks = rows.blocks(0).end as f64;
                blocks / (blocks + 1.0)
            }
            (Self::Mirror, None) => 0.5,
            (Self::None | Self::Parity { .. }, None) => 1.0,
        }
    }
}

/// Number of bytes of a file of `file_bytes` bytes on the server at `place`.
pub fn part_bytes(stripe: &Stripe, place: ServerId, file_bytes: u64) -> u64 {
    let disks = (0..stripe.disks_per_server).map(DiskId);
    disks.map(|disk| stripe.object_bytes(place, disk, file_bytes)).sum()
}

#[cfg(test)]
mod tests {
    //! Proves: what all places protect is the file, and no more than its rows; a share is rounded
    //! down; and 100 percent is said only of everything.
    use super::*;

    fn behind(place: u32, bytes: u64) -> Unprotected {
        Unprotected { behind: vec![(ServerId(place), bytes)], ..Unprotected::default() }
    }

    fn own(own_bytes: u64) -> Unprotected {
        Unprotected { own_bytes, ..Unprotected::default() }
    }

    #[test]
    fn all_places_together_protect_the_file() {
        for (servers, disks) in [(2, 1), (3, 2), (5, 1), (6, 2)] {
            let stripe = Stripe::round_robin(10, servers, disks);
            for bytes in (0..700).step_by(7) {
                let sum = |protection: Protection| -> u64 {
                    let at = |place| protection.protected_at(&stripe, ServerId(place), bytes);
                    (0..servers).map(at).sum()
                };
                let parts = (0..servers).map(|place| part_bytes(&stripe, ServerId(place), bytes));
                assert_eq!(parts.sum::<u64>(), bytes);
                assert_eq!(sum(Protection::Mirror), bytes);
                assert_eq!(sum(Protection::None), 0);
                for blocks in 1..servers {
                    let row = 10 * u64::from(blocks);
                    let protected = sum(Protection::Parity { blocks });
                    assert_eq!(protected, bytes.next_multiple_of(row), "rows of {blocks}");
                }
            }
        }
    }

    #[test]
    fn the_share_of_data_is_that_of_a_row() {
        let stripe = Stripe::round_robin(10, 9, 1);
        let share = |protection: Protection| protection.data_share(&stripe);
        assert_eq!((share(Protection::None), share(Protection::Mirror)), (1.0, 0.5));
        for (blocks, least, most) in [(1, 0.5, 0.5), (4, 0.8, 0.8), (0, 0.88, 0.89)] {
            let share = share(Protection::Parity { blocks });
            assert!((least..=most).contains(&share), "{blocks}: {share}");
        }
    }

    #[test]
    fn the_same_copy_counts_once_and_parts_add_up() {
        let of = |known: &[Unprotected]| ProtectedBytes::of_file(100, known).protected_bytes;
        assert_eq!(of(&[]), 100);
        assert_eq!(of(&[behind(1, 30), behind(1, 40)]), 60);
        assert_eq!(of(&[behind(1, 30), behind(2, 40)]), 30);
        assert_eq!(of(&[own(30), own(40), behind(2, 20)]), 10);
        assert_eq!(of(&[own(30), own(u64::MAX), behind(2, u64::MAX)]), 0);
    }

    #[test]
    fn the_largest_size_counts_and_missing_bytes_of_unknown_size_are_seen() {
        let known = Unprotected { file_bytes: 400, own_bytes: 100, behind: Vec::new() };
        assert_eq!(ProtectedBytes::of_file(0, [&known]).percent(), 75);
        assert_eq!(ProtectedBytes::of_file(0, [&own(1)]).percent(), 0);
        assert!(ProtectedBytes::of_file(0, []).is_whole());
    }

    #[test]
    fn a_share_is_rounded_down_and_whole_only_if_all_of_it_is() {
        let of = |bytes, protected_bytes| ProtectedBytes { bytes, protected_bytes };
        for (sum, percent) in [
            (of(0, 0), 100),
            (of(1, 0), 0),
            (of(3, 2), 66),
            (of(1000, 999), 99),
            (of(u64::MAX, u64::MAX - 1), 99),
            (of(u64::MAX, u64::MAX), 100),
        ] {
            assert_eq!((sum.percent(), sum.is_whole()), (percent, percent == 100), "{sum:?}");
        }
    }

    #[test]
    fn a_sum_never_says_more_than_is_sure() {
        let file = |bytes, protected_bytes| ProtectedBytes { bytes, protected_bytes };
        let of = |all, files: &[ProtectedBytes], unsure| {
            let sum = ProtectedBytes::of_all(all, files.iter().copied(), unsure);
            (sum.bytes, sum.protected_bytes)
        };
        assert_eq!(of(0, &[], 0), (0, 0));
        assert_eq!(of(1000, &[], 0), (1000, 1000));
        assert_eq!(of(1000, &[file(100, 60), file(10, 0)], 0), (1000, 950));
        // The catalogue does not know the size of a file that is being written.
        assert_eq!(of(0, &[file(100, 60)], 0), (100, 60));
        assert_eq!(of(1000, &[file(100, 60)], 500), (1000, 460));
        assert_eq!(of(10, &[], 20), (10, 0));
        assert_eq!(of(0, &[], 20), (1, 0));
    }

    #[test]
    fn servers_tell_of_files_and_one_that_does_not_counts_with_its_part() {
        let parts = [(ServerId(0), 500), (ServerId(1), 500)];
        let whole = |unprotected| Unprotected { file_bytes: 100, ..unprotected };
        let first = vec![(FileId(3), whole(own(30))), (FileId(4), whole(behind(1, 200)))];
        let second = vec![(FileId(3), whole(own(20)))];
        let of = |second| {
            let known = [(ServerId(0), Some(first.clone())), (ServerId(1), second)];
            let sum = ProtectedBytes::of_servers(&parts, known);
            (sum.bytes, sum.protected_bytes)
        };
        assert_eq!(of(Some(second)), (1000, 850));
        assert_eq!(of(Some(Vec::new())), (1000, 870));
        assert_eq!(of(None), (1000, 370));
    }
}
