//! How two nodes begin a connection.
//!
//! Over a Unix socket the kernel says who the peer is: it must be a process of the same user. Over
//! TCP both sides prove that they know the shared key (Noise, pattern `NNpsk0`, fresh ephemeral
//! keys). Then each says hello: the version it speaks, and a secret in its memory by which the
//! other finds out whether it can reach that memory by itself. Once the hellos are exchanged
//! **frames travel in clear**, so TCP is for networks whose links are trusted.
//!
//! Invariants: before a peer is known it costs one socket, a few hundred bytes and at most
//! [`HANDSHAKE_TIMEOUT`]; nothing it sends is larger than [`GREETING_BYTES_MAX`].

use super::frame::u64_at;
use super::process::{NONCE_BYTES, PeerProcess};
use super::socket::Socket;
use std::cell::Cell;
use std::time::Duration;

/// How long a handshake may take.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a peer may take to say something while others wait to begin their handshakes: strangers
/// who say nothing must not keep clients out. A client that was given up for that calls again.
pub(crate) const HANDSHAKE_PATIENCE: Duration = Duration::from_millis(500);

/// The largest message of a handshake, in bytes.
const GREETING_BYTES_MAX: usize = 256;

/// The version of everything on a connection; peers of another one are refused.
const PROTOCOL_VERSION: u16 = 3;

const NOISE_PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const NOISE_PROLOGUE: &[u8] = b"unisono connection 1";
const HELLO_MAGIC: &[u8; 8] = b"UNISONO\0";
const HELLO_BYTES: usize = 40;

/// Which side this node is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It asked for the connection.
    Caller,
    /// It was asked.
    Listener,
}

/// What this node says about itself.
#[derive(Clone, Copy)]
pub(crate) struct Greeter<'a> {
    /// Which side it is on.
    pub(crate) role: Role,
    /// A secret that stays where it is as long as the node exists.
    pub(crate) nonce: &'a [u8; NONCE_BYTES],
    /// Whether it wants to reach the peer's memory by itself.
    pub(crate) one_sided: bool,
}

/// Who is at the other end of a Unix socket.
pub(crate) struct Credentials {
    /// Its process, when it can be seen from here.
    pub(crate) pid: Option<i32>,
    /// Its user.
    pub(crate) user: u32,
}

impl Greeter<'_> {
    /// Begins a connection over a Unix socket. Returns the peer's process when its memory can be
    /// reached.
    pub(crate) async fn greet_local(
        &self,
        socket: &Socket,
        peer: Credentials,
    ) -> Result<Option<PeerProcess>, String> {
        let own = rustix::process::geteuid().as_raw();
        if peer.user != own {
            return Err(format!("the peer belongs to user {}, this node to {own}", peer.user));
        }
        socket.write_all(&self.hello()).await.map_err(lost)?;
        let mut answer = [0; HELLO_BYTES];
        socket.read_exact(&mut answer).await.map_err(lost)?;
        let hello = self.check_hello(&answer)?;
        let pid = peer.pid.filter(|_| self.one_sided);
        Ok(pid.and_then(|pid| PeerProcess::probe(pid, hello.address, &hello.nonce)))
    }

    /// Begins a connection over TCP with a peer that knows `key`; notes when it has said something
    /// that shows it.
    pub(crate) async fn greet_remote(
        &self,
        socket: &Socket,
        key: &[u8; 32],
        has_spoken: &Cell<bool>,
    ) -> Result<(), String> {
        let mut noise = self.noise(key).map_err(|error| error.to_string())?;
        let mut buffer = [0; GREETING_BYTES_MAX];
        // -> psk, e    <- e, ee
        for turn in [Role::Caller, Role::Listener] {
            if turn == self.role {
                let length = noise.write_message(&[], &mut buffer).map_err(refused)?;
                send(socket, &buffer[..length]).await?;
            } else {
                let greeting = receive(socket).await?;
                noise.read_message(&greeting, &mut buffer).map_err(refused)?;
                has_spoken.set(true);
            }
        }
        let mut channel = noise.into_transport_mode().map_err(refused)?;
        // The caller's hello comes first: only it shows the listener that the caller's first
        // message was not a recording.
        for turn in [Role::Caller, Role::Listener] {
            if turn == self.role {
                let length = channel.write_message(&self.hello(), &mut buffer).map_err(refused)?;
                send(socket, &buffer[..length]).await?;
            } else {
                let greeting = receive(socket).await?;
                let length = channel.read_message(&greeting, &mut buffer).map_err(refused)?;
                self.check_hello(&buffer[..length])?;
            }
        }
        Ok(())
    }

    fn noise(&self, key: &[u8; 32]) -> Result<snow::HandshakeState, snow::Error> {
        let builder = snow::Builder::new(NOISE_PATTERN.parse()?);
        let builder = builder.psk(0, key)?.prologue(NOISE_PROLOGUE)?;
        match self.role {
            Role::Caller => builder.build_initiator(),
            Role::Listener => builder.build_responder(),
        }
    }

    fn hello(&self) -> [u8; HELLO_BYTES] {
        let address = self.nonce.as_ptr() as u64;
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(HELLO_MAGIC);
        bytes[8..10].copy_from_slice(&PROTOCOL_VERSION.to_le_bytes());
        bytes[10] = self.role as u8;
        bytes[16..24].copy_from_slice(&address.to_le_bytes());
        bytes[24..].copy_from_slice(self.nonce);
        bytes
    }

    fn check_hello(&self, bytes: &[u8]) -> Result<Hello, String> {
        if bytes.len() != HELLO_BYTES || bytes[..8] != *HELLO_MAGIC {
            return Err("the peer is no node of Unisono".into());
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != PROTOCOL_VERSION {
            return Err(format!(
                "the peer speaks version {version}, this node version {PROTOCOL_VERSION}"
            ));
        }
        if bytes[10] == self.role as u8 {
            return Err("the peer takes the same side of the connection".into());
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&bytes[24..]);
        Ok(Hello { address: u64_at(bytes, 16), nonce })
    }
}

/// What a peer says about itself.
struct Hello {
    /// Where its secret lies in its memory.
    address: u64,
    nonce: [u8; NONCE_BYTES],
}

async fn send(socket: &Socket, greeting: &[u8]) -> Result<(), String> {
    let length = u16::try_from(greeting.len()).map_err(|error| error.to_string())?;
    let mut bytes = Vec::with_capacity(2 + greeting.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(greeting);
    socket.write_all(&bytes).await.map_err(lost)
}

async fn receive(socket: &Socket) -> Result<Vec<u8>, String> {
    let mut length = [0; 2];
    socket.read_exact(&mut length).await.map_err(lost)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > GREETING_BYTES_MAX {
        return Err(format!("a greeting of {length} bytes is over {GREETING_BYTES_MAX}"));
    }
    let mut greeting = vec![0; length];
    socket.read_exact(&mut greeting).await.map_err(lost)?;
    Ok(greeting)
}

fn refused(error: snow::Error) -> String {
    format!("the peer does not know the key ({error})")
}

fn lost(error: std::io::Error) -> String {
    format!("the peer went away during the handshake ({error}); its key may be another")
}
