//! A replacement policy of one's own, first in, first out: the block that was inserted first is
//! evicted first. This program is the command `unisono` with that policy at its servers too.
//!
//! ```sh
//! cargo run --release -p cli --example own_policy -- sim --replacement custom:fifo \
//!     --strategy caching --pattern ra,rb --size 2MiB --trials 1 --payload traced
//! ```

use interface::ReplacementPolicies;
use interface::ReplacementPolicy;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks by their arrival.
#[derive(Debug, Default)]
struct Fifo {
    arrivals: BTreeSet<(u64, u64)>,
    arrival_of: BTreeMap<u64, u64>,
    next: u64,
}

impl ReplacementPolicy for Fifo {
    fn used(&mut self, block: u64, _to_its_end: bool) {
        if !self.arrival_of.contains_key(&block) {
            self.arrival_of.insert(block, self.next);
            self.arrivals.insert((self.next, block));
            self.next += 1;
        }
    }

    fn left(&mut self, block: u64) {
        if let Some(arrival) = self.arrival_of.remove(&block) {
            self.arrivals.remove(&(arrival, block));
        }
    }

    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(self.arrivals.iter().map(|(_, block)| *block))
    }

    fn count(&self) -> usize {
        self.arrivals.len()
    }
}

fn main() -> std::process::ExitCode {
    let name = "fifo".parse().expect("it is a name");
    let policies = ReplacementPolicies::default().with(name, || Box::<Fifo>::default());
    cli::main_with(policies.expect("it names the blocks that are there, each once"))
}
