//! A program's connection to an instance, and the buffers of its pool.

use crate::instance::Instance;
use crate::session::connect_from;
use filesystem::{Buffer, BufferPool, Client, Fault};
use futures_util::future::{Either, select};
use interface::{ExitCode, UserError};
use std::convert::Infallible;
use std::rc::Rc;
use world::Scope;
use world_real::{EventLoop, RealWorld};

/// One program's connection to an instance. Clones, files, buffers and pages are handles to the
/// same one, on one thread. What was begun and not waited for is given up with the last of them.
#[derive(Clone)]
pub struct Library(pub(super) Rc<Shared>);

pub(super) struct Shared {
    pub(super) instance: Instance,
    /// What was begun and not waited for.
    pub(super) operations: Scope<RealWorld, Infallible>,
    pub(super) pool: BufferPool<RealWorld>,
    pub(super) client: Client<RealWorld>,
    /// Last, so that all that lives on it is gone before.
    pub(super) event_loop: EventLoop,
}

impl Drop for Shared {
    /// Has the catalogue know the sizes of files that were not closed.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // Where this fails, whoever opens them next finds it out.
            let _ = self.event_loop.run(self.client.record_sizes());
        }
    }
}

/// Some bytes of the library's pool, which servers read and write without a copy; given back when
/// dropped.
pub struct LibraryBuffer {
    pub(super) buffer: Buffer<RealWorld>,
}

impl LibraryBuffer {
    /// Its size in bytes.
    pub fn length(&self) -> usize {
        self.buffer.length() as usize
    }

    /// Calls `look` with its bytes. Panics when `look` uses the library.
    pub fn with_bytes<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        let (memory, range) = self.buffer.place();
        look(&memory.bytes()[range.start as usize..range.end as usize])
    }

    /// Calls `change` with its bytes. Panics when `change` uses the library.
    pub fn with_bytes_mut<R>(&mut self, change: impl FnOnce(&mut [u8]) -> R) -> R {
        let (memory, range) = self.buffer.place();
        memory.with_bytes_mut(|all| change(&mut all[range.start as usize..range.end as usize]))
    }
}

impl Library {
    /// Connects to all servers of an instance, with a pool of `pool_bytes` for buffers and for what
    /// is under way.
    ///
    /// # Errors
    /// When there is no instance, or a server cannot be reached.
    pub fn connect(instance: Instance, pool_bytes: u64) -> Result<Self, UserError> {
        let file = instance.read()?;
        let node = instance.client_node(&file.servers)?;
        let event_loop = EventLoop::new();
        let what = format!("cannot use the instance {}", instance.directory().display());
        let connected = event_loop.run(async {
            let world = RealWorld::open(node)
                .map_err(|error| Fault::TransferFailed { cause: error.to_string() })?;
            let client = connect_from(world.clone(), &file.servers).await?;
            let pool = BufferPool::new(&client, pool_bytes).await?;
            Ok((Scope::new(world), pool, client))
        });
        let connected = connected.map_err(|fault| UserError::of_fault(&what, &fault));
        let (operations, pool, client) = connected?;
        Ok(Self(Rc::new(Shared { instance, operations, pool, client, event_loop })))
    }

    /// Removes a file or an empty directory.
    pub fn remove(&self, name: &str) -> Result<(), UserError> {
        self.run(&format!("cannot remove {name:?}"), async |client| client.remove(name).await)
    }

    /// A buffer of `bytes` bytes, with unspecified contents. Waits for what was begun when that may
    /// make room.
    ///
    /// # Errors
    /// When the pool has no room for it and nothing is under way that could make some.
    pub fn buffer(&self, bytes: u64) -> Result<LibraryBuffer, UserError> {
        let (pool, operations) = (&self.0.pool, &self.0.operations);
        let taken = match pool.take(bytes) {
            Some(buffer) => Some(buffer),
            None => self.0.event_loop.run(async {
                let all_ended = std::pin::pin!(operations.finished());
                match select(std::pin::pin!(pool.wait_for(bytes)), all_ended).await {
                    Either::Left((buffer, _)) => Some(buffer),
                    Either::Right(_) => pool.take(bytes),
                }
            }),
        };
        let none = || {
            UserError::new(
                ExitCode::Failed,
                format!("there is no buffer of {bytes} bytes"),
                format!("the library's pool has {} bytes, most in use", pool.bytes()),
                "drop buffers that are no longer needed, or connect with a larger pool",
            )
        };
        taken.map(|buffer| LibraryBuffer { buffer }).ok_or_else(none)
    }

    /// Size of its pool in bytes.
    pub fn pool_bytes(&self) -> u64 {
        self.0.pool.bytes()
    }

    /// Lets what was begun go on, as far as it can without waiting.
    pub fn progress(&self) {
        self.0.event_loop.turn();
    }

    /// Acts as a client until it is done; a fault is one of doing `what`.
    pub(super) fn run<R>(
        &self,
        what: &str,
        act: impl AsyncFnOnce(&Client<RealWorld>) -> Result<R, Fault>,
    ) -> Result<R, UserError> {
        let acted = self.0.event_loop.run(act(&self.0.client));
        acted.map_err(|fault| UserError::of_fault(what, &fault))
    }
}
