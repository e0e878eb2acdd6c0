//! Beginning to use a cache.

use super::cache::{CacheCounts, LineCache};
use super::to_its_end::run_to_its_end;
use crate::client::state::Client;
use policy::ClientCacheSpec;
use std::rc::Rc;
use units::ServerId;
use wire::{CacheRegistration, CacheRequest, Fault, LINE_BYTES_MAX};
use world::World;

impl<W: World> Client<W> {
    /// Begins to use a cache for the reads and writes of [`Client::read_cached`] and
    /// [`Client::write_cached`]. `block_bytes` is the size of its blocks if `spec` has none. All
    /// clients that do so use blocks of the same size and the same cooperation.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when the parameters make no cache, this client has one already, or
    /// other clients use other parameters. Faults of the servers.
    pub async fn enable_cache(
        &self,
        spec: &ClientCacheSpec,
        block_bytes: u64,
    ) -> Result<(), Fault> {
        let bad = |cause: String| Err(Fault::BadRequest { cause });
        if let Err(error) = spec.validate() {
            return bad(error.to_string());
        }
        let line_bytes = if spec.line_bytes == 0 { block_bytes } else { spec.line_bytes };
        if line_bytes == 0 || line_bytes > LINE_BYTES_MAX {
            return bad(format!("a block of a client's cache cannot have {line_bytes} bytes"));
        }
        if self.0.has_line_cache() {
            return bad("this client has a cache already".to_owned());
        }
        let ticket = self.world().random();
        let cache = Rc::new(LineCache::new(*spec, line_bytes, ticket));
        self.0.set_line_cache(Some(cache));
        let servers = self.servers();
        let registration = CacheRegistration {
            line_bytes,
            cooperation: spec.cooperation,
            chances: spec.chances,
            global_lines: spec.global_lines() / servers.max(1),
            address: self.world().address().0,
            ticket,
        };
        // A caller that gives up must not leave a cache of which only some servers know.
        let client = self.clone();
        run_to_its_end(self, async move { client.register(registration).await }).await
    }

    /// Registers the cache at all servers. If one refuses it, withdraws it from all.
    async fn register(&self, registration: CacheRegistration) -> Result<(), Fault> {
        let servers = || (0..self.servers()).map(ServerId);
        let register = CacheRequest::Register(registration);
        let registered = self.call_each_server(servers(), register).await;
        if registered.is_err() {
            let withdraw = CacheRequest::Withdraw;
            // A server that has left has forgotten the cache.
            let _ = self.call_each_server(servers(), withdraw).await;
            self.0.set_line_cache(None);
        }
        registered.map(|_| ())
    }

    /// Returns the counts of this client's cache; none without a cache.
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.0.line_cache().map(|cache| *cache.counts.borrow())
    }

    /// True if this client uses a cache.
    pub(crate) fn has_cache(&self) -> bool {
        self.0.has_line_cache()
    }

    pub(super) fn line_cache(&self) -> Result<Rc<LineCache<W>>, Fault> {
        self.0
            .line_cache()
            .ok_or_else(|| Fault::BadRequest { cause: "this client has no cache".to_owned() })
    }
}
