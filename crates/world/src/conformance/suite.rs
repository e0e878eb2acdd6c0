//! The interface of a world under test, and the list of all cases.
//!
//! Invariant: a case uses only the traits of this crate and its [`Fixture`].

use super::{
    clock, disk, memory, network, one_sided, one_sided_limits, processor, randomness, records,
    scope, tasks, wakers,
};
use crate::{Payloads, World};
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// Prefix of [`module_path`] before the name of each file of cases.
const MODULE: &str = "world::conformance::";

/// Returns all cases, one capability after the other.
pub fn cases<F: Fixture>() -> Vec<Case<F>> {
    let cases = [
        clock::cases::<F>(),
        tasks::cases::<F>(),
        scope::cases::<F>(),
        wakers::cases::<F>(),
        processor::cases::<F>(),
        randomness::cases::<F>(),
        memory::cases::<F>(),
        disk::cases::<F>(),
        records::cases::<F>(),
        network::cases::<F>(),
        one_sided::cases::<F>(),
        one_sided_limits::cases::<F>(),
    ]
    .concat();
    cases.into_iter().map(|(name, case)| (name.trim_start_matches(MODULE), case)).collect()
}

/// Runs all cases. Panics at the first that fails, with its name.
pub fn run_all<F: Fixture>(fixture: &mut F) {
    for (name, case) in cases::<F>() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(fixture))) {
            panic!("conformance case {name}: {}", panic_message(panic.as_ref()));
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}

#[cfg(test)]
mod tests {
    //! Proves: a failing case is named, for a panic with a fixed and with a composed message.
    use super::*;

    #[test]
    fn panics_are_quoted() {
        let quoted = |panic: Box<dyn Any + Send>| panic_message(panic.as_ref()).to_owned();
        assert_eq!(quoted(Box::new("fixed")), "fixed");
        assert_eq!(quoted(Box::new(String::from("composed"))), "composed");
        assert_eq!(quoted(Box::new(7)), "panicked");
    }
}
