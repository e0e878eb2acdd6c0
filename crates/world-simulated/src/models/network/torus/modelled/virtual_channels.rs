//! The virtual channels of a torus, by the instant from which each is free.

use super::release_times::ReleaseSequence;
use crate::models::network::torus::grid::{CHANNELS_PER_LINK, Stretch};

/// Marks a channel that has a queue; the other bits are the number of the queue.
pub(super) const CONTESTED: u64 = 1 << 63;

/// Marks a channel whose packet does not know its release time, and for which none waits.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// For each link, the instants from which its virtual channels are free, in ns; or the marks
/// [`CONTESTED`] and [`UNKNOWN`].
#[derive(Debug)]
pub(super) struct VirtualChannels(Box<[[u64; CHANNELS_PER_LINK as usize]]>);

impl VirtualChannels {
    pub(super) fn new(links: usize) -> Self {
        Self(vec![[0; CHANNELS_PER_LINK as usize]; links].into())
    }

    /// Reserves a channel for a packet whose head is there now, if its link is free. Returns true
    /// if it is.
    #[inline(always)]
    pub(super) fn enter(&mut self, channel: u32, head_ns: u64, busy_ns: u64) -> bool {
        let is_free = self.link_free_at_ns(channel) <= head_ns;
        if is_free {
            *self.free_at_ns(channel) = head_ns + busy_ns;
        }
        is_free
    }

    /// Reserves one channel after the other, each a hop later, up to the first whose link is not
    /// free. Returns their number. (Wrapping sums are safe: the caller computes the release of the
    /// last channel, and the head there, with a check.)
    #[inline(always)]
    pub(super) fn enter_free(
        &mut self,
        stretch: &Stretch,
        head_ns: u64,
        hop_ns: u64,
        busy_ns: u64,
    ) -> u32 {
        let Stretch { link, links, channel, .. } = *stretch;
        let channel = (channel % CHANNELS_PER_LINK) as usize;
        let passes_at_ns = |hops: usize| head_ns.wrapping_add((hops as u64).wrapping_mul(hop_ns));
        let links = &mut self.0[link as usize..][..links as usize];
        for (hops, link) in links.iter_mut().enumerate() {
            let head_ns = passes_at_ns(hops);
            if link[0].max(link[1]) > head_ns {
                return hops as u32;
            }
            link[channel] = head_ns.wrapping_add(busy_ns);
        }
        links.len() as u32
    }

    /// Returns the number of links of `stretch`, from its first on, that are free for a head that
    /// is at the first at `head_ns`.
    #[inline(always)]
    pub(super) fn count_free(&self, stretch: &Stretch, head_ns: u64, hop_ns: u64) -> u32 {
        let links = &self.0[stretch.link as usize..][..stretch.links as usize];
        let is_taken = |(hops, link): (usize, &[u64; 2])| {
            link[0].max(link[1]) > head_ns.wrapping_add((hops as u64).wrapping_mul(hop_ns))
        };
        links.iter().enumerate().position(is_taken).unwrap_or(links.len()) as u32
    }

    /// Sets the release times of the channels of `stretch`, one after the other, up to the first
    /// that has a queue. Returns their number.
    #[inline(always)]
    pub(super) fn release_quiet(&mut self, stretch: &Stretch, leaves: &mut ReleaseSequence) -> u32 {
        let Stretch { link, links, channel, .. } = *stretch;
        let channel = (channel % CHANNELS_PER_LINK) as usize;
        let links = &mut self.0[link as usize..][..links as usize];
        for (hops, link) in links.iter_mut().enumerate() {
            if has_queue(link[channel]) {
                return hops as u32;
            }
            link[channel] = leaves.next_ns();
        }
        links.len() as u32
    }

    /// Returns the instant from which both channels of a link are free.
    #[inline(always)]
    pub(super) fn link_free_at_ns(&self, channel: u32) -> u64 {
        let [one, other] = self.0[(channel / CHANNELS_PER_LINK) as usize];
        one.max(other)
    }

    #[inline(always)]
    pub(super) fn free_at_ns(&mut self, channel: u32) -> &mut u64 {
        &mut self.0.as_flattened_mut()[channel as usize]
    }
}

/// True if the value of a channel marks a queue.
#[inline(always)]
pub(super) fn has_queue(free_at_ns: u64) -> bool {
    (CONTESTED..UNKNOWN).contains(&free_at_ns)
}
