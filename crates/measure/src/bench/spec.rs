//! The plan of a bench.

use crate::ranks::CaseSpec;
use interface::{CoreList, UserError};
use policy::Stripe;
use std::path::PathBuf;

/// A set of cases to measure on one instance.
#[derive(Clone, Debug, Default)]
pub struct BenchPlan {
    /// Number of client processes.
    pub clients: u32,
    /// Host of this machine on which the clients listen for one another, if servers listen by TCP;
    /// `None` for the one by which each client reaches server 0.
    pub client_host: Option<String>,
    /// Cores that the clients may use. `None`: any core.
    pub client_cores: Option<CoreList>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Directory, without links in its path, for ordinary files on which the servers work in place
    /// of files of the instance. Each has the name of its case and goes with it.
    pub in_place: Option<PathBuf>,
    /// Cases to measure, one after another.
    pub cases: Vec<CaseSpec>,
}

/// The most client processes of one bench.
const CLIENTS_MAX: u32 = 4096;

impl BenchPlan {
    /// Checks every case before anything is started.
    pub fn check(&self) -> Result<(), UserError> {
        if self.clients == 0 || self.clients > CLIENTS_MAX {
            return Err(UserError::usage(
                "cannot start these clients",
                format!("the number of clients is {}", self.clients),
                format!("give --clients a number from 1 to {CLIENTS_MAX}"),
            ));
        }
        let stripe = Stripe::round_robin(self.block_bytes, 1, 1);
        stripe.validate().map_err(|error| {
            UserError::usage(
                "cannot stripe the file in blocks of this size",
                error.to_string(),
                "choose a block size such as 256KiB or 1MiB",
            )
        })?;
        self.cases.iter().try_for_each(|case| case.access(self.clients).map(|_| ()))
    }
}
