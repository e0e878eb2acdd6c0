//! Handshake of two nodes.
//!
//! Over a Unix socket the kernel says who the peer is: it must be a process of the same user. Over
//! TCP the responder begins with a random challenge, and then both sides prove that they know the
//! shared key (Noise, pattern `NNpsk0`, fresh ephemeral keys, the challenge in the prologue). Then
//! each sends a hello: its protocol version, and a secret in its memory by which the other verifies
//! that it can access that memory directly. Over TCP the hellos agree on the [`WireProtection`]
//! of what follows, and the handshake makes the keys of its [`record`](super::record)s.
//!
//! Invariants:
//!
//! - A connection has at least the protection that each side asks for. The hellos are encrypted and
//!   authenticated, so nobody on the way can weaken it.
//! - The first message of an initiator is valid for one challenge, so for one connection. A replay
//!   on another connection ends that connection at once.
//! - Before its handshake ends, a peer costs one socket, a few hundred bytes and at most
//!   [`HANDSHAKE_TIMEOUT`].
//! - No handshake message is larger than [`GREETING_BYTES_MAX`].

use super::frame::u64_at;
use super::process::{NONCE_BYTES, PeerProcess};
use super::record::Session;
use super::socket::Socket;
use crate::wire_protection::WireProtection;
use std::cell::Cell;
use std::time::Duration;
use thiserror::Error;

/// Maximum duration of a handshake.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time that a peer has for its first message while others wait for their handshakes, so that
/// silent strangers cannot lock out clients. A client whose handshake is aborted for that
/// reconnects.
pub(crate) const HANDSHAKE_SILENCE_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum size of a handshake message, in bytes.
const GREETING_BYTES_MAX: usize = 256;

/// Version of the connection protocol; peers with another version are refused.
pub(crate) const PROTOCOL_VERSION: u16 = 5;

const NOISE_PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const NOISE_PROLOGUE: &[u8] = b"unisono connection 2";
const CHALLENGE_BYTES: usize = 32;
const HELLO_MAGIC: &[u8; 8] = b"UNISONO\0";
const HELLO_BYTES: usize = 40;

/// Side of this node in the handshake.
// Sent: pinned by the test below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The node that opened the connection.
    Initiator = 0,
    /// The node that accepted it.
    Responder = 1,
}

/// Reason for which a handshake failed.
#[derive(PartialEq, Eq, Debug, Error)]
pub(crate) enum HandshakeError {
    /// The peer has another version of the connection protocol.
    #[error("the peer has version {0} of the protocol, and this node has another")]
    WrongVersion(u16),
    /// Another reason.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for HandshakeError {
    fn from(cause: String) -> Self {
        Self::Failed(cause)
    }
}

impl From<&str> for HandshakeError {
    fn from(cause: &str) -> Self {
        Self::Failed(cause.to_owned())
    }
}

/// Handshake of this node.
#[derive(Clone, Copy)]
pub(crate) struct Handshaker<'a> {
    /// Side of this node.
    pub(crate) role: Role,
    /// Secret whose address does not change while the node exists.
    pub(crate) nonce: &'a [u8; NONCE_BYTES],
    /// True if this node wants to access the peer's memory directly.
    pub(crate) one_sided: bool,
    /// True if the peer may access this node's memory directly.
    pub(crate) is_reachable: bool,
    /// Version of this node: [`PROTOCOL_VERSION`].
    pub(crate) version: u16,
    /// Least protection of a TCP connection; `None` if the peer decides.
    pub(crate) protection: Option<WireProtection>,
}

/// Credentials of the peer of a Unix socket.
pub(crate) struct Credentials {
    /// Process id, if it is visible from here.
    pub(crate) pid: Option<i32>,
    /// User id.
    pub(crate) user: u32,
}

