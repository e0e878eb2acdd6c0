//! A server on another host, configured by messages on its standard input.
//!
//! Invariants: nothing of the instance's secrets is on a command line or in the environment; when
//! its input ends, its supervisor is gone, so it writes everything back and ends.

use super::address::own_address;
use super::control::ServerOrder;
use crate::cores::pin_thread;
use crate::data::MEMORY_PREFIX;
use crate::private::{make_directory, refuse_links_in, refuse_root};
use crate::server::ServerPlan;
use crate::started::{Bond, receive_order, serve_started};
use interface::{ExitCode, UserError};
use policy::Extensions;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};
use world::Address;

/// Variables that name scratch space of a job on a host. The first that is set counts.
const SCRATCH: [&str; 2] = ["SLURM_TMPDIR", "TMPDIR"];

/// Serves according to the messages on standard input. Ends when a client or a signal asks for it,
/// or at the end of standard input. It offers these extensions.
///
/// # Errors
/// Fails when it cannot start, which it also reports to the supervisor, or cannot write everything
/// back.
pub fn serve_remote(extensions: Extensions) -> Result<(), UserError> {
    let order: ServerOrder = receive_order()?;
    let bond = Bond { is_committed: Box::new(|| None), ends_with_input: true };
    serve_started(begin(&order), bond, interrupted(), extensions)?;
    discard(&order);
    Ok(())
}

/// Removes the data directory of this server, if its place is the default and the instance says
/// that nobody needs it, and with the last one of this host their parent.
fn discard(order: &ServerOrder) {
    if !order.data.is_empty() || !order.discard_mark.exists() {
        return;
    }
    let parent = scratch().join(parent_name(&order.instance_name));
    // What is left takes some room, and is in nobody's way.
    let _ = std::fs::remove_dir_all(parent.join(server_name(order)));
    let _ = std::fs::remove_dir(parent);
}

/// Builds the plan of this server, pins this thread, which starts all others, and makes the
/// server's directories.
fn begin(order: &ServerOrder) -> Result<ServerPlan, UserError> {
    let version = env!("CARGO_PKG_VERSION");
    if order.version != version {
        return Err(UserError::new(
            ExitCode::NoServer,
            "the hosts do not have the same version of unisono",
            format!(
                "the version here is {version}, and {} on the host of the start command",
                order.version
            ),
            "install one version everywhere, or name the program with --remote-program",
        ));
    }
    if !order.allow_root {
        refuse_root()?;
    }
    order.cores.as_ref().map_or(Ok(()), pin_thread)?;
    let address = own_address(&order.host, &order.others).map_err(|cause| {
        UserError::new(
            ExitCode::NoServer,
            "cannot listen on an address that other hosts can reach",
            cause,
            "name each host by a host name or address that belongs to it",
        )
    })?;
    let parents = match &order.data[..] {
        [] => vec![usual_parent(&order.instance_name)?],
        named => named.to_vec(),
    };
    let name = server_name(order);
    let data: Vec<PathBuf> = parents.iter().map(|parent| parent.join(&name)).collect();
    // What is missing stays so where nothing may be changed.
    for directory in data.iter().filter(|data| !order.lost_data.is_degraded() || data.exists()) {
        make_private(directory)?;
        refuse_links_in(directory)?;
    }
    Ok(ServerPlan {
        id: order.id,
        servers: order.servers,
        listen: Address(format!("tcp:{}", SocketAddr::new(address, 0))),
        data,
        direct: order.direct.clone(),
        cache_bytes: order.cache_bytes,
        dirty_percent: order.dirty_percent,
        disk_timeout_s: order.disk_timeout_s,
        key: order.key,
        lost_data: order.lost_data,
        memory_bytes: order.memory_bytes,
        wire: order.wire,
        outlasts_sigterm: order.outlasts_sigterm,
        generation: 0,
        lost: Vec::new(),
    })
}

/// Name of a data directory of this server.
fn server_name(order: &ServerOrder) -> String {
    let prefix = if order.memory_bytes.is_some() { MEMORY_PREFIX } else { "server-" };
    format!("{prefix}{}", order.id)
}

/// Default parent of the data directories of an instance.
fn usual_parent(instance_name: &str) -> Result<PathBuf, UserError> {
    let parent = scratch().join(parent_name(instance_name));
    make_private(&parent)?;
    Ok(parent)
}

/// Scratch space of the job on this host, or else /tmp.
fn scratch() -> PathBuf {
    let named = SCRATCH.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let scratch = named.into_iter().find(|path| path.is_absolute() && path.is_dir());
    scratch.unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// Name of the default parent, unique to the instance.
fn parent_name(instance_name: &str) -> String {
    format!("unisono-{}-{instance_name}", rustix::process::geteuid().as_raw())
}

fn make_private(directory: &Path) -> Result<(), UserError> {
    make_directory(directory).map_err(|error| UserError {
        error: format!("cannot use the data directory {}", directory.display()),
        help: "with --data, name a directory on that host that only you may enter, or that does \
               not exist"
            .to_owned(),
        ..error
    })
}

/// Returns when a signal beside SIGTERM asks this process to end.
async fn interrupted() {
    tokio::select! {
        () = caught(SignalKind::hangup()) => {}
        () = caught(SignalKind::interrupt()) => {}
    }
}

async fn caught(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    }
}
