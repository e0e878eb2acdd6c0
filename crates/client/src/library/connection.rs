//! A program's connection to an instance.

use super::blocking_slots::BlockingSlots;
use super::buffer::Buffer;
use super::io_thread::{self, IoThread};
use super::on_thread::OnThread;
use super::operation::Operation;
use super::options::ConnectionOptions;
use super::small_calls::FilesOfSmallCalls;
use crate::instance::{Instance, ServerEntry};
use crate::session::connect_from;
use filesystem::{BufferPool, Client, Fault, ServerChange};
use futures_util::future::{Either, select};
use interface::{ErrorKind, ExitCode, UserError};
use std::convert::Infallible;
use std::future::Future;
use std::net::TcpListener;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use units::{Duration, ServerId};
use world::{Address, Clock, Scope};
use world_real::RealWorld;

/// Time that a connection waits at its end for servers to forget the memory of its pool.
const CLOSE_TIMEOUT: Duration = Duration::from_ms(1_000);

/// Pause before a connection is tried again to a server that is waited for.
const CONNECT_PAUSE: Duration = Duration::from_ms(100);

/// A connection to all servers of an instance. Clones are handles to the same connection; files,
/// buffers, pages and groups hold one. The connection closes with the last handle, and cancels
/// operations that were begun and not waited for.
#[derive(Clone)]
pub struct Connection(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) instance: Instance,
    pub(super) options: ConnectionOptions,
    pub(super) thread: Arc<IoThread>,
    local: Option<Arc<OnThread<Local>>>,
    pool_bytes: u64,
    identity: u64,
    pub(super) servers: u32,
    /// True if lost servers are waited for.
    waits: bool,
    pub(super) blocking: Arc<BlockingSlots>,
    pub(super) small_calls: FilesOfSmallCalls,
}

/// State of a connection on the I/O thread.
struct Local {
    operations: Scope<RealWorld, Infallible>,
    /// Tasks that wait for operations: requests for buffers.
    others: Scope<RealWorld, Infallible>,
    shared: Rc<Shared>,
}

/// State that operations use.
pub(super) struct Shared {
    pub(super) client: Client<RealWorld>,
    pub(super) pool: BufferPool<RealWorld>,
}

impl Drop for Inner {
    /// Closes the connection. Sends the catalogue the sizes of files that were not closed.
    fn drop(&mut self) {
        let Some(local) = self.local.take() else { return };
        if self.thread.is_here() {
            return;
        }
        let (done, closed) = oneshot::channel::<()>();
        let own = Arc::clone(&local);
        let job = Box::new(move || {
            let shared = Rc::clone(&own.get().shared);
            own.get().others.spawn(async move {
                shared.client.settle_all().await;
                // If this fails, the next client that opens the files finds the sizes.
                let _ = shared.client.record_sizes().await;
                // Memory that servers may still write is never freed, so they are told first. A
                // server that has stopped does not answer; then the memory stays.
                let told = pin!(shared.pool.clone().close());
                let limit = pin!(shared.client.world().sleep(CLOSE_TIMEOUT));
                select(told, limit).await;
                drop(shared);
                drop(done);
                Ok(())
            });
        });
        match self.thread.post(job) {
            Ok(()) => drop(pollster::block_on(closed)),
            Err((job, _)) => std::mem::forget(job),
        }
    }
}

impl Connection {
    /// Connects to all servers of an instance.
    ///
    /// # Errors
    /// [`ErrorKind::NoInstance`] when there is none, [`ErrorKind::ServerLeft`] when a server cannot
    /// be reached.
    pub fn open(instance: &Instance) -> Result<Self, UserError> {
        Self::open_with(instance, ConnectionOptions::from_environment()?)
    }

