//! List of all cases, and the function that runs them.

use super::{
    Case, Fixture, clock, disk, memory, network, one_sided, one_sided_limits, processor,
    randomness, records, scope, tasks, wakers,
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
