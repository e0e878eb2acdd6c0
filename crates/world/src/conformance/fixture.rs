//! Interface of a world under test.
//!
//! Invariant: a case uses only the traits of this crate and its [`Fixture`].

use crate::{Payloads, World};
use std::future::Future;

/// Source of fresh nodes of a world, with access to the contents of payloads.
pub trait Fixture {
    /// The world under test.
    type World: World;

    /// Runs `program` on `nodes` fresh nodes of one new world. Returns its output.
    ///
    /// Each node has one empty disk, `disks()[0]`, on which objects may reach beyond 8 GiB, and no
    /// records. The nodes can reach one another by their addresses, and no other nodes. When the
    /// program returns, remaining tasks are cancelled. A panic of the program passes through.
    fn run<R: 'static, F: Future<Output = R> + 'static>(
        &mut self,
        nodes: usize,
        program: impl FnOnce(Vec<Self::World>) -> F,
    ) -> R;

    /// Returns a payload of these bytes, or of as many bytes where the kind stores none.
    fn payload(bytes: &[u8]) -> PayloadOf<Self>;

    /// Returns the bytes of a payload; `None` where the kind stores none.
    fn read_back(payload: &PayloadOf<Self>) -> Option<Vec<u8>>;
}

/// Data in motion of a fixture's world.
pub type PayloadOf<F> = <<F as Fixture>::World as Payloads>::Payload;

/// Name of a case, as `capability::case`, and the function that panics unless the case holds.
pub type Case<F> = (&'static str, fn(&mut F));
