//! Arguments of `sim` about caches at clients.

use clap::Args;
use interface::{Cooperation, parse_size as size};

#[derive(Args, Debug)]
pub(crate) struct ClientCacheArguments {
    /// Number of blocks in the cache of each client, for caching (default: 0, no cache).
    #[arg(long, value_name = "COUNT")]
    pub(crate) client_cache: Option<u32>,
    /// Block size of a client's cache (default: the block of the file).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) client_cache_block: Option<u64>,
    /// Places of each block in a client's cache; 0 for any place (default: 0).
    #[arg(long, value_name = "COUNT")]
    pub(crate) client_cache_ways: Option<u32>,
    /// Writes of blocks that the client's cache holds: through or back (default: through).
    #[arg(long, value_name = "POLICY")]
    pub(crate) client_cache_write: Option<String>,
    /// Writes of other blocks: allocate or around (default: around).
    #[arg(long, value_name = "POLICY")]
    pub(crate) client_cache_write_miss: Option<String>,
    #[arg(long, value_name = "KIND", help = format!(
        "Cooperation of the clients' caches: {} (default: base)",
        Cooperation::WORDS.join(", "),
    ))]
    pub(crate) cooperation: Option<String>,
    /// Share of each client's cache that servers manage, in percent (default: 80).
    #[arg(long, value_name = "PERCENT")]
    pub(crate) global_share: Option<u32>,
    /// Moves of an unused last copy (default: 2).
    #[arg(long, value_name = "COUNT")]
    pub(crate) chances: Option<u32>,
}

impl ClientCacheArguments {
    /// Keys of a scenario with the values that the arguments give them.
    pub(crate) fn settings(&self) -> [(&'static str, Option<String>); 8] {
        let text = |number: Option<u32>| number.map(|it| it.to_string());
        [
            ("client-cache", text(self.client_cache)),
            ("client-cache-block", self.client_cache_block.map(|it| it.to_string())),
            ("client-cache-ways", text(self.client_cache_ways)),
            ("client-cache-write", self.client_cache_write.clone()),
            ("client-cache-write-miss", self.client_cache_write_miss.clone()),
            ("cooperation", self.cooperation.clone()),
            ("global-share", text(self.global_share)),
            ("chances", text(self.chances)),
        ]
    }
}
