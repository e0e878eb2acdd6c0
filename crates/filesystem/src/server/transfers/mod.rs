//! Active transfers, and limits on the memory that they occupy.

pub(crate) mod active_transfers;
pub(crate) mod answer_pools;
pub(crate) mod buffer_pool;
pub(crate) mod memory;
mod request_budget;
pub(crate) mod transfer_watchdog;
pub(crate) mod write_budget;
