//! Measures the number of extents of eight objects that were written in turns, a block of 1 MiB of
//! each, and the time to read them one after another from the device: through the page cache, which
//! delays allocation, and by direct I/O, with preallocation and without.
//!
//! ```text
//! cargo run --release -p world-real --example disk_fragments -- DIRECTORY [ROUNDS]
//! ```

use rustix::fs::Advice;
use std::path::Path;
use std::time::{Duration, Instant};
use units::{FileId, MIB};
use world::{Disk, Disks};
use world_real::{DiskConfig, DiskOptions, NodeConfig, RealDisk, RealPayload, RealWorld, run};

const OBJECTS: u64 = 8;
const BLOCKS: u64 = 128;

/// Returns the number of extents of the objects; `None` if the system does not tell.
async fn pieces(disk: &RealDisk) -> Option<u64> {
    let mut all = 0;
    for object in (0..OBJECTS).map(FileId) {
        disk.locate(object).await;
        let address = |part: u64| disk.address(object, part * (MIB / 16));
        if (0..BLOCKS * 16).any(|part| address(part) >= 1 << 63) {
            return None;
        }
        let breaks = (1..BLOCKS * 16).filter(|part| address(*part) != address(part - 1) + MIB / 16);
        all += 1 + breaks.count() as u64;
    }
    Some(all)
}

async fn read_all(disk: &RealDisk, home: &Path) -> Duration {
    for object in 0..OBJECTS {
        let path = home.join(format!("objects/{object:016x}"));
        let file = std::fs::File::open(path).expect("it was written");
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).expect("pages can be dropped");
    }
    let begin = Instant::now();
    for object in (0..OBJECTS).map(FileId) {
        for block in 0..BLOCKS {
            disk.read(object, block * MIB, MIB).await.expect("it was written");
        }
    }
    begin.elapsed()
}

async fn measure(home: &Path, options: DiskOptions) -> (Duration, Option<u64>, Duration) {
    std::fs::create_dir_all(home).expect("a place to write to");
    let disks = vec![DiskConfig { options, ..DiskConfig::at(home) }];
    let config = NodeConfig { disks, ..Default::default() };
    let world = RealWorld::open(config).expect("the directory can be a disk");
    let disk = &world.disks()[0];
    let block = RealPayload::from(vec![7; MIB as usize]);
    let begin = Instant::now();
    for number in 0..BLOCKS {
        for object in (0..OBJECTS).map(FileId) {
            disk.write(object, number * MIB, block.clone()).await.expect("there is room");
        }
    }
    for object in (0..OBJECTS).map(FileId) {
        disk.sync(object).await.expect("it is stored");
    }
    let written = begin.elapsed();
    let result = (written, pieces(disk).await, read_all(disk, home).await);
    for object in (0..OBJECTS).map(FileId) {
        disk.remove(object).await.expect("it can be removed");
    }
    result
}

fn main() {
    let mut words = std::env::args().skip(1);
    let directory = words.next().expect("name a directory");
    let rounds: usize = words.next().map_or(3, |word| word.parse().expect("a number of rounds"));
    println!("{OBJECTS} objects of {BLOCKS} MiB");
    for round in 0..rounds {
        // Each round begins with another configuration: each one's leftovers disturb the next.
        let mut ways = [(false, false), (true, true), (true, false)];
        ways.rotate_left(round % 3);
        for (direct, preallocate) in ways {
            let home = Path::new(&directory).join(format!("{round}-{direct}-{preallocate}"));
            let options = DiskOptions { direct, preallocate, ..DiskOptions::default() };
            let (written, pieces, read) = run(measure(&home, options));
            println!(
                "direct {direct:5}  preallocate {preallocate:5}  write and sync {:6.2} s  pieces \
                 {pieces:?}  read {:6.2} s",
                written.as_secs_f64(),
                read.as_secs_f64()
            );
        }
    }
}
