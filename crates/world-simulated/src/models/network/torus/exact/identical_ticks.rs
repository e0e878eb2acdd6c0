//! The number of identical ticks that can be done in one step.
//!
//! A flit may move into a channel under four conditions: its packet owns the channel, a flit is
//! available, the buffer has room, and the link does not serve its other channel. While the same
//! channels carry flits, every buffer gains or loses one flit a tick, or keeps its number. So the
//! tick in which the first of the four conditions changes can be computed, and until then every
//! tick is like the first. Where a link had to choose between its channels, ticks are done one by
//! one.

use super::flit_network::{FlitNetwork, Move, Packet};

impl FlitNetwork {
    /// Number of ticks, up to `max`, in which the same flits may move as in this one.
    pub(super) fn identical_ticks(&mut self, max: u64) -> u64 {
        if max == 1 {
            return 1;
        }
        self.mark_moves(true);
        let mut ticks = max;
        for &index in &self.active {
            let packet = &self.packets[index as usize];
            for stage in packet.tail..=packet.head {
                ticks = ticks.min(self.ticks_until_change(index, packet, stage));
            }
        }
        self.mark_moves(false);
        ticks
    }

    fn mark_moves(&mut self, mark: bool) {
        for &Move { packet, stage, channel } in &self.moves {
            self.channels[channel as usize].fills = mark;
            let before = self.packets[packet as usize].route[stage - 1];
            self.channels[before as usize].drains = mark;
        }
    }

    /// Number of ticks after which it may change whether flits of a packet enter a channel that it
    /// owns.
    fn ticks_until_change(&self, index: u32, packet: &Packet, stage: usize) -> u64 {
        let before = &self.channels[packet.route[stage - 1] as usize];
        let channel = &self.channels[packet.route[stage] as usize];
        let entered = packet.entered[stage];
        let ready = packet.entered[stage - 1] - entered;
        let more_come = before.fills && before.owner == Some(index);
        if !channel.fills {
            // It lacks flits, or room, and gets some at the end of this tick; or it does not.
            let gets_some = if ready == 0 { more_come } else { channel.drains };
            return if gets_some { 1 } else { u64::MAX };
        }
        if entered == 0 {
            // Its head is about to request the next channel.
            return 1;
        }
        let until_tail = packet.flits - entered;
        let until_empty = if more_come { u64::MAX } else { ready };
        let until_full = if channel.drains { u64::MAX } else { channel.room - channel.flits };
        until_tail.min(until_empty).min(until_full)
    }
}
