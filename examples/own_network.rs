//! A network of one's own, a ring whose links carry one message at a time, compared with built-in
//! networks. 16 clients of the simulated machine of 1994 read and write a file of 2 MiB by
//! disk-directed I/O. Times are those of that machine.
//!
//! ```sh
//! cargo run --release -p simulate --example own_network
//! ```

use simulate::models::{
    BuiltNetwork, Duration, Instant, LinkSpec, NetworkShape, SwitchedNetwork, UnfitNetwork,
};
use simulate::{OwnModels, Scenario, simulate};

#[derive(Debug)]
struct RingShape;

#[derive(Debug)]
struct Ring {
    link: LinkSpec,
    /// Instant at which the link from each node to the next is free.
    free_at: Vec<Instant>,
}

impl NetworkShape for RingShape {
    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        let free_at = vec![Instant::START; nodes as usize];
        Ok(BuiltNetwork::Switched(Box::new(Ring { link, free_at })))
    }
}

impl SwitchedNetwork for Ring {
    fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        let (mut node, mut head, mut tail) = (from as usize, now, now);
        while node != to as usize {
            let start = head.max(self.free_at[node]);
            tail = start + Duration::of_transfer(bytes, self.link.bytes_per_second);
            self.free_at[node] = tail;
            head = start + self.link.hop;
            node = (node + 1) % self.free_at.len();
        }
        tail
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let models = OwnModels::default().with_network("ring", RingShape)?;
    println!("pattern {:>17}{:>17}{:>17}", "custom:ring", "torus", "crossbar");
    for pattern in ["ra", "rb", "rc", "wb"] {
        print!("{pattern:7} ");
        for network in ["custom:ring", "torus", "crossbar"] {
            let (pattern, payload) = (pattern.parse()?, "traced".parse()?);
            let (file_bytes, trials, models) = (2 << 20, 1, models.clone());
            let strategy = "disk-directed".parse()?;
            let mut scenario = Scenario {
                pattern,
                payload,
                file_bytes,
                trials,
                models,
                strategy,
                ..Scenario::default()
            };
            scenario.machine.network.name = network.parse()?;
            // The disks are fast, so that the network decides.
            scenario.machine.disk = "nvme".parse()?;
            let row = simulate(&scenario)?.results.remove(0);
            assert!(row.verified, "the simulation did not check every byte");
            print!("{:14.3} ms", row.seconds * 1e3);
        }
        println!();
    }
    Ok(())
}
