//! Server pools: the servers of an instance that hold a file.
//!
//! A [`crate::Stripe`] numbers the servers of its file from 0. A pool maps these numbers to the
//! servers of the instance.
//!
//! Invariant: no server comes twice in a valid pool.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::ServerId;

/// Servers that hold a file, in the order of the stripe.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Pool {
    /// Consecutive servers from `first` on. After the last of the instance's `of` servers comes
    /// number 0.
    Consecutive {
        /// Server of the file's first block.
        first: u32,
        /// Number of servers of the instance.
        of: u32,
    },
    /// List of servers, in this order.
    Named(Vec<ServerId>),
}

/// Reason for which a pool is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PoolError {
    /// The instance does not have a server of the pool.
    #[error("the pool names {server}, the instance has {servers} servers")]
    NoSuchServer {
        /// Server that the pool names.
        server: ServerId,
        /// Number of servers of the instance.
        servers: u32,
    },
    /// A server is named twice.
    #[error("the pool names {server} twice")]
    Twice {
        /// Server that is named twice.
        server: ServerId,
    },
    /// The file needs another number of servers.
    #[error("the file lies on {needed} servers, the pool has {given}")]
    Size {
        /// Servers of the stripe.
        needed: u32,
        /// Servers of the pool.
        given: u32,
    },
}

impl Pool {
    /// Pool of all servers of an instance, starting with server 0.
    pub fn all(servers: u32) -> Self {
        Self::Consecutive { first: 0, of: servers }
    }

    /// Refuses a pool that is not `needed` different servers out of `servers`.
    pub fn validate(&self, needed: u32, servers: u32) -> Result<(), PoolError> {
        match self {
            Self::Consecutive { first, of } => {
                let (first, of) = (*first, *of);
                if of != servers || first >= of {
                    let server = ServerId(first.max(of.saturating_sub(1)));
                    return Err(PoolError::NoSuchServer { server, servers });
                }
                if needed > of {
                    return Err(PoolError::Size { needed, given: of });
                }
            }
            Self::Named(named) => {
                if named.len() != needed as usize {
                    let given = u32::try_from(named.len()).unwrap_or(u32::MAX);
                    return Err(PoolError::Size { needed, given });
                }
                let mut sorted = named.clone();
                sorted.sort_unstable();
                if let Some(&server) = sorted.last().filter(|last| last.0 >= servers) {
                    return Err(PoolError::NoSuchServer { server, servers });
                }
                if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(PoolError::Twice { server: pair[0] });
                }
            }
        }
        Ok(())
    }

    /// Server of the instance that has number `place` in the file. Panics when a named pool has no
    /// such place.
    pub fn server(&self, place: ServerId) -> ServerId {
        match self {
            Self::Consecutive { first, of } => {
                let server = (u64::from(*first) + u64::from(place.0)) % u64::from(*of);
                ServerId(server as u32)
            }
            Self::Named(named) => named[place.0 as usize],
        }
    }

    /// Number of `server` among the file's `needed` servers, if it is one of them.
    pub fn place_of(&self, server: ServerId, needed: u32) -> Option<ServerId> {
        let place = match self {
            Self::Consecutive { first, of } => {
                let ahead = u64::from(server.0) + u64::from(*of) - u64::from(*first);
                u32::try_from(ahead % u64::from(*of)).ok()?
            }
            Self::Named(named) => {
                u32::try_from(named.iter().position(|one| *one == server)?).ok()?
            }
        };
        (place < needed).then_some(ServerId(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_servers_are_inverse() {
        let named = Pool::Named([3, 0, 4].map(ServerId).to_vec());
        let pools = (0..5).map(|first| (Pool::Consecutive { first, of: 5 }, 3));
        for (pool, needed) in pools.chain([(named, 3), (Pool::all(5), 5)]) {
            pool.validate(needed, 5).expect("it is valid");
            let servers: Vec<ServerId> = (0..needed).map(|i| pool.server(ServerId(i))).collect();
            for server in (0..5).map(ServerId) {
                let place = servers.iter().position(|one| *one == server);
                let place = place.map(|place| ServerId(place as u32));
                assert_eq!(pool.place_of(server, needed), place, "{pool:?} {server}");
            }
        }
    }

    #[test]
    fn impossible_pools_are_refused() {
        let named = |servers: &[u32]| Pool::Named(servers.iter().copied().map(ServerId).collect());
        let refused = [
            (Pool::Consecutive { first: 4, of: 4 }, 1),
            (Pool::Consecutive { first: 0, of: 5 }, 1),
            (Pool::Consecutive { first: 0, of: 0 }, 1),
            (Pool::Consecutive { first: 0, of: 4 }, 5),
            (named(&[0, 1]), 3),
            (named(&[0, 4]), 2),
            (named(&[1, 0, 1]), 3),
            (named(&[]), 1),
        ];
        for (pool, needed) in refused {
            assert!(pool.validate(needed, 4).is_err(), "{pool:?} for {needed} servers");
        }
    }
}
