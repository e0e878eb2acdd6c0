//! Measures the cost of checksums and of direct I/O: reads and writes of one object of 1 GiB in
//! blocks of 1 MiB or so, alternating between the configurations.
//!
//! ```text
//! cargo run --release -p world-real --example disk_speed -- DIRECTORY [ROUNDS [WAYS [KIB]]]
//! ```

use std::path::Path;
use std::time::{Duration, Instant};
use units::{FileId, GIB};
use world::{Disk, Disks, Payload};
use world_real::{DiskConfig, DiskOptions, NodeConfig, RealDisk, RealPayload, RealWorld, run};

const OBJECT: FileId = FileId(1);

/// Times of one pass over the object: wall-clock and processor time.
struct Times {
    write: Taken,
    sync: Taken,
    read: Taken,
}

/// Wall-clock and processor time.
#[derive(Clone, Copy)]
struct Taken {
    elapsed: Duration,
    processors: Duration,
}

impl Taken {
    /// Measures `work`.
    async fn by(work: impl Future<Output = ()>) -> Self {
        let (begin, processors) = (Instant::now(), processor_time());
        work.await;
        Self { elapsed: begin.elapsed(), processors: processor_time() - processors }
    }
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

async fn pass(disk: &RealDisk, block: &RealPayload) -> Times {
    let block_bytes = block.length();
    let write = async {
        for offset in (0..GIB).step_by(block_bytes as usize) {
            disk.write(OBJECT, offset, block.clone()).await.expect("there is room");
        }
    };
    let read = async {
        for offset in (0..GIB).step_by(block_bytes as usize) {
            let payload = disk.read(OBJECT, offset, block_bytes).await.expect("it is there");
            assert_eq!(payload.length(), block_bytes);
        }
    };
    let sync = async { disk.sync(OBJECT).await.expect("it is stored") };
    Times {
        write: Taken::by(write).await,
        sync: Taken::by(sync).await,
        read: Taken::by(read).await,
    }
}

fn open(directory: &Path, name: &str, options: DiskOptions) -> RealWorld {
    let home = directory.join(name);
    std::fs::create_dir_all(&home).expect("a place to write to");
    let disks = vec![DiskConfig { options, ..DiskConfig::at(home) }];
    RealWorld::open(NodeConfig { disks, ..NodeConfig::default() })
        .expect("the directory can be a disk")
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Returns the median of a part of `own`, and of its ratios to that of `base`, round by round: a
/// disturbance affects neighbouring measurements alike.
fn compare(own: &[Times], base: &[Times], part: fn(&Times) -> Taken) -> String {
    let us = |of: fn(Taken) -> Duration| {
        median(own.iter().map(|times| of(part(times)).as_secs_f64() * 1e6 / 1024.0).collect())
    };
    let ratio = |of: fn(Taken) -> Duration| {
        let pairs = own.iter().zip(base).map(|(own, base)| (of(part(own)), of(part(base))));
        median(pairs.map(|(own, base)| own.as_secs_f64() / base.as_secs_f64()).collect())
    };
    let elapsed = |taken: Taken| taken.elapsed;
    let processors = |taken: Taken| taken.processors;
    format!(
        "{:6.0} {:5.2}x {:6.0} {:5.2}x",
        us(elapsed),
        ratio(elapsed),
        us(processors),
        ratio(processors)
    )
}

fn main() {
    let mut words = std::env::args().skip(1);
    let directory = words.next().expect("name a directory");
    let rounds: usize = words.next().map_or(7, |word| word.parse().expect("a number of rounds"));
    let count: usize = words.next().map_or(4, |word| word.parse().expect("a number of ways"));
    let kib: u64 = words.next().map_or(1024, |word| word.parse().expect("KiB of a block"));
    let plain = DiskOptions { direct: false, checksums: false, preallocate: false };
    let ways = [
        ("plain", plain),
        ("checksums", DiskOptions { checksums: true, ..plain }),
        ("direct", DiskOptions { direct: true, ..plain }),
        ("direct, checksums", DiskOptions { direct: true, checksums: true, ..plain }),
    ];
    let ways = &ways[..count.min(4)];
    run(async {
        let open = |(name, options): &(&str, _)| open(directory.as_ref(), name, *options);
        let worlds: Vec<RealWorld> = ways.iter().map(open).collect();
        let block =
            worlds[0].disks()[0].read(FileId(2), 0, kib << 10).await.expect("zeros at least");
        let mut times: Vec<Vec<Times>> = ways.iter().map(|_| Vec::new()).collect();
        for round in 0..=rounds {
            for way in 0..ways.len() {
                // Each round begins with another configuration: each one's leftovers disturb the
                // next.
                let way = (way + round) % ways.len();
                let taken = pass(&worlds[way].disks()[0], &block).await;
                // The first round creates the files and warms the cache.
                if round > 0 {
                    times[way].push(taken);
                }
            }
        }
        println!("for 1 MiB: us by the clock, times `plain`; us of the processors, times `plain`");
        for ((name, _), own) in ways.iter().zip(&times) {
            let of = |part: fn(&Times) -> Taken| compare(own, &times[0], part);
            let (write, sync, read) = (of(|t| t.write), of(|t| t.sync), of(|t| t.read));
            println!("{name:18} write {write}   sync {sync}   read {read}");
        }
        for world in &worlds {
            world.disks()[0].remove(OBJECT).await.expect("it can be removed");
        }
    });
}
