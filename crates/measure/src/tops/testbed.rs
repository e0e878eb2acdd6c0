//! Servers with a file, and clients that work on it on order.

use super::client::write_heads;
use super::spec::{Answer, ClientSpec, Figure, Order, TopsPlan, TopsPoint, Work};
use crate::orders;
use client::{Connection, ConnectionOptions, Direct, Instance};
use cluster::{Child, Program, ServerOptions, TemporaryInstance};
use interface::{ExitCode, UserError};
use policy::{Buffering, Stripe};
use std::path::Path;
use std::process::Stdio;
use units::MIB;

/// Bytes of the buffered files for each server, and bytes of the servers' caches for them.
pub(super) const BUFFERED_BYTES: u64 = 32 * MIB;
const BUFFERED_CACHE: u64 = 96 * MIB;

/// Bytes of the servers' caches in the experiments with disks: a tenth or less of the servers'
/// data.
const DISK_CACHE: u64 = 4 * MIB;

/// Buffers of a client, in requests: two requests, and memory still held by earlier ones.
const POOL_REQUESTS: u64 = 3;

/// Kind of experiment for which the servers are started.
pub(super) enum Kind {
    Buffered,
    OverTcp,
    OnDisks,
    LargePages,
}

/// Servers with a file, and clients that wait for orders.
pub(super) struct Testbed<'a> {
    plan: &'a TopsPlan,
    servers: u32,
    page_bytes: u64,
    // Dropped in this order: clients end before their servers.
    clients: std::cell::RefCell<Vec<Child>>,
    instance: TemporaryInstance,
}

const FILE: &str = "tops";

impl<'a> Testbed<'a> {
    pub(super) fn start(
        program: &Program,
        plan: &'a TopsPlan,
        servers: u32,
        clients: u32,
        kind: &Kind,
    ) -> Result<Self, UserError> {
        let on_disks = matches!(kind, Kind::OnDisks | Kind::LargePages);
        let (page_bytes, bytes, cache_bytes) = match kind {
            Kind::Buffered | Kind::OverTcp => (plan.page_bytes, BUFFERED_BYTES, BUFFERED_CACHE),
            Kind::OnDisks => (plan.disk_page_bytes, plan.disk_bytes, DISK_CACHE),
            // The cache has room for a request and its read-ahead, and cannot hold the file.
            Kind::LargePages => (MIB, plan.long_bytes(), 2 * plan.pages * MIB),
        };
        let tcp_host = matches!(kind, Kind::OverTcp).then(|| "127.0.0.1".to_owned());
        let direct = if on_disks { Direct::All } else { Direct::None };
        let options = ServerOptions { cache_bytes, direct, tcp_host, ..ServerOptions::default() };
        let directory = plan.directory.as_deref();
        let instance = TemporaryInstance::start(program, servers, &[], directory, &options)?;
        let request_bytes = plan.pages * page_bytes;
        let bytes = (bytes * u64::from(servers)).next_multiple_of(request_bytes);
        fill(instance.instance(), servers, bytes, page_bytes, request_bytes)?;
        let children = (0..clients).map(|rank| {
            let spec = ClientSpec {
                instance: instance.instance().directory().to_owned(),
                rank,
                pool_bytes: POOL_REQUESTS * request_bytes,
            };
            let command = program.command(&["bench-tops-client".to_owned()]);
            let mut child = Child::start(command, Stdio::inherit())?;
            send(&mut child, rank, &spec)?;
            Ok(child)
        });
        let clients = children.collect::<Result<Vec<Child>, UserError>>()?;
        Ok(Self { plan, servers, page_bytes, clients: clients.into(), instance })
    }

    pub(super) fn point(
        &self,
        figure: Figure,
        line: &str,
        work: Work,
        clients: u32,
    ) -> Result<TopsPoint, UserError> {
        let (servers, page_bytes, line) = (self.servers, self.page_bytes, line.to_owned());
        let mib_s = self.run(work, clients)?;
        Ok(TopsPoint { figure, line, servers, clients, page_bytes, mib_s })
    }

    /// Returns the directory of the servers' data.
    pub(super) fn directory(&self) -> &Path {
        self.instance.directory()
    }

    /// Runs `clients` clients at the same time; returns their total rate, in 2^20 bytes a second.
    pub(super) fn run(&self, work: Work, clients: u32) -> Result<f64, UserError> {
        let mut children = self.clients.borrow_mut();
        let (pages, seconds) = (self.plan.pages, self.plan.seconds);
        let order = Order { work, file: FILE.to_owned(), clients, pages, seconds };
        let at_work = || (0..clients).map(|rank| rank as usize);
        for rank in at_work() {
            send(&mut children[rank], rank as u32, &order)?;
        }
        for rank in at_work() {
            if let Answer::Failed(failure) = receive(&mut children[rank], rank as u32)? {
                return Err(failure.into());
            }
        }
        for rank in at_work() {
            send(&mut children[rank], rank as u32, &"begin")?;
        }
        let mut sum = 0.0;
        for rank in at_work() {
            match receive(&mut children[rank], rank as u32)? {
                Answer::Done { bytes, seconds } => sum += bytes as f64 / MIB as f64 / seconds,
                Answer::Failed(failure) => return Err(failure.into()),
                Answer::Ready => {
                    return Err(lost(rank as u32, "it reported twice that it is ready"));
                }
            }
        }
        Ok(sum)
    }
}

/// Makes the file, with the number of each page at its head, and flushes it to storage.
fn fill(
    instance: &Instance,
    servers: u32,
    bytes: u64,
    page_bytes: u64,
    request_bytes: u64,
) -> Result<(), UserError> {
    let library = Connection::open_with(instance, ConnectionOptions::with_pool(4 * request_bytes))?;
    let stripe = Stripe::round_robin(page_bytes, servers, 1);
    let file = library.create_striped(FILE, bytes, stripe, Buffering::default())?;
    let mut request = vec![7; request_bytes as usize];
    for offset in (0..bytes).step_by(request_bytes as usize) {
        write_heads(&mut request, page_bytes, offset / page_bytes);
        file.write_at(&request, offset)?;
    }
    file.flush(true)?;
    file.close()
}

fn send(child: &mut Child, rank: u32, what: &impl serde::Serialize) -> Result<(), UserError> {
    orders::send(child, what).map_err(|cause| lost(rank, &cause))
}

fn receive(child: &mut Child, rank: u32) -> Result<Answer, UserError> {
    orders::receive(child).map_err(|cause| lost(rank, &cause))
}

fn lost(rank: u32, cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("client {rank} of the bench ended before it had finished"),
        cause,
        "see its standard error output above",
    )
}
