//! Proves: the machine `cluster` is what its page says, runs with 64 and with 512 nodes, puts every
//! byte in its place, and exceeds no limit of its disks, links, bisection and processors.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use interface::Strategy;
use simulate::{Machine, MachineName, Scenario, Setting, SimulationPlan, simulate_trial};
use units::{GIB, MIB};

const PAGE: &str = include_str!("../../../docs/clusters.md");
const EXAMPLE: &str = include_str!("../../../docs/machines/cluster.toml");

/// Bytes a second of a link.
const LINK: f64 = 12.5e9;
/// Bytes a second of long reads, and of long writes, of a disk.
const DISK_READ: f64 = 6.5e9;
const DISK_WRITE: f64 = 3.41e9;

/// Scenarios of the example with these changes.
fn scenarios(changes: &[(&str, &str)]) -> Vec<Scenario> {
    let settings = changes.iter().map(|(key, value)| Setting::option(key, value)).collect();
    SimulationPlan::of_text("cluster.toml", EXAMPLE, settings).unwrap().scenarios()
}

/// The example with these changes, for one pattern by one strategy.
fn scenario(pattern: &str, strategy: Strategy, changes: &[(&str, &str)]) -> Scenario {
    let strategy = strategy.to_string();
    let one = [("pattern", pattern), ("strategy", &strategy)];
    scenarios(&[&one[..], changes].concat()).remove(0)
}

/// Bytes a second of a scenario.
fn rate(scenario: &Scenario) -> f64 {
    let trial = simulate_trial(scenario, 0).unwrap();
    scenario.file_bytes as f64 / trial.seconds
}

/// Remote DMA: data gets to its place without a processor.
const REMOTE_DMA: [(&str, &str); 3] =
    [("receive-ps-per-byte", "0"), ("per-50-words-ns", "0"), ("message-ps-per-byte", "0")];

#[test]
fn the_page_has_every_constant() {
    let machine = Machine { preset: MachineName::Tr94, ..Machine::of(MachineName::Cluster) };
    let changes = machine.changes();
    assert!(changes.len() > 20, "{changes:?}");
    for change in changes {
        let (key, value) = change.split_once(" = ").unwrap();
        let head = format!("| `{key}` | ");
        let row = PAGE.lines().find(|line| line.starts_with(&head));
        let row = row.unwrap_or_else(|| panic!("docs/clusters.md lacks `{change}`"));
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, stated, source] = cells[..] else { panic!("{row}: three cells") };
        assert_eq!(stated, format!("`{value}`"), "{key} in docs/clusters.md");
        assert!(source.len() > 10, "{key} needs a source");
    }
}

#[test]
fn the_example_has_64_to_512_nodes() {
    for (servers, nodes) in [("8", 64), ("16", 128), ("32", 256), ("64", 512)] {
        for scenario in scenarios(&[("servers", servers)]) {
            assert_eq!(scenario.machine, Machine::of(MachineName::Cluster));
            assert_eq!(scenario.servers + scenario.clients, nodes);
            assert!(scenario.check().is_ok());
        }
    }
}

#[test]
fn blocks_of_a_mebibyte_are_the_default() {
    // Proves: the machine has blocks of 1 MiB wherever the option stands, unless another one says
    // otherwise. With them directed transfers are several times as fast as with those of 1994, and
    // writes are faster than those by which clients move the data. Reads are, with more buffers.
    let plan = |options: &[(&str, &str)]| {
        let options = options.iter().map(|(key, value)| Setting::option(key, value)).collect();
        SimulationPlan::of_options(options).unwrap().scenarios()
    };
    let machine = ("machine", "cluster");
    assert_eq!(plan(&[machine])[0].block_bytes, MIB);
    for options in [[machine, ("block", "64KiB")], [("block", "64KiB"), machine]] {
        assert_eq!(plan(&options)[0].block_bytes, MIB / 16);
    }
    for other in ["tr94", "tocs97", "ideal-disks", "this-machine"] {
        assert_eq!(plan(&[("machine", other)])[0].block_bytes, 8192, "{other}");
    }
    let of = |pattern: &str, strategy: Strategy, changes: &[(&str, &str)]| {
        let strategy = strategy.to_string();
        let case = [("pattern", pattern), ("strategy", &strategy), ("size", "64MiB")];
        let nodes = [machine, ("clients", "8"), ("servers", "2")];
        rate(&plan(&[&case[..], &nodes[..], changes].concat())[0])
    };
    let directed = |pattern, changes: &[(&str, &str)]| of(pattern, Strategy::DiskDirected, changes);
    for pattern in ["rbc", "wbc"] {
        let (usual, old) = (directed(pattern, &[]), directed(pattern, &[("block", "8KiB")]));
        assert!(usual > 5.0 * old, "{pattern}: {usual} {old}");
        assert!(usual > 2.0 * of(pattern, Strategy::Caching, &[]), "{pattern}");
    }
    assert!(directed("wbc", &[]) > 1.5 * of("wbc", Strategy::TwoPhase, &[]));
    let buffers = [("buffers-per-disk", "8")];
    assert!(directed("rbc", &buffers) > 1.2 * of("rbc", Strategy::TwoPhase, &buffers));
}

