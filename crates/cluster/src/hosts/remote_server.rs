//! A server on another host, configured by messages on its standard input.
//!
//! Invariants: nothing of the instance's secrets is on a command line or in the environment; when
//! its input ends, its supervisor is gone, so it writes everything back and ends.

use super::address::own_address;
use super::control::{Found, MARK, Permission, ServerMessage, ServerOrder, line, receive};
use crate::data::{OwnDirectories, has_catalogue, has_objects};
use crate::private;
use crate::private::refuse_root;
use crate::process::on_stdin_closed;
use crate::server::{ServerPlan, serve_plan};
use interface::{ExitCode, UserError};
use policy::ReplacementPolicies;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use world::Address;

/// Variables that name scratch space of a job on a host. The first that is set counts.
const SCRATCH: [&str; 2] = ["SLURM_TMPDIR", "TMPDIR"];

/// Serves according to the messages on standard input. Ends when a client or a signal asks for it,
/// or at the end of standard input. The cache offers these replacement policies.
///
/// # Errors
/// Fails when it cannot start, which it also reports to the supervisor, or cannot write everything
/// back.
pub fn serve_remote(policies: ReplacementPolicies) -> Result<(), UserError> {
    let order: ServerOrder = receive_order()?;
    let begun = begin(&order).and_then(|(plan, own)| {
        report(&ServerMessage::Found(Found {
            data: plan.data.clone(),
            sets: own.labels(&plan.data)?,
            has_catalogue: plan.data.first().is_some_and(|first| has_catalogue(first)),
            has_objects: plan.data.iter().any(|directory| has_objects(directory)),
        }));
        let permission: Permission = receive_order()?;
        own.label(&plan.data, &permission.set)?;
        Ok(plan)
    });
    let (sender, input_ended) = oneshot::channel();
    on_stdin_closed(|| {
        // The server may be ending already.
        let _ = sender.send(());
    });
    let mut is_ready = false;
    let ready = |address: &Address| {
        is_ready = true;
        report(&ServerMessage::Listening { address: address.0.clone(), pid: std::process::id() });
    };
    let served = begun.and_then(|plan| serve_plan(plan, policies, ready, left_alone(input_ended)));
    served.inspect_err(|error| {
        if !is_ready {
            report(&ServerMessage::Failed(error.clone().into()));
        }
    })
}

/// Builds the plan of this server and makes its directories.
fn begin(order: &ServerOrder) -> Result<(ServerPlan, OwnDirectories), UserError> {
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
    let name = format!("server-{}", order.id);
    let data: Vec<PathBuf> = parents.iter().map(|parent| parent.join(&name)).collect();
    data.iter().try_for_each(|directory| make_private(directory))?;
    let own = OwnDirectories {
        server: order.id,
        servers: order.servers,
        disks_per_server: data.len() as u32,
    };
    let plan = ServerPlan {
        id: order.id,
        servers: order.servers,
        listen: Address(format!("tcp:{}", SocketAddr::new(address, 0))),
        data,
        direct: order.direct.clone(),
        cache_bytes: order.cache_bytes,
        dirty_percent: order.dirty_percent,
        key: order.key,
    };
    Ok((plan, own))
}

/// Default parent of the data directories of an instance: in the job's scratch space on this host,
/// or else in /tmp. The directory's name is unique to the instance.
fn usual_parent(instance_name: &str) -> Result<PathBuf, UserError> {
    let named = SCRATCH.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let scratch = named.into_iter().find(|path| path.is_absolute() && path.is_dir());
    let user = rustix::process::geteuid().as_raw();
    let parent = scratch.unwrap_or_else(|| PathBuf::from("/tmp"));
    let parent = parent.join(format!("unisono-{user}-{instance_name}"));
    make_private(&parent)?;
    Ok(parent)
}

fn make_private(directory: &Path) -> Result<(), UserError> {
    private::make_directory(directory).map_err(|error| UserError {
        error: format!("cannot use the data directory {}", directory.display()),
        help: "with --data, name a directory on that host that only you may enter, or that does \
               not exist"
            .to_owned(),
        ..error
    })
}

fn receive_order<T: DeserializeOwned>() -> Result<T, UserError> {
    receive(&mut std::io::stdin().lock()).map_err(|error| {
        UserError::new(
            ExitCode::NoServer,
            "this server received no orders",
            error.to_string(),
            "start servers with: unisono start",
        )
    })
}

fn report(message: &ServerMessage) {
    let mut output = std::io::stdout().lock();
    // If the reader is gone, the input ends too.
    let _ = write!(output, "{MARK}{}", line(message)).and_then(|()| output.flush());
}

/// Returns when standard input ends, or when a signal asks this process to end.
async fn left_alone(input_ended: oneshot::Receiver<()>) {
    tokio::select! {
        _ = input_ended => {}
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
