//! When the channels of a torus are free.

use super::release_times::ReleaseSequence;
use crate::models::network::torus::grid::{CHANNELS_PER_LINK, Stretch};

/// Marks a channel that has a queue; the rest of the number says which.
pub(super) const CONTESTED: u64 = 1 << 63;

/// Of a channel that belongs to a packet which does not know when it will leave it, and for which nobody
/// waits.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// By link, when each of its channels is free, in ns; or where it is said which packets wait for it, or
/// that the packet in it does not know when it will leave: [`contention`](super::contention) has marks
/// for these.
#[derive(Debug)]
pub(super) struct VirtualChannels(Box<[[u64; CHANNELS_PER_LINK as usize]]>);

impl VirtualChannels {
    pub(super) fn new(links: usize) -> Self {
        Self(vec![[0; CHANNELS_PER_LINK as usize]; links].into())
    }

    /// Has a packet whose head is there now have a channel, if its link is free; whether it is.
    #[inline(always)]
    pub(super) fn enter(&mut self, channel: u32, head_ns: u64, busy_ns: u64) -> bool {
        let is_free = self.link_free_at_ns(channel) <= head_ns;
        if is_free {
            *self.free_at_ns(channel) = head_ns + busy_ns;
        }
        is_free
    }

    /// The same for one channel after the other, each a hop later, up to the first whose link is not
    /// free; how many. (Nothing wraps here: when the last of these channels is free, or a head at it,
    /// is asked for with a check.)
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

    /// How many of the links of `stretch`, from its first on, are free when a head comes that is at
    /// the first at `head_ns`.
    #[inline(always)]
    pub(super) fn count_free(&self, stretch: &Stretch, head_ns: u64, hop_ns: u64) -> u32 {
        let links = &self.0[stretch.link as usize..][..stretch.links as usize];
        let is_taken = |(hops, link): (usize, &[u64; 2])| {
            link[0].max(link[1]) > head_ns.wrapping_add((hops as u64).wrapping_mul(hop_ns))
        };
        links.iter().enumerate().position(is_taken).unwrap_or(links.len()) as u32
    }

    /// Says when the channels of `stretch` are free, one after the other, up to the first for which
    /// packets wait; of how many.
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

    /// When both channels of a link are.
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

/// Whether what is said of a channel is which packets wait for it.
#[inline(always)]
pub(super) fn has_queue(free_at_ns: u64) -> bool {
    (CONTESTED..UNKNOWN).contains(&free_at_ns)
}
