//! Measures the time in which a catalogue on a disk makes, lists and removes many files.
//!
//! `cargo run --release -p client --example many_files -- INSTANCE COUNT [AT_ONCE]`
//!
//! INSTANCE is the directory of a running instance on this machine; COUNT files without a byte are
//! made in a new directory of it, AT_ONCE (64) at a time.

use filesystem::{Client, Costs, Fault};
use policy::Stripe;
use std::time::Instant;
use wire::Made;
use world::Address;
use world_real::{NodeConfig, RealWorld, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [instance, count, ..] = &words[..] else {
        return Err("usage: many_files INSTANCE COUNT [AT_ONCE]".into());
    };
    let count: usize = count.parse()?;
    let at_once: usize = words.get(2).map_or(Ok(64), |word| word.parse())?;
    let file = client::Instance::at(instance).read()?;
    let addresses: Vec<Address> =
        file.servers.iter().map(|server| Address(server.address.clone())).collect();
    run(async {
        let world = RealWorld::open(NodeConfig::default())
            .map_err(|error| Fault::TransferFailed { cause: error.to_string() })?;
        let client = Client::connect(world, &addresses, Costs::FREE).await?;
        let directory = format!("many-{count}");
        client.make_directory(&directory, Made::default()).await?;
        let names: Vec<String> = (0..count).map(|i| format!("{directory}/{i:07}")).collect();
        let stripe = Stripe::round_robin(1 << 20, 1, 1);
        let timed = |what: &str, begun: Instant| {
            let seconds = begun.elapsed().as_secs_f64();
            println!("{what}: {count} in {seconds:.2} s, {:.0} a second", count as f64 / seconds);
        };
        let begun = Instant::now();
        for some in names.chunks(at_once) {
            let made = some.iter().map(async |name| {
                let file = client.create(name, 0, stripe.clone()).await?;
                client.close(&file).await
            });
            futures_util::future::try_join_all(made).await?;
        }
        timed("made", begun);
        let begun = Instant::now();
        let listed = client.list(&directory).await?;
        timed("listed", begun);
        assert_eq!(listed.len(), count);
        let begun = Instant::now();
        for some in names.chunks(at_once) {
            let removed = some.iter().map(|name| client.remove(name));
            futures_util::future::try_join_all(removed).await?;
        }
        timed("removed", begun);
        Ok::<(), Fault>(())
    })?;
    Ok(())
}
