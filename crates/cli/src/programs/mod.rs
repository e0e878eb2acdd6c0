//! Commands that run programs of the user, and the hints that such programs give.

pub(crate) mod hints;
mod launch;
pub(crate) mod record;
pub(crate) mod run;