impl Handshaker<'_> {
    /// Performs the handshake over a Unix socket. Returns the peer's process if its memory can be
    /// accessed.
    pub(crate) async fn run_local(
        &self,
        socket: &Socket,
        peer: Credentials,
    ) -> Result<Option<PeerProcess>, HandshakeError> {
        let own = rustix::process::geteuid().as_raw();
        if peer.user != own {
            let cause = format!("the peer belongs to user {}, this node to {own}", peer.user);
            return Err(cause.into());
        }
        socket.write_all(&self.hello(None)).await.map_err(lost)?;
        let mut answer = [0; HELLO_BYTES];
        socket.read_exact(&mut answer).await.map_err(lost)?;
        let hello = self.check_hello(&answer)?;
        let pid = peer.pid.filter(|_| self.one_sided);
        Ok(pid.and_then(|pid| PeerProcess::probe(pid, hello.address, &hello.nonce)))
    }

    /// Performs the handshake over TCP with a peer that knows `key`. Sets `first_message_seen`
    /// after a message that only a peer with the key can compose, for this connection. Returns the
    /// agreed protection, with its session if there is any.
    pub(crate) async fn run_remote(
        &self,
        socket: &Socket,
        key: &[u8; 32],
        first_message_seen: &Cell<bool>,
    ) -> Result<(WireProtection, Option<Session>), HandshakeError> {
        let challenge = self.challenge(socket).await?;
        let mut noise = self.noise(key, &challenge).map_err(|error| error.to_string())?;
        let mut buffer = [0; GREETING_BYTES_MAX];
        // -> psk, e    <- e, ee
        for turn in [Role::Initiator, Role::Responder] {
            if turn == self.role {
                let length = noise.write_message(&[], &mut buffer).map_err(refused)?;
                send(socket, &buffer[..length]).await?;
            } else {
                let greeting = receive(socket).await?;
                noise.read_message(&greeting, &mut buffer).map_err(refused)?;
                first_message_seen.set(true);
            }
        }
        let keys = noise.dangerously_get_raw_split();
        let mut channel = noise.into_transport_mode().map_err(refused)?;
        // A responder sends its own hello also when it refuses that of the initiator, which learns
        // from it of another version.
        let mut protection = self.protection;
        let mut checked = Ok(None);
        for turn in [Role::Initiator, Role::Responder] {
            if turn == self.role {
                // The hello of the responder tells what both have agreed on.
                if self.role == Role::Responder {
                    protection = protection.or(Some(WireProtection::Private));
                }
                let hello = self.hello(protection);
                let length = channel.write_message(&hello, &mut buffer).map_err(refused)?;
                send(socket, &buffer[..length]).await?;
            } else {
                let greeting = receive(socket).await?;
                let length = channel.read_message(&greeting, &mut buffer).map_err(refused)?;
                checked = self.check_hello(&buffer[..length]).map(|hello| {
                    protection = protection.max(hello.protection);
                    hello.protection
                });
            }
        }
        let told = checked?;
        self.agreed(protection, told, keys)
    }

    /// Returns the protection that both sides agreed on, and its session. The peer told `told`.
    fn agreed(
        &self,
        protection: Option<WireProtection>,
        told: Option<WireProtection>,
        keys: ([u8; 32], [u8; 32]),
    ) -> Result<(WireProtection, Option<Session>), HandshakeError> {
        let protection =
            protection.ok_or("the peer does not say how the connection is protected")?;
        if self.role == Role::Initiator && told != Some(protection) {
            return Err(format!("the peer does not protect the connection ({protection})").into());
        }
        if !protection.is_supported() {
            let cause = format!(
                "the connection is to be {protection}, and this processor has no instructions for \
                 AES-GCM"
            );
            return Err(cause.into());
        }
        let (to_responder, to_initiator) = keys;
        let (sending, receiving) = match self.role {
            Role::Initiator => (to_responder, to_initiator),
            Role::Responder => (to_initiator, to_responder),
        };
        let session = (protection != WireProtection::Plain)
            .then(|| Session::new(protection, &sending, &receiving));
        Ok((protection, session))
    }

    /// Sends or receives the random bytes that distinguish this connection from all others.
    async fn challenge(&self, socket: &Socket) -> Result<[u8; CHALLENGE_BYTES], HandshakeError> {
        let mut challenge = [0; CHALLENGE_BYTES];
        match self.role {
            Role::Responder => {
                crate::fill_random(&mut challenge);
                socket.write_all(&challenge).await.map_err(lost)?;
            }
            Role::Initiator => socket.read_exact(&mut challenge).await.map_err(lost)?,
        }
        Ok(challenge)
    }

    fn noise(
        &self,
        key: &[u8; 32],
        challenge: &[u8; CHALLENGE_BYTES],
    ) -> Result<snow::HandshakeState, snow::Error> {
        let prologue = [NOISE_PROLOGUE, challenge].concat();
        let builder = snow::Builder::new(NOISE_PATTERN.parse()?);
        let builder = builder.psk(0, key)?.prologue(&prologue)?;
        match self.role {
            Role::Initiator => builder.build_initiator(),
            Role::Responder => builder.build_responder(),
        }
    }

    /// Composes a hello with a protection of TCP connections, if there is one to tell.
    fn hello(&self, protection: Option<WireProtection>) -> [u8; HELLO_BYTES] {
        // Nothing is found at address 0.
        let address = if self.is_reachable { self.nonce.as_ptr() as u64 } else { 0 };
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(HELLO_MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10] = self.role as u8;
        bytes[11] = protection.map_or(0, |protection| protection as u8);
        bytes[16..24].copy_from_slice(&address.to_le_bytes());
        bytes[24..].copy_from_slice(self.nonce);
        bytes
    }

    fn check_hello(&self, bytes: &[u8]) -> Result<Hello, HandshakeError> {
        if bytes.len() != HELLO_BYTES || bytes[..8] != *HELLO_MAGIC {
            return Err("the peer is not a node of Unisono".into());
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != self.version {
            return Err(HandshakeError::WrongVersion(version));
        }
        if bytes[10] == self.role as u8 {
            return Err("the peer claims the same side of the connection as this node".into());
        }
        let protection = WireProtection::ALL.into_iter().find(|it| *it as u8 == bytes[11]);
        if protection.is_none() && bytes[11] != 0 {
            return Err(format!("the peer wants the unknown protection {}", bytes[11]).into());
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&bytes[24..]);
        Ok(Hello { address: u64_at(bytes, 16), nonce, protection })
    }
}

