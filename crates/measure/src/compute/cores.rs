//! Division of the cores of this machine among servers, with the computation beside them, and
//! clients.

use cluster::allowed_cores;
use interface::{CoreList, UserError};

/// Cores of servers and clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComputeCores {
    /// Cores that the servers share, and the computation with each.
    pub servers: CoreList,
    /// Cores that the clients share.
    pub clients: CoreList,
}

impl ComputeCores {
    /// Divides the cores that this process may use: those named for the servers, or the first half
    /// and at least one, and the others for the clients. If no other is left, clients get all.
    ///
    /// # Errors
    /// Fails when the system does not tell its cores.
    pub fn divide(servers: Option<&CoreList>) -> Result<Self, UserError> {
        Ok(Self::of(&allowed_cores()?, servers))
    }

    fn of(allowed: &CoreList, servers: Option<&CoreList>) -> Self {
        let half = || match allowed.cores().len() {
            1 => allowed.clone(),
            _ => allowed.part(0, 2),
        };
        let servers = servers.cloned().unwrap_or_else(half);
        let clients = allowed.without(&servers).unwrap_or_else(|| allowed.clone());
        Self { servers, clients }
    }

    /// True if clients take time from the computation.
    pub fn are_shared(&self) -> bool {
        self.clients.without(&self.servers).as_ref() != Some(&self.clients)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: clients and servers have cores of their own where there are enough.
    use super::*;

    #[test]
    fn cores_are_divided() {
        let list = |word: &str| word.parse::<CoreList>().unwrap();
        let divided = |allowed: &str, named: Option<&str>| {
            let named = named.map(list);
            let cores = ComputeCores::of(&list(allowed), named.as_ref());
            (cores.servers.to_string(), cores.clients.to_string(), cores.are_shared())
        };
        let words = |servers: &str, clients: &str, shared| (servers.into(), clients.into(), shared);
        assert_eq!(divided("0-3", None), words("0-1", "2-3", false));
        assert_eq!(divided("0-2", None), words("0", "1-2", false));
        assert_eq!(divided("5", None), words("5", "5", true));
        assert_eq!(divided("0-3", Some("3,1")), words("3,1", "0,2", false));
        assert_eq!(divided("0-1", Some("0-1")), words("0-1", "0-1", true));
    }
}
