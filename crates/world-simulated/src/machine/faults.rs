//! The plan of faults of a machine: data that is set before the simulation starts.
//!
//! ```text
//! plan:   1 ms  DiskIsSlow { node: 0, disk: 0, times: 20 }
//!         3 ms  Crash { node: 0 }      tasks, memory and connections are lost; the seed decides
//!                                      about writes that no sync covers
//!         9 ms  Restart { node: 0 }    the planner is notified, and starts the program again
//! ```
//!
//! A machine without a plan behaves as if this file did not exist.

use super::assembly::Machine;
use crate::engine::TimerHandler;
use std::ops::Range;
use std::rc::{Rc, Weak};
use units::{Duration, FileId, Instant, SplitMix64};
use world::payload::Kind;

/// All faults of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan {
    /// Decides about interrupted writes.
    pub seed: u64,
    /// Duration of a change of records. A crash in between leaves the change made or not, as a
    /// whole.
    pub record_change: Duration,
    /// The faults; those of one instant happen in their order here.
    pub faults: Vec<PlannedFault>,
}

/// One fault, or its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedFault {
    /// Instant at which it happens.
    pub at: Instant,
    /// The disruption.
    pub what: Disruption,
}

/// A disruption of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disruption {
    /// A node loses its power: [`Machine::kill`]. No effect on a node that is down.
    Crash {
        /// Number of the node.
        node: u32,
    },
    /// A node restarts: [`Machine::restart`].
    Restart {
        /// Number of the node.
        node: u32,
    },
    /// Requests of a disk take longer, including those under way.
    DiskIsSlow {
        /// Node of the disk.
        node: u32,
        /// Number of the disk on its node.
        disk: u32,
        /// Factor by which requests take longer; 1 ends the disruption.
        times: u32,
    },
    /// Requests of a disk fail, including those under way. A failed write may have written any
    /// part.
    DiskFails {
        /// Node of the disk.
        node: u32,
        /// Number of the disk on its node.
        disk: u32,
        /// False ends the disruption.
        fails: bool,
    },
    /// The connections between two nodes break: [`Machine::disconnect`].
    Disconnect {
        /// The two nodes.
        nodes: (u32, u32),
    },
    /// A node stops, and no peer learns of it: [`Machine::stop`]. No effect on a node that is down.
    /// A crash ends it.
    Stop {
        /// Number of the node.
        node: u32,
    },
    /// Nothing arrives over the connections between two nodes any more: [`Machine::cut`].
    Cut {
        /// The two nodes.
        nodes: (u32, u32),
    },
}

/// A plan that is being carried out.
struct Planned<P: Kind> {
    machine: Weak<Machine<P>>,
    faults: Vec<PlannedFault>,
    notify: Box<dyn Fn(Disruption)>,
}

impl<P: Kind> Machine<P> {
    /// Carries out `plan`. `notify` is called after each disruption, for instance to start the
    /// program of a restarted node. From now on disks remember writes that no sync covers.
    pub fn plan(&self, plan: &FaultPlan, notify: impl Fn(Disruption) + 'static) {
        let disks = self.nodes.iter().flat_map(|node| &node.disks);
        for (number, disk) in (1..).zip(disks) {
            disk.expect_faults(SplitMix64::mix(plan.seed ^ SplitMix64::mix(number)));
        }
        for node in &self.nodes {
            let seed = plan.seed ^ SplitMix64::mix(!u64::from(node.index));
            node.records.delay_changes(plan.record_change, seed);
        }
        let machine = Weak::clone(&self.own);
        let planned = Planned { machine, faults: plan.faults.clone(), notify: Box::new(notify) };
        let planned: Rc<dyn TimerHandler> = Rc::new(planned);
        for (number, fault) in (0..).zip(&plan.faults) {
            self.engine.call_at(fault.at, Rc::clone(&planned), number);
        }
    }

    /// Damages bytes of an object of a disk until they are written again. Only where a plan is
    /// carried out.
    pub fn damage(&self, (node, disk): (u32, u32), object: FileId, range: Range<u64>) {
        self.nodes[node as usize].disks[disk as usize].damage(object, range);
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
            Disruption::Stop { node } if self.is_alive(node) => self.stop(node),
            Disruption::Stop { .. } => {}
            Disruption::Cut { nodes: (one, other) } => self.cut(one, other),
        }
    }
}

impl<P: Kind> TimerHandler for Planned<P> {
    fn on_timer(&self, token: u64) {
        if let Some(machine) = self.machine.upgrade() {
            let what = self.faults[token as usize].what;
            machine.suffer(what);
            (self.notify)(what);
        }
    }
}
