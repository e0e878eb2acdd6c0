//! A session: one client process that uses the files of an instance.

use crate::error::{ExitCode, LaunchError};
use crate::real::{Cleanup, Instance, ServerEntry, Undo};
use filesystem::collective::{Strategy, Transfer};
use filesystem::{Client, Costs, Fault, Group, SharedMemory};
use policy::{Access, Direction, DiskOrder, ListEntry, Stripe};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use units::{ClientId, Duration, MIB, ServerId};
use wire::{FileRecord, ServerStatus};
use world::{Address, Payloads};
use world_real::{NodeConfig, RealWorld, run};

/// Bytes that are copied in or out at a time.
const WINDOW_BYTES: u64 = 64 * MIB;

/// A client of an instance. Its calls block.
pub struct Session {
    instance: Instance,
}

/// What is known of a server.
#[derive(Clone, Debug)]
pub struct ServerState {
    /// Its entry in the instance.
    pub entry: ServerEntry,
    /// What it says, or why it says nothing.
    pub status: Result<ServerStatus, String>,
}

impl Session {
    /// A session with an instance.
    pub fn new(instance: Instance) -> Self {
        Self { instance }
    }

    /// What every server is and does.
    pub fn status(&self) -> Result<Vec<ServerState>, LaunchError> {
        let file = self.instance.read()?;
        let node = self.instance.client_node(&file.servers)?;
        let states = file.servers.into_iter().map(|entry| {
            let asked = ask_one(&entry, node.clone(), async |client| {
                client.status().await.pop().unwrap_or(Err(Fault::Cancelled))
            });
            ServerState { entry, status: asked.map_err(|fault| fault.to_string()) }
        });
        Ok(states.collect())
    }

    /// Every file, by name.
    pub fn list(&self) -> Result<Vec<FileRecord>, LaunchError> {
        self.with_client("cannot list the files", async |client| client.list().await)
    }

