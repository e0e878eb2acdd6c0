//! Number of a request.

use serde::{Deserialize, Serialize};

/// Number of one request of one client, until it is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);
