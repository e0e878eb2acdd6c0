//! Listening socket of a node, and the task that accepts connections.
//!
//! Invariants:
//!
//! - A socket file is never accessible to other users, not even for a moment. It replaces another
//!   only if no node answers there, and is removed with its listener.
//! - At most [`HANDSHAKES_MAX`] connections are in their handshake, and one more has been accepted.
//! - When more wait, a peer has [`HANDSHAKE_SILENCE_TIMEOUT`] for a first message that only a peer
//!   with the key can compose.

use super::handshake::{Credentials, HANDSHAKE_SILENCE_TIMEOUT};
use super::socket_path::SocketPath;
use crate::config::{Endpoint, OpenError};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;
use world::Address;

/// Maximum number of concurrent handshakes.
const HANDSHAKES_MAX: usize = 64;

/// Length of the accept queue.
const BACKLOG_LENGTH: i32 = 1024;

/// Pause after a failed accept, for instance without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket.
pub(crate) enum Listener {
    /// Socket file.
    Unix(UnixListener, #[expect(dead_code, reason = "removes the file")] SocketFile),
    /// TCP port.
    Tcp(TcpListener),
}

/// Socket file, removed when dropped unless another has replaced it.
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // If it is gone already, nothing is left to do.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Listener {
    /// Begins to listen. Returns the address at which the node can be reached, too.
    pub(crate) fn open(address: &Address, has_key: bool) -> Result<(Self, Address), OpenError> {
        let endpoint = Endpoint::parse(address)
            .map_err(|cause| OpenError::BadAddress { address: address.clone(), cause })?;
        if matches!(endpoint, Endpoint::Tcp(_)) && !has_key {
            return Err(OpenError::KeyRequired { address: address.clone() });
        }
        let opened = match endpoint {
            Endpoint::Unix(path) => open_unix(path).map(|listener| (listener, address.clone())),
            Endpoint::Tcp(host) => open_tcp(&host),
        };
        opened.map_err(|error| OpenError::Listen {
            address: address.clone(),
            cause: error.to_string(),
        })
    }

    /// Accepts connections, for ever; hands each to `begin` when its handshake may begin.
    pub(crate) async fn accept_all(self, begin: impl Fn(RawStream, Admission)) {
        let mut handshakes = Handshakes::default();
        loop {
            let accepted = match &self {
                Self::Unix(listener, _) => {
                    listener.accept().await.map(|(stream, _)| RawStream::Unix(stream))
                }
                Self::Tcp(listener) => {
                    listener.accept().await.map(|(stream, _)| RawStream::Tcp(stream))
                }
            };
            match accepted {
                Ok(stream) => begin(stream, handshakes.begin().await),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// Concurrent handshakes of one listener.
struct Handshakes {
    permits: Arc<Semaphore>,
    /// Handshakes that were not aborted, in start order; may include ended ones.
    under_way: VecDeque<Handshake>,
}

struct Handshake {
    began: Instant,
    /// True after a message that only a peer with the key can compose.
    first_message_seen: Rc<Cell<bool>>,
    /// Closed when the handshake has ended.
    abort: oneshot::Sender<()>,
}

/// Permission for one handshake, held until the handshake ends.
pub(crate) struct Admission {
    permit: Option<OwnedSemaphorePermit>,
    first_message_seen: Rc<Cell<bool>>,
    /// Fires when the handshake must be aborted.
    aborted: oneshot::Receiver<()>,
}

impl Admission {
    /// Runs `handshake` until it ends or is aborted. The flag that it gets says, once set, that the
    /// caller has sent a valid first message.
    pub(crate) async fn run<R>(self, handshake: impl AsyncFnOnce(&Cell<bool>) -> R) {
        let Self { permit, first_message_seen, aborted } = self;
        // A caller whose handshake fails is no peer: the program is not notified.
        tokio::select! {
            biased;
            _ = handshake(&first_message_seen) => {}
            _ = aborted => {}
        }
        drop(permit);
    }
}

impl Default for Handshakes {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(HANDSHAKES_MAX)), under_way: VecDeque::new() }
    }
}

impl Handshakes {
    /// Admits one handshake, when there is a permit for it.
    async fn begin(&mut self) -> Admission {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => self.wait_for_permit().await,
        };
        self.under_way.retain(|handshake| !handshake.abort.is_closed());
        let (abort, aborted) = oneshot::channel();
        let first_message_seen = Rc::<Cell<bool>>::default();
        let (began, spoken) = (Instant::now(), Rc::clone(&first_message_seen));
        self.under_way.push_back(Handshake { began, first_message_seen: spoken, abort });
        Admission { permit, first_message_seen, aborted }
    }