    /// What is known of one file.
    pub fn stat(&self, name: &str) -> Result<FileRecord, LaunchError> {
        let what = format!("cannot look at {name:?}");
        self.with_client(&what, async |client| client.stat(name).await)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<(), LaunchError> {
        let what = format!("cannot remove {name:?}");
        self.with_client(&what, async |client| client.remove(name).await)
    }

    /// Copies a local file in. A copy that fails leaves no file, nor does one that a signal ends
    /// after [`crate::clean_up_on_signals`]; one that is killed (SIGKILL) leaves a file whose end
    /// is zeros.
    pub fn put(
        &self,
        local: &Path,
        name: &str,
        block_bytes: u64,
    ) -> Result<FileRecord, LaunchError> {
        let what = format!("cannot copy {} to {name:?}", local.display());
        let here = |error: std::io::Error| local_error(&what, &error);
        let mut source = File::open(local).map_err(here)?;
        let metadata = source.metadata().map_err(here)?;
        if !metadata.is_file() {
            return Err(local_error(&what, &std::io::Error::other("it is not a regular file")));
        }
        let stripe = self.stripe(block_bytes)?;
        let bytes = metadata.len();
        self.with_group(&what, async |group| {
            let failed = |fault: &Fault| LaunchError::of_fault(&what, fault);
            let created = group.client().create(name, bytes, stripe).await;
            let record = created.map_err(|fault| failed(&fault))?;
            let (instance, named) = (self.instance.clone(), name.to_owned());
            let undo = Undo::on_signals(Cleanup::RemoveCopy { instance, name: named });
            let copied =
                copy(group, &record, Direction::Write, &what, |buffer| source.read_exact(buffer));
            if let Err(error) = copied.await {
                undo.wait_if_begun();
                // The first error is the one to report.
                let _ = group.client().remove(name).await;
                return Err(error);
            }
            Ok(record)
        })
    }

    /// Copies a file out, to `target`; `local` names it in errors.
    pub fn get(
        &self,
        name: &str,
        target: &mut dyn Write,
        local: &str,
    ) -> Result<FileRecord, LaunchError> {
        let what = format!("cannot copy {name:?} to {local}");
        self.with_group(&what, async |group| {
            let opened = group.client().open(name).await;
            let record = opened.map_err(|fault| LaunchError::of_fault(&what, &fault))?;
            copy(group, &record, Direction::Read, &what, |buffer| target.write_all(buffer)).await?;
            target.flush().map_err(|error| local_error(&what, &error))?;
            Ok(record)
        })
    }

    /// How files of this instance are striped: over all its disks.
    pub(crate) fn stripe(&self, block_bytes: u64) -> Result<Stripe, LaunchError> {
        let file = self.instance.read()?;
        let servers = file.servers.len() as u32;
        let stripe = Stripe { block_bytes, servers, disks_per_server: file.disks_per_server };
        stripe.validate().map_err(|error| {
            LaunchError::usage(
                "cannot stripe a file like that",
                error.to_string(),
                "choose a block size such as 256KiB or 1MiB",
            )
        })?;
        Ok(stripe)
    }

    fn with_client<R>(
        &self,
        what: &str,
        act: impl AsyncFnOnce(&Client<RealWorld>) -> Result<R, Fault>,
    ) -> Result<R, LaunchError> {
        let file = self.instance.read()?;
        let node = self.instance.client_node(&file.servers)?;
        let done = run(async {
            let client = connect(&file.servers, node).await?;
            act(&client).await
        });
        done.map_err(|fault| LaunchError::of_fault(what, &fault))
    }

    /// Acts as a group of one.
    fn with_group<R>(
        &self,
        what: &str,
        act: impl AsyncFnOnce(&Group<RealWorld>) -> Result<R, LaunchError>,
    ) -> Result<R, LaunchError> {
        let file = self.instance.read()?;
        let node = self.instance.client_node(&file.servers)?;
        run(async {
            let joined = async {
                let client = connect(&file.servers, node).await?;
                let alone = [Address(String::new())].into();
                Group::join(client, 0, ClientId(0), alone, Duration::ZERO).await
            };
            let group = joined.await.map_err(|fault| LaunchError::of_fault(what, &fault))?;
            act(&group).await
        })
    }
}

/// Whether somebody who knows the instance's key answers where a server should be.
pub(crate) fn server_answers(server: &ServerEntry, node: NodeConfig) -> bool {
    ask_one(server, node, async |_| Ok(())).is_ok()
}

/// Asks one server to finish, write everything back, and end.
pub(crate) fn stop_server(server: &ServerEntry, node: NodeConfig) -> Result<(), Fault> {
    ask_one(server, node, async |client| client.stop_servers().await)
}

/// Acts as a client of one server alone. Such a client knows it as number 0; its faults name it by
/// its own number.
fn ask_one<R>(
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

/// A client of all `servers`.
async fn connect(servers: &[ServerEntry], node: NodeConfig) -> Result<Client<RealWorld>, Fault> {
    let world = RealWorld::open(node)
        .map_err(|error| Fault::TransferFailed { cause: error.to_string() })?;
    connect_from(world, servers).await
}

/// A client of all `servers` that lives in `world`.
pub(crate) async fn connect_from(
    world: RealWorld,
    servers: &[ServerEntry],
) -> Result<Client<RealWorld>, Fault> {
    let addresses: Vec<Address> =
        servers.iter().map(|server| Address(server.address.clone())).collect();
    Client::connect(world, &addresses, Costs::FREE).await
}

/// Moves a whole file window by window; `pass` fills or empties each window's bytes.
async fn copy(
    group: &Group<RealWorld>,
    record: &FileRecord,
    direction: Direction,
    what: &str,
    mut pass: impl FnMut(&mut [u8]) -> std::io::Result<()>,
) -> Result<(), LaunchError> {
    let failed = |fault: Fault| LaunchError::of_fault(what, &fault);
    let window_bytes = WINDOW_BYTES.max(record.stripe.block_bytes).min(record.bytes);
    let memory = group.client().world().memory(window_bytes);
    let shared = group.share(memory).await.map_err(failed)?;
    let mut offset = 0;
    while offset < record.bytes {
        let length = window_bytes.min(record.bytes - offset);
        let mut pass_window = |shared: &SharedMemory<RealWorld>| {
            let passed = shared.memory().with_bytes_mut(|all| pass(&mut all[..length as usize]));
            passed.map_err(|error| local_error(what, &error))
        };
        if direction == Direction::Write {
            pass_window(&shared)?;
        }
        let entry = ListEntry { file_offset: offset, memory_offset: 0, length };
        let transfer = Transfer {
            direction,
            file: record.clone(),
            access: Access::List(vec![vec![entry]]),
            strategy: Strategy::DiskDirected,
            order: DiskOrder::Sorted,
            outstanding_per_disk: 1,
            sync: direction == Direction::Write && offset + length == record.bytes,
        };
        group.transfer(&transfer, &shared).await.map_err(failed)?;
        if direction == Direction::Read {
            pass_window(&shared)?;
        }
        offset += length;
    }
    group.unshare(shared).await;
    Ok(())
}

fn local_error(what: &str, error: &std::io::Error) -> LaunchError {
    let (code, help) = match error.kind() {
        std::io::ErrorKind::NotFound => (ExitCode::Failed, "check the path of the local file"),
        std::io::ErrorKind::StorageFull => (ExitCode::NoSpace, "free space on the local disk"),
        _ => (ExitCode::Failed, "check that the local file may be read or written"),
    };
    LaunchError::new(code, what, error.to_string(), help)
}
