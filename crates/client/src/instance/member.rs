//! Listening address of a client that works in a group, for the other members.
//!
//! Invariants: a member is reached as its servers are, by socket files or by TCP; by TCP each
//! chooses a host of its own machine, because nobody else knows which of its addresses others
//! reach.

use crate::instance::{Instance, InstanceFile, ServerEntry};
use interface::{ExitCode, UserError};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use world::Address;
use world_real::RealWorld;

/// A member of a group before it connects to the others.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Number of the group.
    pub group: u64,
    /// Rank of the member in the group.
    pub rank: u32,
    /// Host name of this machine to listen on by TCP. `None` uses the address that reaches server
    /// 0.
    pub host: Option<&'a str>,
}

impl Member<'_> {
    /// Begins to listen. The world's address is the one to give to the other members.
    ///
    /// # Errors
    /// Fails when there is no such host here, or the key cannot be used.
    pub fn listen(&self, instance: &Instance, file: &InstanceFile) -> Result<RealWorld, UserError> {
        let mut node = instance.client_node(file)?;
        node.listen = Some(match file.servers.iter().find_map(ServerEntry::tcp) {
            Some(server) => self.port(server)?,
            None => instance.client_address(self.group, self.rank),
        });
        RealWorld::open(node).map_err(|error| {
            UserError::usage(
                format!("client {} cannot listen for the other clients", self.rank),
                error.to_string(),
                "for TCP, name an address of this machine that the other clients can reach, with \
                 --client-host",
            )
        })
    }

    /// Any port of the chosen host, or of the address that reaches `server`.
    fn port(&self, server: &str) -> Result<Address, UserError> {
        if let Some(host) = self.host {
            return Ok(Address(format!("tcp:{host}:0")));
        }
        let own = own_address_towards(server).map_err(|error| {
            UserError::new(
                ExitCode::NoServer,
                format!("there is no network route from this machine to the server at {server}"),
                error.to_string(),
                "check the network, or name an address of this machine with --client-host",
            )
        })?;
        Ok(Address(format!("tcp:{}", SocketAddr::new(own, 0))))
    }
}

/// Address of this machine on the route to `server`. Connecting a datagram socket only asks the
/// system for the route and sends nothing.
pub fn own_address_towards(server: &str) -> io::Result<IpAddr> {
    let server = server.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    //! Proves: the own address is of the network that the server is in, in both families.
    use super::*;

    #[test]
    fn a_server_on_this_machine_is_called_from_the_loopback() {
        let towards = |server: &str| own_address_towards(server).map(|own| own.to_string());
        assert_eq!(towards("127.0.0.1:7").expect("there is a loopback"), "127.0.0.1");
        assert_eq!(towards("127.8.0.1:7").expect("there is a loopback"), "127.0.0.1");
        assert!(towards("no such host:7").is_err());
        assert!(towards("127.0.0.1").is_err(), "there is no port");
    }
}
