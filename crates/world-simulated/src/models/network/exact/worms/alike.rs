//! How many ticks can be done in one step.
//!
//! Whether a flit may move into a lane depends on four things: that its worm has the lane, that one
//! is there, that there is room, and that the link is not given to its other lane. While the same
//! lanes carry flits, every buffer gains or loses one flit a tick, or keeps what it has; so it can
//! be counted when the first of the four will change somewhere. Until then every tick is like the
//! first one. Where a link had to choose between its lanes, ticks are done one by one.

use super::{Move, Worm, Worms};

impl Worms {
    /// For how many ticks, up to `max`, the same flits may move as in this one.
    pub(super) fn ticks_alike(&mut self, max: u64) -> u64 {
        if max == 1 {
            return 1;
        }
        self.mark_moves(true);
        let mut ticks = max;
        for &index in &self.active {
            let worm = &self.worms[index as usize];
            for stage in worm.tail..=worm.head {
                ticks = ticks.min(self.ticks_until_change(index, worm, stage));
            }
        }
        self.mark_moves(false);
        ticks
    }

    fn mark_moves(&mut self, mark: bool) {
        for &Move { worm, stage, lane } in &self.moves {
            self.lanes[lane as usize].fills = mark;
            let before = self.worms[worm as usize].way[stage - 1];
            self.lanes[before as usize].drains = mark;
        }
    }

    /// After how many ticks it may change whether flits of a worm enter a lane that it has.
    fn ticks_until_change(&self, index: u32, worm: &Worm, stage: usize) -> u64 {
        let before = &self.lanes[worm.way[stage - 1] as usize];
        let lane = &self.lanes[worm.way[stage] as usize];
        let entered = worm.entered[stage];
        let ready = worm.entered[stage - 1] - entered;
        let more_come = before.fills && before.owner == Some(index);
        if !lane.fills {
            // It lacks flits, or room, and gets some at the end of this tick; or it does not.
            let gets_some = if ready == 0 { more_come } else { lane.drains };
            return if gets_some { 1 } else { u64::MAX };
        }
        if entered == 0 {
            // Its head is about to ask for the next lane.
            return 1;
        }
        let until_tail = worm.flits - entered;
        let until_empty = if more_come { u64::MAX } else { ready };
        let until_full = if lane.drains { u64::MAX } else { lane.room - lane.flits };
        until_tail.min(until_empty).min(until_full)
    }
}