/// Hello of a peer.
struct Hello {
    /// Address of the secret in the peer's memory.
    address: u64,
    nonce: [u8; NONCE_BYTES],
    /// Protection of TCP connections; `None` if this side decides.
    protection: Option<WireProtection>,
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
        return Err(format!(
            "a greeting of {length} bytes is over the limit of {GREETING_BYTES_MAX}"
        ));
    }
    let mut greeting = vec![0; length];
    socket.read_exact(&mut greeting).await.map_err(lost)?;
    Ok(greeting)
}

fn refused(error: snow::Error) -> String {
    format!("the peer does not have the key ({error})")
}

fn lost(error: std::io::Error) -> String {
    format!("the peer disconnected during the handshake ({error}); its key may differ")
}

#[cfg(test)]
mod tests {
    //! Proves: the hello of each side keeps its bytes, each side of a connection learns the version
    //! of the other when it differs, and both sides agree on the stronger protection.
    use super::*;
    use std::os::unix::net::UnixStream;

    fn handshaker(role: Role, version: u16) -> Handshaker<'static> {
        let (nonce, protection) = (&[7; NONCE_BYTES], None);
        Handshaker { role, nonce, one_sided: false, is_reachable: true, version, protection }
    }

    #[test]
    fn each_side_keeps_its_number() {
        for (role, number) in [(Role::Initiator, 0), (Role::Responder, 1)] {
            let hello = handshaker(role, PROTOCOL_VERSION).hello(None);
            assert_eq!(hello[..8], *b"UNISONO\0");
            assert_eq!(hello[8..16], [5, 0, number, 0, 0, 0, 0, 0], "{role:?}");
            assert_eq!(hello[24..], [7; NONCE_BYTES]);
        }
        for (protection, number) in WireProtection::ALL.into_iter().zip(1..) {
            let hello = handshaker(Role::Initiator, PROTOCOL_VERSION).hello(Some(protection));
            assert_eq!(hello[8..16], [5, 0, 0, number, 0, 0, 0, 0], "{protection}");
        }
    }

    fn sockets() -> [Socket; 2] {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        [one, other].map(|stream| {
            stream.set_nonblocking(true).expect("a socket can be nonblocking");
            Socket::new(stream).expect("a socket")
        })
    }

    #[tokio::test]
    async fn other_versions_are_refused_by_their_number() {
        let wrong = |version| Err(HandshakeError::WrongVersion(version));
        let (old, new) =
            (handshaker(Role::Initiator, 4), handshaker(Role::Responder, PROTOCOL_VERSION));
        let user = rustix::process::geteuid().as_raw();
        let peer = || Credentials { pid: None, user };
        let [one, other] = sockets();
        let local = tokio::join!(old.run_local(&one, peer()), new.run_local(&other, peer()));
        assert_eq!((local.0.map(|_| ()), local.1.map(|_| ())), (wrong(PROTOCOL_VERSION), wrong(4)));
        let ([one, other], key, seen) = (sockets(), [1; 32], Cell::new(false));
        let remote =
            tokio::join!(old.run_remote(&one, &key, &seen), new.run_remote(&other, &key, &seen));
        let remote = (remote.0.map(|_| ()), remote.1.map(|_| ()));
        assert_eq!(remote, (wrong(PROTOCOL_VERSION), wrong(4)));
    }

    #[tokio::test]
    async fn the_stronger_protection_is_agreed_on() {
        use WireProtection::{Integrity, Plain, Private};
        for (initiator, responder, agreed) in [
            (None, Some(Plain), Plain),
            (None, Some(Private), Private),
            (Some(Plain), Some(Plain), Plain),
            (Some(Integrity), Some(Plain), Integrity),
            (Some(Plain), Some(Private), Private),
            (Some(Private), Some(Integrity), Private),
            (None, None, Private),
        ] {
            let ([one, other], key, seen) = (sockets(), [1; 32], Cell::new(false));
            let of =
                |role, protection| Handshaker { protection, ..handshaker(role, PROTOCOL_VERSION) };
            let initiator = of(Role::Initiator, initiator);
            let responder = of(Role::Responder, responder);
            let (initiated, responded) = tokio::join!(
                initiator.run_remote(&one, &key, &seen),
                responder.run_remote(&other, &key, &seen)
            );
            for side in [initiated, responded] {
                let (protection, session) = side.expect("they agree");
                assert_eq!(protection, agreed);
                assert_eq!(session.is_some(), agreed != Plain);
            }
        }
    }
}
