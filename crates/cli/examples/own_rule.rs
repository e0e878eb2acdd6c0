//! The command `unisono` with one more replacement policy: the block that came first leaves first,
//! however often it is used.
//!
//! ```text
//! cargo build --release -p cli --example own_rule
//! target/release/examples/own_rule start
//! target/release/examples/own_rule layout set / --replacement custom:fifo
//! target/release/examples/own_rule sim --strategy caching --replacement custom:fifo
//! ```

use interface::Rule;
use interface::Rules;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks by their arrival.
#[derive(Debug, Default)]
struct Fifo {
    arrivals: BTreeSet<(u64, u64)>,
    arrival_of: BTreeMap<u64, u64>,
    next: u64,
}

impl Rule for Fifo {
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
    let rules = Rules::default().with(name, || Box::<Fifo>::default());
    cli::main_with(rules.expect("it names the blocks that are there, each once"))
}
