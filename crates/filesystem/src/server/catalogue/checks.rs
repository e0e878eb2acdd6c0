//! Checks of new files and defaults, which come from clients.

use super::name;
use policy::{PAGE_MAP_MAX, Pool, Stripe};
use wire::{Fault, FileDefaults, FileRecord};

/// Checks defaults of new files. Server numbers are checked when a file is created.
pub(super) fn check_defaults(defaults: &FileDefaults) -> Result<(), Fault> {
    let bad = |cause: String| Fault::BadRequest { cause };
    let FileDefaults { block_bytes, servers, pool, map, buffering, protection: _ } = defaults;
    let (block_bytes, servers) = (block_bytes.unwrap_or(1), servers.unwrap_or(1));
    let stripe = Stripe::round_robin(block_bytes, servers, 1);
    stripe.validate().map_err(|error| bad(error.to_string()))?;
    buffering.validate().map_err(|error| bad(error.to_string()))?;
    if map.len() > PAGE_MAP_MAX || !(map.is_empty() || pool.is_empty()) {
        return Err(bad(format!("a map has at most {PAGE_MAP_MAX} entries, and excludes a pool")));
    }
    let named = u32::try_from(pool.len()).unwrap_or(u32::MAX);
    let pool = Pool::Named(pool.clone()).validate(named, u32::MAX);
    pool.map_err(|error| bad(error.to_string()))
}

/// Checks a file record, which may come from anyone, on an instance of `servers` servers.
pub(crate) fn check_record(record: &FileRecord, servers: u32) -> Result<(), Fault> {
    let bad = |cause: String| Fault::BadRequest { cause };
    let _ = name::parts(&record.name)?;
    record.size().validate()?;
    record.stripe.validate().map_err(|error| bad(error.to_string()))?;
    record.buffering.validate().map_err(|error| bad(error.to_string()))?;
    let pool = record.pool.validate(record.stripe.servers, servers);
    pool.map_err(|error| bad(error.to_string()))?;
    let protection = record.protection.validate(&record.stripe);
    protection.map_err(|error| bad(error.to_string()))
}
