//! The servers of a simulation.

use super::config;
use crate::scenario::Scenario;
use filesystem::{OtherServer, serve_among_others};
use policy::Protection;
use std::rc::Rc;
use units::ServerId;
use world::payload::Kind;
use world::{Network, Tasks};
use world_simulated::{Machine, TaskHandle};

/// Starts the servers of a scenario on the first nodes of its machine.
pub(crate) fn start<P: Kind>(scenario: &Scenario, machine: &Rc<Machine<P>>) -> Vec<TaskHandle> {
    let server = |id: u32| {
        let (world, config) = (machine.world(id), config::server(scenario, id));
        // Servers need one another for copies only.
        let others = (0..scenario.servers).filter(|other| {
            let is_needed = scenario.protection != Protection::None;
            is_needed && *other != id
        });
        let other = |id| OtherServer { server: ServerId(id), address: machine.world(id).address() };
        let others: Vec<OtherServer> = others.map(other).collect();
        world.clone().spawn(async move {
            let ended = serve_among_others(world, config, || others, std::future::pending()).await;
            debug_assert!(ended.is_ok(), "a simulated server serves to the end: {ended:?}");
        })
    };
    (0..scenario.servers).map(server).collect()
}
