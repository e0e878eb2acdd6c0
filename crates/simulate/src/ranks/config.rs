//! Configuration of the simulated machine, and of each server on it, from a scenario.

use crate::memory;
use crate::scenario::Scenario;
use filesystem::ServerConfig;
use filesystem::collective::Strategy;
use interface::UserError;
use policy::Direction;
use units::ServerId;
use world_simulated::{DiskConfig, HostConfig, MachineConfig, NodeConfig};

impl Scenario {
    /// Returns the configuration of its machine: the servers first, then the clients. A program can
    /// so run clients of its own on the machine, for instance under a plan of faults.
    ///
    /// # Errors
    /// Fails when the scenario makes no sense.
    pub fn machine_config(&self, seed: u64) -> Result<MachineConfig, UserError> {
        self.check()?;
        memory::check(self)?;
        config(self, seed)
    }

    /// Returns the configuration of server number `id` on such a machine.
    pub fn server_config(&self, id: u32) -> ServerConfig {
        server(self, id)
    }
}

/// Returns the machine of a scenario: its servers first, then its clients.
///
/// # Errors
/// Fails when the program does not have the disk or the network, or the file that describes the
/// disk cannot be read.
pub(crate) fn config(scenario: &Scenario, seed: u64) -> Result<MachineConfig, UserError> {
    let machine = &scenario.machine;
    let server = NodeConfig {
        disks: scenario.disks_per_server,
        speed: 1,
        reference_speed: 1,
        variation_percent: machine.variation_percent,
        traced: scenario.availability,
    };
    let client = NodeConfig { disks: 0, traced: false, ..server };
    let servers = std::iter::repeat_n(server, scenario.servers as usize);
    let clients = std::iter::repeat_n(client, scenario.clients as usize);
    Ok(MachineConfig {
        nodes: servers.chain(clients).collect(),
        hosts: match machine.shared_cores {
            0 => Vec::new(),
            cores => {
                let nodes = 0..scenario.servers.saturating_add(scenario.clients);
                vec![HostConfig { cores, nodes }]
            }
        },
        messages: machine.messages,
        network: machine.network.spec(&scenario.models)?,
        disk: DiskConfig {
            kind: machine.disk.kind(&scenario.models)?,
            layout: scenario.layout,
            slot_bytes: scenario.block_bytes,
            start: machine.start,
            queue: machine.queue,
            prefetch_commands: match scenario.strategy {
                Strategy::DiskDirected | Strategy::Noncollective => {
                    machine.directed_prefetch_commands
                }
                Strategy::Caching
                | Strategy::TwoPhase
                | Strategy::GlobalBarrier
                | Strategy::NodeGrouping => 0,
            },
        },
        seed,
    })
}

/// Returns the configuration of server number `id` of a scenario.
pub(crate) fn server(scenario: &Scenario, id: u32) -> ServerConfig {
    let machine = &scenario.machine;
    ServerConfig {
        id: ServerId(id),
        servers: scenario.servers,
        cache_bytes: scenario.server_cache_bytes(),
        dirty_percent: machine.cache_dirty_percent,
        buffers_per_disk: machine.buffers_per_disk,
        // The papers' machines have as many buffers as their transfers take.
        buffer_bytes: u64::MAX,
        client_caches: scenario.has_client_caches(),
        caches_ends: machine.caches_ends(),
        copies_catalogue: false,
        replacements: Vec::new(),
        refill_rate: None,
        read_only: false,
        costs: machine.costs,
        extensions: scenario.policies.clone().into(),
    }
}

/// True if the transfer ends only when its written data is on the medium.
pub(crate) fn waits_for_medium(scenario: &Scenario) -> bool {
    let writes = scenario.pattern.direction == Direction::Write;
    writes && (scenario.sync || scenario.machine.waits_for_medium.contains(&scenario.strategy))
}
