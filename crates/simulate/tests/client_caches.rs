//! Proves: transfers by caching through caches at clients put every byte in its place, whatever the
//! cooperation. Without such caches nothing changes. Workloads repeat, read together by
//! every strategy, and refuse machines without
//! caches at clients.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use interface::{ClientCacheSpec, Cooperation, Strategy};
use simulate::{
    ColumnReads, ReadAhead, Scenario, Setting, SimulationPlan, Workload, WorkloadTrial,
    simulate_trial, simulate_workload,
};

fn plan(options: &[(&str, &str)]) -> Result<Vec<Scenario>, interface::UserError> {
    let options = options.iter().map(|(key, value)| Setting::option(key, value)).collect();
    SimulationPlan::of_options(options).map(|plan| plan.scenarios())
}

/// A small machine with traced data: a byte in a wrong place is an error.
const SMALL: [(&str, &str); 7] = [
    ("size", "256KiB"),
    ("clients", "4"),
    ("servers", "2"),
    ("trials", "1"),
    ("payload", "traced"),
    ("client-cache", "8"),
    ("client-cache-block", "4KiB"),
];

#[test]
fn every_byte_is_in_its_place() {
    for cooperation in Cooperation::WORDS {
        for write in ["through", "back"] {
            let more = [("cooperation", *cooperation), ("client-cache-write", write)];
            for scenario in plan(&[&SMALL[..], &more[..]].concat()).unwrap() {
                let caching = Scenario { strategy: Strategy::Caching, ..scenario };
                for pattern in ["ra", "rb", "wc"] {
                    let pattern = pattern.parse().unwrap();
                    let scenario = Scenario { pattern, ..caching.clone() };
                    assert!(simulate_trial(&scenario, 0).unwrap().verified);
                }
            }
        }
    }
}

#[test]
fn caches_are_off_unless_they_have_blocks() {
    let scenario =
        Scenario { strategy: Strategy::Caching, file_bytes: 1 << 20, ..Scenario::default() };
    let plain = simulate_trial(&scenario, 0).unwrap();
    let mut other = scenario.clone();
    other.client_cache.cooperation = Cooperation::NChance;
    assert_eq!(simulate_trial(&other, 0).unwrap().digest, plain.digest);
    other.client_cache.lines = 8;
    assert_ne!(simulate_trial(&other, 0).unwrap().digest, plain.digest);
}

#[test]
fn impossible_caches_are_refused() {
    for wrong in [
        ("client-cache-ways", "3"),
        ("client-cache-block", "3KiB"),
        ("client-cache-block", "16KiB"),
        ("cooperation", "greedy"),
        ("global-share", "100"),
    ] {
        let error = plan(&[&SMALL[..], &[wrong]].concat()).unwrap_err();
        assert_eq!(error.code, interface::ExitCode::Usage, "{wrong:?}: {error}");
    }
}

#[test]
fn workloads_repeat() {
    let workload =
        Workload::Random { warm_up: 100, measured: 200, blocks_max: 4, read_percent: 80 };
    let mut scenario = Scenario {
        clients: 4,
        servers: 2,
        file_bytes: 1 << 20,
        read_ahead: ReadAhead::Nothing,
        client_cache: ClientCacheSpec { lines: 16, ..ClientCacheSpec::default() },
        ..Scenario::default()
    };
    let first = simulate_workload(&scenario, workload, 0).unwrap();
    assert_eq!(simulate_workload(&scenario, workload, 0).unwrap(), first);
    assert_ne!(simulate_workload(&scenario, workload, 1).unwrap().digest, first.digest);
    assert!(first.disk_reads > 0 && first.hits > 0 && first.from_clients == 0, "{first:?}");
    let product = Workload::MatrixProduct { order: 12, columns: ColumnReads::Staggered };
    let product = simulate_workload(&scenario, product, 0).unwrap();
    // Two matrices of 1152 bytes in blocks of 8 KiB.
    assert_eq!(product.disk_reads, 1, "{product:?}");
    scenario.client_cache.lines = 0;
    assert!(simulate_workload(&scenario, workload, 0).is_err());
}

/// Fewer clients have a row in the last turn than take part in the reads of columns.
#[test]
fn columns_are_read_together_by_every_strategy() {
    let mut scenario = Scenario {
        clients: 5,
        servers: 2,
        // A row is a block.
        block_bytes: 256,
        read_ahead: ReadAhead::Nothing,
        client_cache: ClientCacheSpec { lines: 40, ..ClientCacheSpec::default() },
        ..Scenario::default()
    };
    scenario.machine.cache_blocks_per_client_and_disk = 16;
    let run = |columns| {
        let product = Workload::MatrixProduct { order: 32, columns };
        let trial = simulate_workload(&scenario, product, 0).unwrap();
        assert_eq!(simulate_workload(&scenario, product, 0).unwrap(), trial, "{columns:?}");
        // Both matrices fit the caches of the servers.
        assert_eq!(trial.disk_reads, 64, "{columns:?}: {trial:?}");
        trial
    };
    let aligned = run(ColumnReads::Aligned);
    let [caching, barrier, grouping] =
        [Strategy::Caching, Strategy::GlobalBarrier, Strategy::NodeGrouping]
            .map(|strategy| run(ColumnReads::Collective(strategy)));
    // In the last turn, clients without a row read columns too: 3 clients, 32 columns of 32.
    for trial in [caching, barrier, grouping] {
        let reads = |trial: &WorkloadTrial| trial.hits + trial.from_servers;
        assert_eq!(reads(&trial), reads(&aligned) + 3 * 32 * 32);
        assert_eq!(trial.from_servers, aligned.from_servers);
    }
    // Two-phase I/O gets each block of the second matrix once, at one client.
    let two_phase = run(ColumnReads::Collective(Strategy::TwoPhase));
    assert!(two_phase.from_servers < aligned.from_servers / 2, "{two_phase:?} {aligned:?}");
    // Servers that direct a transfer use no caches for it.
    let columns = ColumnReads::Collective(Strategy::DiskDirected);
    let product = Workload::MatrixProduct { order: 32, columns };
    let directed = simulate_workload(&scenario, product, 0).unwrap();
    assert_eq!((directed.hits, directed.from_servers, directed.disk_reads), (0, 32, 32));
}
