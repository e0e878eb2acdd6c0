//! Listening address of a server, such that all other hosts can reach it.

use client::own_address_towards;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Arbitrary port: only the address matters.
const PORT: u16 = 9;

/// Address of this machine, named `host`, on which the `others` can reach it.
///
/// The name of a host often resolves to its loopback address. Then the route to another host
/// decides. A batch system may use names of its own. Then the machine's own name decides.
///
/// # Errors
/// Fails when neither a name nor a route gives an address.
pub(super) fn own_address(host: &str, others: &[String]) -> Result<IpAddr, String> {
    let own = |name: &str| addresses(name).into_iter().filter(is_here).collect::<Vec<_>>();
    let named = own(host);
    if let Some(outer) = named.iter().find(|one| is_outer(one)) {
        return Ok(*outer);
    }
    let towards = |other: &String| {
        let other = addresses(other).into_iter().find(is_outer)?;
        let own = own_address_towards(&SocketAddr::new(other, PORT).to_string()).ok()?;
        is_outer(&own).then_some(own)
    };
    if let Some(outer) = others.iter().find_map(towards) {
        return Ok(outer);
    }
    let is_address = host.parse::<IpAddr>().is_ok();
    let by_itself = if is_address { Vec::new() } else { own(&own_name()) };
    let found = named.first().or(by_itself.iter().find(|one| is_outer(one)).or(by_itself.first()));
    found.copied().ok_or_else(|| format!("{host} is not a name or address of this machine"))
}

/// True if this process runs on the host of that name.
pub(super) fn is_this_host(host: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_address = host.parse::<IpAddr>().is_ok();
    (!is_address && short(&own_name()) == short(host)) || addresses(host).iter().any(is_here)
}

/// Host name of this machine.
fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn addresses(host: &str) -> Vec<IpAddr> {
    let host = host.rsplit('@').next().unwrap_or(host);
    let found = (host, PORT).to_socket_addrs();
    found.map_or_else(|_| Vec::new(), |all| all.map(|one| one.ip()).collect())
}

/// True if the address belongs to this machine: only such can be bound to.
fn is_here(address: &IpAddr) -> bool {
    !address.is_unspecified() && UdpSocket::bind((*address, 0)).is_ok()
}

fn is_outer(address: &IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !address.is_loopback() && !is_link_local
}

#[cfg(test)]
mod tests {
    //! Proves: an address of this machine is taken as it is, one of another is refused.
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        assert_eq!(own_address("127.0.0.3", &[]), Ok(IpAddr::from([127, 0, 0, 3])));
        assert_eq!(own_address("me@127.0.0.3", &[]), Ok(IpAddr::from([127, 0, 0, 3])));
        // 192.0.2.0/24 is for documentation (RFC 5737): no machine has such an address.
        assert!(own_address("192.0.2.1", &[]).is_err());
        assert!(own_address("0.0.0.0", &[]).is_err());
        assert!(is_this_host("localhost") && is_this_host("127.0.0.2"));
        assert!(!is_this_host("192.0.2.1"));
    }
}
