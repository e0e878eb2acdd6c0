//! Names of client processes.

use serde::{Deserialize, Serialize};

/// Name of one client process at all servers. The client draws it at random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ClientKey(pub u64);
