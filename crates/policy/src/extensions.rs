//! Extensions of the servers that a program starts.

use crate::{ModuleCompiler, RecordFunctions, RecordOperators, ReplacementPolicies};
use std::sync::Arc;

/// Extensions of the servers that a program starts.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Replacement policies that files may choose.
    pub policies: ReplacementPolicies,
    /// Functions that selections of records may use.
    pub functions: RecordFunctions,
    /// Operators that selections of records may use.
    pub operators: RecordOperators,
    /// Compiler of modules that users send; without one they are refused.
    pub modules: Option<Arc<dyn ModuleCompiler>>,
}

impl From<ReplacementPolicies> for Extensions {
    fn from(policies: ReplacementPolicies) -> Self {
        Self { policies, ..Self::default() }
    }
}
