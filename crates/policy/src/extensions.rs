//! Extensions of the servers that a program starts.

use crate::{RecordFunctions, ReplacementPolicies};

/// Extensions of the servers that a program starts.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Replacement policies that files may choose.
    pub policies: ReplacementPolicies,
    /// Functions that selections of records may use.
    pub functions: RecordFunctions,
}

impl From<ReplacementPolicies> for Extensions {
    fn from(policies: ReplacementPolicies) -> Self {
        Self { policies, ..Self::default() }
    }
}
