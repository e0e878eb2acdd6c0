//! Links that carry one message at a time, in the order of the calls.

use units::Duration;

/// Properties of a link, and of the switch or router before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSpec {
    /// Bytes a second, in each direction.
    pub bytes_per_second: u64,
    /// Time that the head of a message needs from one switch to the next.
    pub hop: Duration,
}

impl LinkSpec {
    /// 200 * 10^6 bytes/s in each direction and 20 ns per router (Kotz, ACM TOCS 15(1), 1997,
    /// Table I; the same in PCS-TR94-226).
    pub const TOCS_1997: Self = Self { bytes_per_second: 200_000_000, hop: Duration::from_ns(20) };

    /// Bytes of a flit: the bytes that a link carries in a hop time, if that is a whole number and
    /// not zero.
    pub(super) fn flit_bytes(&self) -> Option<u64> {
        let product = u128::from(self.hop.as_ns()) * u128::from(self.bytes_per_second);
        let bytes = u64::try_from(product / 1_000_000_000).unwrap_or(u64::MAX);
        (bytes > 0 && product % 1_000_000_000 == 0).then_some(bytes)
    }
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self::TOCS_1997
    }
}

/// Transfer time of bytes over a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time of a byte in ns, if that is a whole number; it saves a division for each message.
    whole_ns_per_byte: Option<u64>,
    bytes_per_second: u64,
}

impl Pace {
    pub(super) fn of(link: LinkSpec) -> Self {
        let bytes_per_second = link.bytes_per_second;
        let is_whole = 1_000_000_000 % bytes_per_second == 0;
        let whole_ns_per_byte = is_whole.then(|| 1_000_000_000 / bytes_per_second);
        Self { whole_ns_per_byte, bytes_per_second }
    }

    /// Transfer time in ns, rounded up.
    #[inline]
    pub(super) fn ns(self, bytes: u64) -> u64 {
        match self.whole_ns_per_byte {
            Some(ns) => ns * bytes,
            None => Duration::of_transfer(bytes, self.bytes_per_second).as_ns(),
        }
    }
}

/// Links, by the instant from which each is free.
#[derive(Clone, Debug)]
pub(super) struct Links {
    free_at_ns: Box<[u64]>,
}

impl Links {
    /// Creates `count` free links.
    pub(super) fn new(count: usize) -> Self {
        Self { free_at_ns: vec![0; count].into() }
    }

    /// Lets the head of a message, at the start of `link` at `head_ns`, enter when the link is
    /// free, and occupies the link for `busy_ns`. Returns the instant of entry in ns.
    #[inline]
    pub(super) fn enter(&mut self, link: usize, head_ns: u64, busy_ns: u64) -> u64 {
        let free_at_ns = &mut self.free_at_ns[link];
        let head_ns = head_ns.max(*free_at_ns);
        *free_at_ns = head_ns + busy_ns;
        head_ns
    }
}

#[cfg(test)]
mod tests {
    //! Proves: transfer times are rounded up once for each message, not for each byte.
    use super::*;

    #[test]
    fn any_speed_is_possible() {
        let pace =
            |bytes_per_second| Pace::of(LinkSpec { bytes_per_second, ..LinkSpec::TOCS_1997 });
        assert_eq!(pace(200_000_000).ns(8192), 40_960);
        assert_eq!(pace(25_000_000_000).ns(1), 1);
        assert_eq!(pace(25_000_000_000).ns(1_000_001), 40_001);
        assert_eq!(pace(300_000_000).ns(3), 10);
    }
}