    /// Connects with other options than the usual ones.
    ///
    /// # Errors
    /// As for [`Connection::open`].
    pub fn open_with(instance: &Instance, options: ConnectionOptions) -> Result<Self, UserError> {
        interface::begin_log()?;
        check_pool(options.pool_bytes)?;
        let file = instance.read()?;
        let node = instance.client_node(&file)?;
        let identity = identity_of(&file.servers);
        let servers = file.servers.len() as u32;
        let addresses = file.servers.iter().map(|server| Address(server.address.clone()));
        let blocking = Arc::new(BlockingSlots::new(addresses));
        if let Some(host) = &options.peer_host {
            check_host(host)?;
        }
        let thread = IoThread::current()?;
        let what = format!("cannot use the instance {}", instance.directory().display());
        let (sender, connected) = oneshot::channel();
        let (own, pool_bytes, timeout) =
            (Arc::clone(&thread), options.pool_bytes, options.timeout());
        let reconnect = options.reconnect(&file);
        let (waits, changes) = (reconnect > Duration::ZERO, Arc::clone(&blocking));
        let place = instance.directory().join("instance.json");
        let observe = move |server, change| {
            changes.server_changed(server, change);
            // Who stops the instance wants nobody to wait for it.
            change != ServerChange::Absent || place.exists()
        };
        let job = Box::new(move || {
            // Tasks need a scope, which needs the world.
            world_real::detach(async move {
                let awaited = (reconnect, observe);
                let local = connect(node, &file.servers, pool_bytes, timeout, awaited).await;
                let local = local.map(|local| Arc::new(OnThread::new(&own, local)));
                // The caller waits for this result.
                let _ = sender.send(local);
            });
        });
        thread.post(job).map_err(|(_, error)| error)?;
        let local = pollster::block_on(connected).map_err(|_| io_thread::failed())?;
        let local = Some(local.map_err(|fault| UserError::of_fault(&what, &fault))?);
        let instance = instance.clone();
        let small_calls = FilesOfSmallCalls::default();
        let inner = Inner {
            instance,
            options,
            thread,
            local,
            pool_bytes,
            identity,
            servers,
            waits,
            blocking,
            small_calls,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// The instance.
    pub fn instance(&self) -> &Instance {
        &self.0.instance
    }

    /// Number of the instance: the same in all processes that are connected to it, also by copies
    /// of its directory, and another one for each other instance.
    pub fn identity(&self) -> u64 {
        self.0.identity
    }

    /// Options with which the connection was made.
    pub fn options(&self) -> &ConnectionOptions {
        &self.0.options
    }

    /// Size of its pool in bytes.
    pub fn pool_bytes(&self) -> u64 {
        self.0.pool_bytes
    }

    /// True if lost servers are waited for.
    pub(super) fn waits(&self) -> bool {
        self.0.waits
    }

    /// A buffer of `bytes` bytes, with unspecified contents. Waits for operations under way when
    /// their end may make room.
    ///
    /// # Errors
    /// Fails when the pool has no room for it and nothing is under way that could make some.
    pub fn buffer(&self, bytes: u64) -> Result<Buffer, UserError> {
        let (sender, taken) = oneshot::channel();
        let (thread, local) = (Arc::clone(&self.0.thread), self.local());
        let weak = Arc::downgrade(&local);
        let job = Box::new(move || {
            let pool = local.get().shared.pool.clone();
            local.get().others.spawn(async move {
                let taken = match pool.take(bytes) {
                    Some(buffer) => Some(buffer),
                    None => {
                        let local = weak.upgrade();
                        let ended = async {
                            if let Some(local) = &local {
                                let _ = local.get().operations.finished().await;
                            }
                        };
                        match select(pin!(pool.wait_for(bytes)), pin!(ended)).await {
                            Either::Left((buffer, _)) => Some(buffer),
                            Either::Right(_) => pool.take(bytes),
                        }
                    }
                };
                let buffer = taken.map(|buffer| Buffer::new(OnThread::new(&thread, buffer)));
                let _ = sender.send(buffer);
                Ok(())
            });
        });
        self.0.thread.post(job).map_err(|(_, error)| error)?;
        let none = || {
            UserError::new(
                ExitCode::Failed,
                format!("cannot take a buffer of {bytes} bytes"),
                format!(
                    "the buffer pool of the connection has {} bytes, and too few of them are \
                         free",
                    self.0.pool_bytes
                ),
                "drop buffers that are no longer needed, or connect with a larger pool",
            )
        };
        pollster::block_on(taken).map_err(|_| io_thread::failed())?.ok_or_else(none)
    }

    /// Begins `work` on the I/O thread; a fault is one of doing `what`. With `uses_memory`, memory
    /// of the caller is in use until the end.
    pub(super) fn begin<T, F>(
        &self,
        what: impl FnOnce() -> String + Send + 'static,
        uses_memory: bool,
        work: impl FnOnce(Rc<Shared>) -> F + Send + 'static,
    ) -> Operation<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + 'static,
    {
        let (sender, answer) = oneshot::channel();
        let (local, blocking) = (self.local(), Arc::clone(&self.0.blocking));
        let waits = self.0.waits;
        let job = Box::new(move || {
            let work = work(Rc::clone(&local.get().shared));
            local.get().operations.spawn(async move {
                // All that the work holds, memory of the caller too, is dropped before the answer.
                let outcome = work.await;
                if let Err(Fault::ServerLeft { server, .. } | Fault::ServerStalled { server, .. }) =
                    &outcome
                    && !waits
                {
                    blocking.server_left(*server);
                }
                let _ = sender.send(outcome.map_err(|fault| UserError::of_fault(&what(), &fault)));
                Ok(())
            });
        });
        match self.0.thread.post(job) {
            Ok(()) => Operation::new(answer, uses_memory),
            // The job is dropped here before any of it ran. The values that it holds belong to the
            // I/O thread of the parent process, if to any.
            Err((job, error)) => {
                std::mem::forget(job);
                Operation::ended(Err(error))
            }
        }
    }

    /// Does `work` on the I/O thread and waits for it.
    pub(super) fn run<T, F>(
        &self,
        what: impl FnOnce() -> String + Send + 'static,
        work: impl FnOnce(Rc<Shared>) -> F + Send + 'static,
    ) -> Result<T, UserError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + 'static,
    {
        self.begin(what, false, work).wait()
    }

    fn local(&self) -> Arc<OnThread<Local>> {
        let local = self.0.local.as_ref();
        Arc::clone(local.expect("a connection is open until it is dropped"))
    }
}

/// A hash (64-bit FNV-1a) of the addresses of servers, of which no two instances share one.
fn identity_of(servers: &[ServerEntry]) -> u64 {
    let bytes = servers.iter().flat_map(|server| server.address.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Refuses a pool that the system has no room for: the I/O thread could only end the process.
fn check_pool(bytes: u64) -> Result<(), UserError> {
    let mut probe = Vec::<u8>::new();
    let reserved = usize::try_from(bytes).ok().map(|bytes| probe.try_reserve_exact(bytes));
    // Otherwise the compiler may leave out an allocation that is not used.
    std::hint::black_box(&mut probe);
    match reserved {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) | None => Err(UserError::usage(
            "cannot connect to an instance",
            format!("there is not enough memory for a buffer pool of {bytes} bytes"),
            "connect with a smaller pool; the default is 64 MiB",
        )),
    }
}

async fn connect(
    node: world_real::NodeConfig,
    servers: &[ServerEntry],
    pool_bytes: u64,
    timeout: Duration,
    (reconnect, observe): (Duration, impl Fn(ServerId, ServerChange) -> bool + 'static),
) -> Result<Local, Fault> {
    let mut waited = Duration::ZERO;
    let (world, client) = loop {
        let world = RealWorld::open(node.clone())
            .map_err(|error| Fault::TransferFailed { cause: error.to_string() })?;
        match connect_from(world.clone(), servers, (timeout, timeout)).await {
            Ok(client) => break (world, client),
            // It is waited for as one that is lost later.
            Err(Fault::ServerLeft { server, .. })
                if waited < reconnect && observe(server, ServerChange::Absent) =>
            {
                world.sleep(CONNECT_PAUSE).await;
                waited += CONNECT_PAUSE;
            }
            Err(fault) => return Err(fault),
        }
    };
    client.await_lost_servers(reconnect, observe);
    let pool = BufferPool::new(&client, pool_bytes).await?;
    let (operations, others) = (Scope::new(world.clone()), Scope::new(world));
    Ok(Local { operations, others, shared: Rc::new(Shared { client, pool }) })
}

/// Error of an offset beyond the greatest file size.
pub(super) fn beyond_all_files(what: String) -> UserError {
    UserError::of_kind(
        ErrorKind::Usage,
        what,
        format!("a file has at most {} bytes", policy::BYTES_MAX),
        "use a smaller offset",
    )
}

/// Refuses a host on which members of a group cannot listen, before they have to.
fn check_host(host: &str) -> Result<(), UserError> {
    let refused = |cause: String| {
        UserError::usage(
            format!("cannot listen on {host} for the other members of a group"),
            cause,
            "name an address of this machine that the other members can reach",
        )
    };
    let listening = TcpListener::bind((host, 0)).map_err(|error| refused(error.to_string()))?;
    let address = listening.local_addr().map_err(|error| refused(error.to_string()))?;
    if address.ip().is_unspecified() {
        return Err(refused(format!("{host} stands for all addresses of this machine")));
    }
    Ok(())
}
