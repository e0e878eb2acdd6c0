//! Proves: a terabyte moves through a disk-directed simulation in memory that does not grow with
//! the file, in pieces of 8 bytes too.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use filesystem::collective::Strategy;
use policy::Pattern;
use support::{Cluster, Shape, create, transfer};
use units::{Duration, GIB, MIB};
use world::Payloads;
use world::payload::Phantom;
use world_simulated::DiskKind;
use world_simulated::models::ideal::IdealSpec;

/// Maximum extra memory for a file 1024 times as large: a list of its 65,536 blocks, of 8 bytes
/// each, for each of 8 clients.
const GROWTH_MAX_KIB: u64 = 4096;

/// Returns the peak memory of this process so far, in KiB.
#[allow(clippy::disallowed_methods, reason = "only the host knows what the test occupies")]
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

fn move_phantoms(how: Strategy, name: &str, record_bytes: u64, file_bytes: u64) {
    let cluster = Cluster::<Phantom>::new(Shape {
        servers: 4,
        disks_per_server: 4,
        clients: 8,
        block_bytes: 16 * MIB,
        mechanism: DiskKind::of(IdealSpec {
            latency: Duration::from_us(100),
            bytes_per_second: 4 * GIB,
        }),
        bound: Duration::from_seconds(1e8),
        ..Shape::default()
    });
    let pattern: Pattern = name.parse().unwrap();
    let access = pattern.access(8, record_bytes, file_bytes).unwrap();
    cluster.run(0..8, |start| {
        let (access, direction) = (access.clone(), pattern.direction);
        async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", file_bytes, start.shape.stripe()).await.unwrap();
            let memory = start.world.memory(access.memory_bytes(group.rank()));
            let memory = group.share(memory).await.unwrap();
            let transfer = transfer(direction, &file, &access, how);
            group.transfer(&transfer, &memory).await.unwrap();
            group.leave().await;
        }
    });
}

// One test, so that nothing else runs in this process meanwhile.
#[test]
fn a_terabyte_needs_no_more_memory_than_a_gigabyte() {
    let (directed, alone) = (Strategy::DiskDirected, Strategy::Noncollective);
    let cases = [(directed, "rc", 8), (directed, "wc", 8), (directed, "rb", MIB), (alone, "rc", 8)];
    for (how, name, record_bytes) in cases {
        move_phantoms(how, name, record_bytes, GIB);
        let before = peak_kib();
        move_phantoms(how, name, record_bytes, 1024 * GIB);
        // The system's own count of a peak is not exact, and can be slightly less later.
        let growth = peak_kib().saturating_sub(before);
        assert!(growth <= GROWTH_MAX_KIB, "{name} of 1 TiB needs {growth} KiB more than of 1 GiB");
    }
}
