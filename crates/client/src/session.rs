//! A session: one client process that uses the files of an instance.

use crate::instance::{Instance, ServerEntry};
use crate::library::ConnectionOptions;
use crate::parallel::for_each_at_once;
use filesystem::{Client, CopiedCatalogue, Costs, Fault};
use interface::UserError;
use policy::Stripe;
use std::collections::BTreeMap;
use units::{Duration, ServerId};
use wire::ServerStatus;
use world::Address;
use world_real::{NodeConfig, RealWorld, run};

/// A client of an instance. Its calls block.
pub struct Session {
    instance: Instance,
}

/// Status of one server.
#[derive(Clone, Debug)]
pub struct ServerState {
    /// Entry of the server in the instance.
    pub entry: ServerEntry,
    /// Answer of the server, or the reason for its absence.
    pub status: Result<ServerStatus, String>,
    /// Number of files that lie on the server. `None` if server 0, which knows all files, does not
    /// answer.
    pub files: Option<u64>,
}

impl Session {
    /// A session with an instance.
    pub fn new(instance: Instance) -> Self {
        Self { instance }
    }

    /// Asks every server for its status.
    pub fn status(&self) -> Result<Vec<ServerState>, UserError> {
        let file = self.instance.read()?;
        let node = self.instance.client_node(&file)?;
        let asked = for_each_at_once(&file.servers, |entry| {
            ask_one(entry, node.clone(), async |client| {
                client.status().await.pop().unwrap_or(Err(Fault::Cancelled))
            })
        });
        let catalogue = asked.first().and_then(|first| first.as_ref().ok());
        let files = catalogue.map(|status| status.files.clone());
        let files = files.map(|files| files.into_iter().collect::<BTreeMap<_, _>>());
        let state = |(entry, asked): (ServerEntry, Result<ServerStatus, Fault>)| ServerState {
            files: files.as_ref().map(|all| all.get(&ServerId(entry.id)).copied().unwrap_or(0)),
            status: asked.map_err(|fault| fault.to_string()),
            entry,
        };
        Ok(file.servers.into_iter().zip(asked).map(state).collect())
    }

    /// Default stripe of files of this instance, over all its disks.
    pub fn stripe(&self, block_bytes: u64) -> Result<Stripe, UserError> {
        let file = self.instance.read()?;
        let servers = file.servers.len() as u32;
        let stripe = Stripe::round_robin(block_bytes, servers, file.disks_per_server);
        stripe.validate().map_err(|error| {
            UserError::usage(
                "cannot stripe the file in blocks of this size",
                error.to_string(),
                "choose a block size such as 256KiB or 1MiB",
            )
        })?;
        Ok(stripe)
    }

    /// Number of servers of the instance.
    pub fn servers(&self) -> Result<u32, UserError> {
        Ok(self.instance.read()?.servers.len() as u32)
    }

    /// The instance.
    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Runs `act` as a client of all servers. `what` describes the operation in errors.
    pub(crate) fn with_client<R>(
        &self,
        what: &str,
        act: impl AsyncFnOnce(&Client<RealWorld>) -> Result<R, Fault>,
    ) -> Result<R, UserError> {
        let failed = |fault: Fault| UserError::of_fault(what, &fault);
        self.with_connected(what, async |client| act(client).await.map_err(failed))
    }

    /// Runs `act` as a client of the servers that answer, for reading only. `what` describes the
    /// operation in errors.
    pub(crate) fn with_onlooker<R>(
        &self,
        what: &str,
        act: impl AsyncFnOnce(&Client<RealWorld>) -> Result<R, Fault>,
    ) -> Result<R, UserError> {
        let file = self.instance.read()?;
        let node = self.instance.client_node(&file)?;
        let looked = run(async {
            let (world, servers) = (open(node)?, addresses(&file.servers));
            let client = Client::connect_to_some(world, &servers, Costs::FREE).await;
            client.watch(timeout());
            act(&client).await
        });
        looked.map_err(|fault| UserError::of_fault(what, &fault))
    }

    /// Runs `act` as a client of all servers.
    pub(crate) fn with_connected<R>(
        &self,
        what: &str,
        act: impl AsyncFnOnce(&Client<RealWorld>) -> Result<R, UserError>,
    ) -> Result<R, UserError> {
        let file = self.instance.read()?;
        let node = self.instance.client_node(&file)?;
        run(async {
            let connected = connect(&file.servers, node).await;
            act(&connected.map_err(|fault| UserError::of_fault(what, &fault))?).await
        })
    }
}

/// True if a server with the instance's key answers at the address of `server`.
pub fn server_answers(server: &ServerEntry, node: NodeConfig) -> bool {
    ask_one(server, node, async |_| Ok(())).is_ok()
}

/// Asks one server to finish its transfers, write back its dirty blocks, and end.
pub fn stop_server(server: &ServerEntry, node: NodeConfig) -> Result<(), Fault> {
    ask_one(server, node, async |client| client.stop_servers().await)
}

/// Returns the copy of the catalogue at one server.
pub fn catalogue_copy(server: &ServerEntry, node: NodeConfig) -> Result<CopiedCatalogue, Fault> {
    ask_one(server, node, async |client| client.catalogue_copy(ServerId(0)).await)
}

/// Runs `act` as a client of one server alone. That client numbers the server 0; faults are renamed
/// to the server's own number.
pub(crate) fn ask_one<R>(
    server: &ServerEntry,
    node: NodeConfig,
    act: impl AsyncFnOnce(&Client<RealWorld>) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let asked = run(async { act(&connect(std::slice::from_ref(server), node).await?).await });
    asked.map_err(|fault| match fault {
        Fault::ServerLeft { cause, .. } => Fault::ServerLeft { server: ServerId(server.id), cause },
        other => other,
    })
}

/// Connects a client to all `servers`.
async fn connect(servers: &[ServerEntry], node: NodeConfig) -> Result<Client<RealWorld>, Fault> {
    connect_from(open(node)?, servers, (timeout(), timeout())).await
}

/// Time-out of calls that have no options of their own. A wrong setting is reported where programs
/// connect.
fn timeout() -> Duration {
    ConnectionOptions::from_environment().unwrap_or_default().timeout()
}

fn open(node: NodeConfig) -> Result<RealWorld, Fault> {
    RealWorld::open(node).map_err(|error| Fault::TransferFailed { cause: error.to_string() })
}

/// Connects a client in `world` to all `servers`, each within the first of two times, and watches
/// its peers with the other.
pub async fn connect_from(
    world: RealWorld,
    servers: &[ServerEntry],
    limits: (Duration, Duration),
) -> Result<Client<RealWorld>, Fault> {
    Client::connect_watched(world, &addresses(servers), Costs::FREE, limits).await
}

fn addresses(servers: &[ServerEntry]) -> Vec<Address> {
    servers.iter().map(|server| Address(server.address.clone())).collect()
}
