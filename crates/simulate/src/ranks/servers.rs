//! The servers of a simulation.

use super::config;
use crate::scenario::Scenario;
use filesystem::serve;
use std::rc::Rc;
use world::Tasks;
use world::payload::Kind;
use world_simulated::{Machine, TaskHandle};

/// Starts the servers of a scenario on the first nodes of its machine.
pub(crate) fn start<P: Kind>(scenario: &Scenario, machine: &Rc<Machine<P>>) -> Vec<TaskHandle> {
    let server = |id: u32| {
        let (world, config) = (machine.world(id), config::server(scenario, id));
        world.clone().spawn(async move {
            let ended = serve(world, config, || {}, std::future::pending()).await;
            debug_assert!(ended.is_ok(), "a simulated server serves to the end: {ended:?}");
        })
    };
    (0..scenario.servers).map(server).collect()
}
