//! Memory that a client and its servers share: buffers of the client, pages of the servers.

mod pages;
mod pool;
mod withdrawn;

pub use pages::Page;
pub use pool::{Buffer, BufferPart, BufferPool};
pub(crate) use withdrawn::WithdrawnOnDrop;
