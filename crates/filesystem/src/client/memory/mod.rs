//! Memory that a client and its servers share: buffers of the client, pages of the servers.

mod pages;
mod pool;

pub use pages::Page;
pub use pool::{Buffer, BufferPart, BufferPool};