#[test]
fn collective_transfers_are_bound_by_the_sum_of_their_servers() {
    // A file in proportion to the servers, whose blocks go to the clients in turn.
    for (servers, count, size) in [("8", 8.0, "1GiB"), ("64", 64.0, "8GiB")] {
        let changes = [("servers", servers), ("size", size), ("record", "1MiB")];
        let read = rate(&scenario("rc", Strategy::DiskDirected, &changes));
        // A block occupies each of two buffers of a server for the sum of its steps: the disk at
        // its rate, the server's processor, the link, the client's processor, twice the ends.
        let block = MIB as f64;
        let steps = [
            block / DISK_READ,
            21e-6,
            6.8e-6 + block * 200e-12,
            block / LINK,
            6.8e-6 + block * 300e-12,
            2.0 * 8e-6,
        ];
        let bound = count * 2.0 * block / steps.iter().sum::<f64>();
        assert!(bound < count * DISK_READ);
        assert!(read < bound && read > 0.7 * bound, "{servers} servers: {read} of {bound}");
        let written = rate(&scenario("wc", Strategy::DiskDirected, &changes));
        assert!(written < count * DISK_WRITE, "{servers} servers: {written}");
        assert!(written > count * 1e9, "{servers} servers: {written}");
    }
}

#[test]
fn every_strategy_runs_on_512_nodes() {
    for scenario in scenarios(&[("servers", "64"), ("size", "1GiB")]) {
        let rate = rate(&scenario);
        let clients = f64::from(scenario.clients);
        assert!(rate > 1e9 && rate < clients * LINK, "{}: {rate}", scenario.strategy);
    }
}

#[test]
fn one_server_with_remote_dma_is_as_fast_as_its_disk() {
    let changes = [&REMOTE_DMA[..], &[("servers", "1"), ("size", "1GiB")]].concat();
    let read = rate(&scenario("rb", Strategy::DiskDirected, &changes));
    assert!(read < DISK_READ && read > 0.8 * DISK_READ, "{read}");
    // Eight disks are faster than the link of their server.
    let many = [&changes[..], &[("disks-per-server", "8"), ("block-ns", "0")]].concat();
    let read = rate(&scenario("rb", Strategy::DiskDirected, &many));
    assert!(read < LINK && read > 0.8 * LINK, "{read}");
}

#[test]
fn fewer_spines_are_a_bottleneck() {
    // Servers fill four leaves, and their clients others: all data passes spines. Each leaf of 16
    // servers has `spines` links up.
    let changes =
        [("servers", "64"), ("size", "4GiB"), ("disks-per-server", "2"), ("block-ns", "0")];
    let with = |spines| {
        let more = [&changes[..], &REMOTE_DMA[..], &[("fat-tree-spines", spines)]].concat();
        rate(&scenario("rb", Strategy::DiskDirected, &more))
    };
    let (full, quarter) = (with("16"), with("4"));
    assert!(quarter < 4.0 * 4.0 * LINK, "{quarter}: four leaves with four links each");
    assert!(quarter > 0.5 * 4.0 * 4.0 * LINK, "{quarter}");
    assert!(full > 1.5 * quarter, "{full} {quarter}");
}

#[test]
fn every_byte_is_in_its_place() {
    let changes = [("servers", "8"), ("size", "64MiB"), ("record", "8KiB"), ("payload", "traced")];
    for pattern in ["rb", "rcc", "wc"] {
        for strategy in [Strategy::DiskDirected, Strategy::TwoPhase, Strategy::Caching] {
            let scenario = scenario(pattern, strategy, &changes);
            assert!(simulate_trial(&scenario, 0).unwrap().verified, "{pattern} {strategy}");
        }
    }
}

#[test]
fn results_repeat() {
    let scenario = scenario("rb", Strategy::TwoPhase, &[("size", "1GiB")]);
    assert_eq!(scenario.file_bytes, GIB);
    let digest = || simulate_trial(&scenario, 0).unwrap().digest;
    assert_eq!(digest(), digest());
}
