//! What goes wrong on a machine, and when: data that a machine is given before it starts to run.
//!
//! ```text
//! plan:   1 ms  DiskIsSlow { node: 0, disk: 0, times: 20 }
//!         3 ms  Crash { node: 0 }      tasks, memory and connections are gone; of what was written
//!                                      and not synced, the seed decides what is there
//!         9 ms  Restart { node: 0 }    whoever planned is told, and starts the program again
//! ```
//!
//! A machine without a plan runs as if this file did not exist.

use super::assembly::Machine;
use crate::engine::TimerHandler;
use crate::random::mix;
use std::rc::{Rc, Weak};
use units::{Duration, Instant};
use world::payload::Kind;

/// All that goes wrong on a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan {
    /// Decides what becomes of interrupted writes.
    pub seed: u64,
    /// How long a change of records takes. A crash meanwhile finds it made or not, as a whole.
    pub record_change: Duration,
    /// What happens when; those of one instant happen in their order.
    pub faults: Vec<PlannedFault>,
}

/// One thing that goes wrong, or well again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedFault {
    /// When.
    pub at: Instant,
    /// What.
    pub what: Disruption,
}

/// What can happen to a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disruption {
    /// A node loses its power: [`Machine::kill`]. Without effect on one that has none.
    Crash {
        /// Which.
        node: u32,
    },
    /// A node comes back: [`Machine::restart`].
    Restart {
        /// Which.
        node: u32,
    },
    /// Requests of a disk take longer, from those under way on.
    DiskIsSlow {
        /// Whose disk.
        node: u32,
        /// Which of the node's.
        disk: u32,
        /// So many times as long; 1 ends it.
        times: u32,
    },
    /// Requests of a disk fail, from those under way on; of a write that fails, any part may be
    /// done.
    DiskFails {
        /// Whose disk.
        node: u32,
        /// Which of the node's.
        disk: u32,
        /// Whether they fail; false ends it.
        fails: bool,
    },
    /// The connections between two nodes break: [`Machine::disconnect`].
    Disconnect {
        /// These two.
        nodes: (u32, u32),
    },
}

/// A plan that is being carried out.
struct Planned<P: Kind> {
    machine: Weak<Machine<P>>,
    faults: Vec<PlannedFault>,
    told: Box<dyn Fn(Disruption)>,
}

impl<P: Kind> Machine<P> {
    /// Has everything of `plan` happen in its time. `told` is called after each, to start the
    /// program of a node that is back, say. From now on disks remember what was not synced.
    pub fn plan(&self, plan: &FaultPlan, told: impl Fn(Disruption) + 'static) {
        let disks = self.nodes.iter().flat_map(|node| &node.disks);
        for (number, disk) in (1..).zip(disks) {
            disk.expect_faults(mix(plan.seed ^ mix(number)));
        }
        for node in &self.nodes {
            let seed = plan.seed ^ mix(!u64::from(node.index));
            node.records.delay_changes(plan.record_change, seed);
        }
        let machine = Weak::clone(&self.own);
        let planned = Planned { machine, faults: plan.faults.clone(), told: Box::new(told) };
        let planned: Rc<dyn TimerHandler> = Rc::new(planned);
        for (number, fault) in (0..).zip(&plan.faults) {
            self.engine.call_at(fault.at, Rc::clone(&planned), number);
        }
    }

    fn suffer(&self, what: Disruption) {
        let disk = |node: u32, disk: u32| &self.nodes[node as usize].disks[disk as usize];
        match what {
            Disruption::Crash { node } if self.is_alive(node) => self.kill(node),
            Disruption::Crash { .. } => {}
            Disruption::Restart { node } => self.restart(node),
            Disruption::DiskIsSlow { node, disk: number, times } => {
                disk(node, number).set_slow(times);
            }
            Disruption::DiskFails { node, disk: number, fails } => {
                disk(node, number).set_failing(fails);
            }
            Disruption::Disconnect { nodes: (one, other) } => self.disconnect(one, other),
        }
    }
}

impl<P: Kind> TimerHandler for Planned<P> {
    fn on_timer(&self, token: u64) {
        if let Some(machine) = self.machine.upgrade() {
            let what = self.faults[token as usize].what;
            machine.suffer(what);
            (self.told)(what);
        }
    }
}
