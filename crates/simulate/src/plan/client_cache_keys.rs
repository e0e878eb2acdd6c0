//! Keys of the caches at clients.

use super::key::{Field, Key, case, field};
use super::value::{ConvertValue, Kind, Value};
use policy::{Cooperation, LINES_MAX, Organisation, WriteMiss, WritePolicy};

pub(super) static CLIENT_CACHE: [Key; 8] = [
    case(
        "client-cache",
        "--client-cache",
        Kind::Number { least: 0, most: LINES_MAX as u64, unit: "" },
        "Number of blocks in the cache of each client, which the caching strategy uses; 0 for no \
         cache at clients. No client reads old bytes after a write of another client is answered \
         (write-invalidate).",
        field!(base.client_cache.lines),
    ),
    case(
        "client-cache-block",
        "--client-cache-block",
        Kind::Size,
        "Size of a block of a client's cache in bytes, which divides the block of the file; 0 for \
         the block of the file.",
        field!(base.client_cache.line_bytes),
    ),
    case(
        "client-cache-ways",
        "--client-cache-ways",
        Kind::Number { least: 0, most: LINES_MAX as u64, unit: "" },
        "Number of places of each block in a client's cache: 1 for a direct-mapped cache, 0 for \
         a fully associative one. The least recently used block of these places is evicted.",
        Field::Plan {
            get: |plan| Some(ways_of(plan.base.client_cache.organisation).to_value()),
            set: |plan, value| {
                plan.base.client_cache.organisation = organisation(value)?;
                Ok(())
            },
        },
    ),
    case(
        "client-cache-write",
        "--client-cache-write",
        Kind::Word(WritePolicy::WORDS),
        WritePolicy::HELP,
        field!(base.client_cache.write),
    ),
    case(
        "client-cache-write-miss",
        "--client-cache-write-miss",
        Kind::Word(WriteMiss::WORDS),
        WriteMiss::HELP,
        field!(base.client_cache.write_miss),
    ),
    case(
        "cooperation",
        "--cooperation",
        Kind::Word(Cooperation::WORDS),
        Cooperation::HELP,
        field!(base.client_cache.cooperation),
    ),
    case(
        "global-share",
        "--global-share",
        Kind::Number { least: 0, most: 99, unit: " of percent" },
        "Share of each client's cache that servers manage, in percent (centrally-coordinated).",
        field!(base.client_cache.global_percent),
    ),
    case(
        "chances",
        "--chances",
        Kind::Number { least: 0, most: 1 << 16, unit: "" },
        "Number of times that an unused last copy moves to another client (n-chance).",
        field!(base.client_cache.chances),
    ),
];

fn ways_of(organisation: Organisation) -> u32 {
    match organisation {
        Organisation::DirectMapped => 1,
        Organisation::Ways(ways) => ways,
        Organisation::FullyAssociative => 0,
    }
}

fn organisation(value: &Value) -> Result<Organisation, String> {
    Ok(match u32::from_value(value)? {
        0 => Organisation::FullyAssociative,
        1 => Organisation::DirectMapped,
        ways => Organisation::Ways(ways),
    })
}
