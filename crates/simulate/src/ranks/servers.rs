//! The servers of a simulation.

use super::config;
use crate::scenario::Scenario;
use filesystem::{OtherServer, ServerConfig, serve_among_others};
use policy::Protection;
use std::rc::Rc;
use units::ServerId;
use world::payload::Kind;
use world::{Network, Tasks};
use world_simulated::{Machine, TaskHandle};

/// Starts the servers of a scenario on the first nodes of its machine.
pub(crate) fn start<P: Kind>(scenario: &Scenario, machine: &Rc<Machine<P>>) -> Vec<TaskHandle> {
    let server = |id: u32| start_one(scenario, machine, config::server(scenario, id));
    (0..scenario.servers).map(server).collect()
}

/// Starts a server again whose node is down, with empty disks in the place of lost ones. With
/// `refills`, they are filled; else they stay empty, and nothing may be changed.
pub(super) fn start_without_data<P: Kind>(
    scenario: &Scenario,
    machine: &Rc<Machine<P>>,
    id: u32,
    refills: bool,
) -> TaskHandle {
    machine.replace_disks(id, &[]);
    machine.restart(id);
    let replacements = vec![1; scenario.disks_per_server as usize];
    let config = config::server(scenario, id);
    start_one(scenario, machine, ServerConfig { replacements, read_only: !refills, ..config })
}

fn start_one<P: Kind>(
    scenario: &Scenario,
    machine: &Rc<Machine<P>>,
    config: ServerConfig,
) -> TaskHandle {
    let world = machine.world(config.id.0);
    // Servers need one another for copies only.
    let others = (0..scenario.servers).filter(|other| {
        let is_needed = scenario.protection != Protection::None;
        is_needed && *other != config.id.0
    });
    let other = |id| OtherServer { server: ServerId(id), address: machine.world(id).address() };
    let others: Vec<OtherServer> = others.map(other).collect();
    world.clone().spawn(async move {
        let ended = serve_among_others(world, config, || others, std::future::pending()).await;
        debug_assert!(ended.is_ok(), "a simulated server serves to the end: {ended:?}");
    })
}
