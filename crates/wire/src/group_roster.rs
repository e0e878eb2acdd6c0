//! Rosters: the members of a group and their addresses, for servers to which most members are not
//! connected.
//!
//! A group can have thousands of members, and each server gets the whole roster. Therefore lists of
//! numbers are encoded as plain bytes, and values that most members share are encoded once.

use crate::ClientKey;
use serde::{Deserialize, Serialize};
use units::{ClientId, RegionId};

/// Members of a group, for transfers that the sender will request. The server connects to a member
/// that is not connected when it has data for it. A roster replaces the earlier one of its group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupRoster {
    /// Number of the group among the sender's.
    pub group: u64,
    /// Key of each member, by rank; empty when there are no more transfers.
    #[serde(with = "packed")]
    pub members: Vec<ClientKey>,
    /// Address of each member, by rank; empty if the memory of the member is not open to servers
    /// that connect to it.
    pub addresses: Addresses,
}

/// Addresses of thousands of nodes: one text, cut into pieces.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Addresses {
    text: String,
    #[serde(with = "packed")]
    ends: Vec<u32>,
}

impl Addresses {
    /// Number of addresses, including empty ones.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the address with this index, unless it is empty or missing.
    pub fn get(&self, index: usize) -> Option<&str> {
        let before = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let (start, end) = (before? as usize, *self.ends.get(index)? as usize);
        self.text.get(start..end).filter(|address| !address.is_empty())
    }
}

impl<'a> FromIterator<&'a str> for Addresses {
    /// Collects addresses up to 4 GiB of text and drops the rest.
    fn from_iter<I: IntoIterator<Item = &'a str>>(addresses: I) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for address in addresses {
            text.push_str(address);
            let Ok(end) = u32::try_from(text.len()) else { break };
            ends.push(end);
        }
        Self { text, ends }
    }
}

/// Region of each member, by rank, as runs of equal names. In simulations most members have one
/// name; names that are drawn at random make one run each.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Regions {
    /// Runs: one past the last member, and the region of its members.
    runs: Vec<(u32, RegionId)>,
}

impl Regions {
    /// Number of members.
    pub fn count(&self) -> usize {
        self.runs.last().map_or(0, |(end, _)| *end as usize)
    }

    /// Returns the region of a member, if it has one.
    pub fn get(&self, member: ClientId) -> Option<RegionId> {
        let run = self.runs.partition_point(|(end, _)| *end <= member.0);
        self.runs.get(run).map(|(_, region)| *region)
    }
}

impl FromIterator<RegionId> for Regions {
    /// Collects regions, of at most 2^32 - 1 members.
    fn from_iter<I: IntoIterator<Item = RegionId>>(regions: I) -> Self {
        let mut runs: Vec<(u32, RegionId)> = Vec::new();
        for (end, region) in (1..=u32::MAX).zip(regions) {
            match runs.last_mut() {
                Some(last) if last.1 == region => last.0 = end,
                _ => runs.push((end, region)),
            }
        }
        Self { runs }
    }
}

/// Codec of lists of numbers as their bytes, each number little-endian.
mod packed {
    use super::ClientKey;
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;
    use std::marker::PhantomData;

    /// Number with an encoding of fixed length.
    pub(super) trait Packed: Sized {
        const BYTES: usize;
        fn put(&self, bytes: &mut Vec<u8>);
        /// Decodes exactly [`Packed::BYTES`] bytes.
        fn of(bytes: &[u8]) -> Option<Self>;
    }

    impl Packed for u32 {
        const BYTES: usize = size_of::<Self>();
        fn put(&self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.to_le_bytes());
        }
        fn of(bytes: &[u8]) -> Option<Self> {
            bytes.try_into().ok().map(Self::from_le_bytes)
        }
    }

    impl Packed for ClientKey {
        const BYTES: usize = size_of::<u64>();
        fn put(&self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.0.to_le_bytes());
        }
        fn of(bytes: &[u8]) -> Option<Self> {
            bytes.try_into().ok().map(|bytes| Self(u64::from_le_bytes(bytes)))
        }
    }

    pub(super) fn serialize<N: Packed, S: Serializer>(
        numbers: &[N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(numbers.len() * N::BYTES);
        numbers.iter().for_each(|number| number.put(&mut bytes));
        serializer.serialize_bytes(&bytes)
    }

    pub(super) fn deserialize<'de, N: Packed, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<N>, D::Error> {
        deserializer.deserialize_bytes(Numbers(PhantomData))
    }

    struct Numbers<N>(PhantomData<N>);

    impl<N: Packed> Visitor<'_> for Numbers<N> {
        type Value = Vec<N>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "numbers of {} bytes each", N::BYTES)
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<N>, E> {
            let mut numbers = Vec::with_capacity(bytes.len() / N::BYTES);
            for number in bytes.chunks(N::BYTES) {
                let number = N::of(number);
                numbers.push(number.ok_or_else(|| E::invalid_length(bytes.len(), &self))?);
            }
            Ok(numbers)
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: addresses and regions are those that were collected, and no decoded form panics.
    use super::*;

    #[test]
    fn addresses_are_what_they_were_made_of() {
        let addresses: Addresses = ["node:1", "", "unix:/a\nb", "é"].into_iter().collect();
        let got: Vec<_> = (0..5).map(|index| addresses.get(index)).collect();
        assert_eq!(got, [Some("node:1"), None, Some("unix:/a\nb"), Some("é"), None]);
        assert_eq!(Addresses::default().get(0), None);
        let strange = Addresses { text: "é".to_owned(), ends: vec![2, 1, 1, 9] };
        assert_eq!(strange.get(0), Some("é"));
        assert_eq!([1, 2, 3].map(|index| strange.get(index)), [None; 3]);
    }

    #[test]
    fn regions_are_what_they_were_made_of() {
        for names in [&[][..], &[7], &[7, 7, 7], &[7, 7, 8, 7, 7], &[1, 2, 3]] {
            let regions: Regions = names.iter().copied().map(RegionId).collect();
            assert_eq!(regions.count(), names.len());
            let got = (0..).map_while(|member| regions.get(ClientId(member)));
            assert!(got.eq(names.iter().copied().map(RegionId)), "{names:?}");
        }
        let same: Regions = std::iter::repeat_n(RegionId(3), 65_536).collect();
        assert_eq!(same.runs, [(65_536, RegionId(3))]);
        let strange = Regions { runs: vec![(9, RegionId(1)), (2, RegionId(2)), (0, RegionId(3))] };
        assert_eq!(strange.count(), 0);
        assert!((0..20).filter_map(|member| strange.get(ClientId(member))).count() <= 20);
    }

    #[test]
    fn numbers_that_do_not_fill_their_bytes_are_refused() {
        let members = vec![ClientKey(1), ClientKey(u64::MAX)];
        let addresses = ["a", ""].into_iter().collect();
        let roster = GroupRoster { group: 1, members, addresses };
        let mut bytes: Vec<u8> = crate::encode_record(&roster);
        assert_eq!(crate::decode_record(&bytes), Ok(roster));
        // The length of the list of members: 16 bytes.
        assert_eq!(bytes[1], 16);
        bytes[1] = 15;
        assert!(crate::decode_record::<GroupRoster>(&bytes).is_err());
    }
}