    /// Waits until a handshake ends; aborts a silent one after the timeout.
    async fn wait_for_permit(&mut self) -> Option<OwnedSemaphorePermit> {
        let ended = Arc::clone(&self.permits).acquire_owned();
        let mut ended = std::pin::pin!(ended);
        while let Some(began) = self.oldest_silent().map(|index| self.under_way[index].began) {
            let deadline = began + HANDSHAKE_SILENCE_TIMEOUT;
            if let Ok(permit) = tokio::time::timeout_at(deadline, &mut ended).await {
                return permit.ok();
            }
            // Another handshake may be the oldest silent one by now.
            let silent = self.oldest_silent().filter(|it| self.under_way[*it].began == began);
            if let Some(silent) = silent.and_then(|silent| self.under_way.remove(silent)) {
                // If it has just ended, its permit is free too.
                let _ = silent.abort.send(());
                break;
            }
        }
        ended.await.ok()
    }

    /// Returns the index of the oldest handshake without a message.
    fn oldest_silent(&mut self) -> Option<usize> {
        self.under_way.retain(|handshake| !handshake.abort.is_closed());
        self.under_way.iter().position(|handshake| !handshake.first_message_seen.get())
    }
}

/// Connected stream before its handshake.
pub(crate) enum RawStream {
    /// Unix stream.
    Unix(UnixStream),
    /// TCP stream.
    Tcp(TcpStream),
}

impl RawStream {
    /// Returns the plain socket, and for a Unix socket the credentials of its peer.
    pub(crate) fn into_parts(self) -> io::Result<(OwnedFd, Option<Credentials>)> {
        match self {
            Self::Unix(stream) => {
                let peer = stream.peer_cred()?;
                // The value 0 stands for a process in another namespace, which is not visible from
                // here.
                let pid = peer.pid().filter(|pid| *pid > 0);
                let credentials = Credentials { pid, user: peer.uid() };
                Ok((stream.into_std()?.into(), Some(credentials)))
            }
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                let socket: OwnedFd = stream.into_std()?.into();
                watch_peer(&socket)?;
                Ok((socket, None))
            }
        }
    }
}

/// Enables keepalive, so that the system detects a dead peer machine and no timer is needed here.
fn watch_peer(socket: &OwnedFd) -> rustix::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    sockopt::set_tcp_user_timeout(socket, 30_000)
}

fn open_tcp(host: &str) -> io::Result<(Listener, Address)> {
    let listener = std::net::TcpListener::bind(host)?;
    let address = listener.local_addr()?;
    if address.ip().is_unspecified() {
        let cause = "it stands for all addresses of this machine: name one that other hosts can \
                     reach";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, cause));
    }
    // The standard library set a shorter accept queue.
    rustix::net::listen(&listener, BACKLOG_LENGTH)?;
    listener.set_nonblocking(true)?;
    let address = Address(format!("tcp:{address}"));
    Ok((Listener::Tcp(TcpListener::from_std(listener)?), address))
}

fn open_unix(path: PathBuf) -> io::Result<Listener> {
    remove_stale(&path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::UNIX;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // On Linux the file takes its mode from the socket, so that it is never wider than this.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    let short = SocketPath::of(&path)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(short.as_ref())?)?;
    let identity = identity(&path)?;
    let file = SocketFile { path, identity };
    rustix::net::listen(&socket, BACKLOG_LENGTH)?;
    let listener = std::os::unix::net::UnixListener::from(socket);
    Ok(Listener::Unix(UnixListener::from_std(listener)?, file))
}

/// Removes the socket file that a killed node left behind. Leaves any other file.
fn remove_stale(path: &Path) -> io::Result<()> {
    match SocketPath::of(path).and_then(StdUnixStream::connect) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another node listens on this path")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            use std::os::unix::fs::FileTypeExt;
            if std::fs::symlink_metadata(path)?.file_type().is_socket() {
                std::fs::remove_file(path)
            } else {
                Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file with this name exists"))
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::lstat(path)?;
    Ok((stat.st_dev, stat.st_ino))
}
