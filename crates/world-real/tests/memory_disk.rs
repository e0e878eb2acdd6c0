//! Proves: disks in memory keep the contracts of `world`; a process killed at any time leaves every
//! acknowledged byte to the next one; damage is found; capacity is kept, and comes back.

mod support;

use std::fs::File;
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use support::nodes::Nodes;
use support::{Kind, Place};
use units::{FileId, KIB, MIB};
use world::conformance::run_all;
use world::{Disk, DiskError, Disks, Memory, Payloads};
use world_real::{
    DiskConfig, NodeConfig, RealDisk, RealPayload, RealWorld, reserve_memory, run, use_memory,
};

const CAPACITY: u64 = 128 * MIB;
const OBJECT: FileId = FileId(7);

/// Makes memory for the disks of this process, and returns a number for a disk in it.
fn new_disk() -> u32 {
    static MEMORY: OnceLock<File> = OnceLock::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    MEMORY.get_or_init(|| {
        let file = reserve_memory(CAPACITY, 64 * MIB).expect("there is memory");
        let other = file.try_clone().expect("there is a descriptor");
        assert_eq!(use_memory(other), Ok(CAPACITY));
        assert!(use_memory(file.try_clone().expect("there is a descriptor")).is_err(), "once");
        file
    });
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Runs one test of this process at a time: all disks share the capacity.
fn alone() -> impl Drop {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn in_memory(disk: &mut DiskConfig) {
    disk.in_memory = Some(new_disk());
}

#[test]
fn disks_in_memory_keep_the_contracts() {
    let _alone = alone();
    run_all(&mut Nodes(Kind::OneSided, in_memory));
    run_all(&mut Nodes(Kind::Framed, in_memory));
}

/// A node with one disk in memory.
fn node(number: u32) -> RealWorld {
    let disk = DiskConfig { in_memory: Some(number), ..DiskConfig::at("/nowhere") };
    let config = NodeConfig { disks: vec![disk], lent_bytes_max: MIB, ..NodeConfig::default() };
    RealWorld::open(config).expect("a node must open")
}

fn with_disk<R: 'static, F: Future<Output = R> + 'static>(
    test: impl FnOnce(RealWorld, RealDisk) -> F,
) -> R {
    let _alone = alone();
    run(async {
        let world = node(new_disk());
        let disk = world.disks()[0].clone();
        test(world, disk).await
    })
}

/// Data that lies in the memory of the disks, as what a server has fetched does.
fn fetched(world: &RealWorld, seed: u64, length: u64) -> RealPayload {
    let memory = world.memory(length);
    memory.with_bytes_mut(|bytes| bytes.copy_from_slice(&pattern(seed, length as usize)));
    memory.freeze()
}

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

async fn bytes(disk: &RealDisk, object: FileId, offset: u64, length: u64) -> Vec<u8> {
    disk.read(object, offset, length).await.expect("nothing is damaged").bytes().to_vec()
}

async fn used(disk: &RealDisk) -> u64 {
    let space = disk.space().await.expect("it tells");
    space.capacity_bytes - space.free_bytes
}

#[test]
fn fetched_data_becomes_part_of_an_object_where_it_is() {
    with_disk(|world, disk| async move {
        let before = used(&disk).await;
        let block = fetched(&world, 1, MIB);
        let place = block.bytes().as_ptr();
        disk.write(OBJECT, MIB, block.clone()).await.expect("there is room");
        let found = disk.read(OBJECT, MIB, MIB).await.expect("it is there");
        assert_eq!(found.bytes().as_ptr(), place, "without a copy");
        assert_eq!(used(&disk).await - before, MIB);
        // While others hold it, a write goes elsewhere, and what they hold stays.
        disk.write(OBJECT, MIB + 5, pattern(2, 100).into()).await.expect("there is room");
        assert_eq!(found.bytes(), pattern(1, MIB as usize));
        drop((found, block));
        let mut expected = pattern(1, MIB as usize);
        expected[5..105].copy_from_slice(&pattern(2, 100));
        assert_eq!(bytes(&disk, OBJECT, MIB, MIB).await, expected);
        // The same data in a second object are other bytes.
        let block = fetched(&world, 3, 256 * KIB);
        disk.write(OBJECT, 0, block.clone()).await.expect("there is room");
        disk.write(FileId(8), 0, block).await.expect("there is room");
        disk.write(OBJECT, 0, pattern(4, 10).into()).await.expect("there is room");
        assert_eq!(bytes(&disk, FileId(8), 0, 256 * KIB).await, pattern(3, 256 << 10));
        disk.remove(OBJECT).await.expect("it can be removed");
        disk.remove(FileId(8)).await.expect("it can be removed");
        assert_eq!(used(&disk).await, before);
    });
}

#[test]
fn a_full_disk_says_so_and_its_space_comes_back() {
    with_disk(|world, disk| async move {
        let before = used(&disk).await;
        let mut number = 0;
        let full = loop {
            let block = fetched(&world, number, MIB);
            match disk.write(FileId(number), 0, block).await {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, DiskError::NoSpace { .. }), "{full:?}");
        assert_eq!(number, (CAPACITY - before) / MIB);
        assert!(disk.sync(FileId(number)).await.is_err(), "its bytes are missing");
        // What is there can be written over, also while others read it.
        let held = disk.read(FileId(3), 0, MIB).await.expect("it is there");
        disk.write(FileId(3), 0, fetched(&world, 99, MIB)).await.expect("it replaces");
        disk.write(FileId(3), 7, pattern(98, 10).into()).await.expect("it replaces");
        assert_eq!(held.bytes(), pattern(3, MIB as usize));
        // Many small objects, of which every second one stays, do not keep large ones out.
        for object in 0..number {
            disk.remove(FileId(object)).await.expect("it can be removed");
        }
        let small = (CAPACITY - before) / (4 * KIB);
        for object in 0..small {
            let data = pattern(object, 100).into();
            disk.write(FileId(object), 0, data).await.expect("there is room");
        }
        for object in (0..small).step_by(2) {
            disk.remove(FileId(object)).await.expect("it can be removed");
        }
        let blocks = (CAPACITY - used(&disk).await) / MIB;
        assert!(blocks >= 40, "{blocks}");
        for block in 0..blocks {
            let data = fetched(&world, block, MIB);
            disk.write(FileId(1 << 40), block * MIB, data).await.expect("there is room");
        }
        for block in 0..blocks {
            let found = bytes(&disk, FileId(1 << 40), block * MIB, MIB).await;
            assert_eq!(found, pattern(block, MIB as usize));
        }
        for object in (0..small).chain([1 << 40]) {
            disk.remove(FileId(object)).await.expect("it can be removed");
        }
        assert_eq!(used(&disk).await, before);
    });
}

#[test]
fn a_truncation_hides_no_damage() {
    with_disk(|world, disk| async move {
        let block = fetched(&world, 1, 128 * KIB);
        let place = block.bytes().as_ptr().wrapping_add(1000).cast_mut();
        disk.write(OBJECT, 0, block).await.expect("there is room");
        flip(place);
        disk.truncate(OBJECT, 64 * KIB).await.expect("no piece is cut");
        assert!(disk.read(OBJECT, 0, 100).await.is_err(), "the piece is damaged");
        assert!(disk.truncate(OBJECT, 5000).await.is_err(), "the piece would be cut");
        disk.truncate(OBJECT, 0).await.expect("nothing stays");
        assert_eq!(bytes(&disk, OBJECT, 0, 2000).await, [0; 2000]);
        disk.remove(OBJECT).await.expect("it can be removed");
    });
}

#[test]
fn a_write_that_a_damaged_piece_refuses_changes_nothing() {
    with_disk(|world, disk| async move {
        let second = fetched(&world, 2, 128 * KIB);
        let place = second.bytes().as_ptr().wrapping_add(70_000).cast_mut();
        disk.write(OBJECT, 0, fetched(&world, 1, 128 * KIB)).await.expect("there is room");
        disk.write(OBJECT, 128 * KIB, second).await.expect("there is room");
        flip(place);
        let over_both = pattern(3, 150_000).into();
        assert!(disk.write(OBJECT, 100_000, over_both).await.is_err());
        assert_eq!(bytes(&disk, OBJECT, 0, 128 * KIB).await, pattern(1, 128 << 10));
        disk.remove(OBJECT).await.expect("it can be removed");
    });
}

#[test]
fn other_data_of_the_process_takes_no_room_from_objects() {
    with_disk(|world, disk| async move {
        let others: Vec<_> = (0..256).map(|_| world.memory(MIB)).collect();
        let blocks = (CAPACITY - used(&disk).await) / MIB;
        for block in 0..blocks {
            let data: RealPayload = pattern(block, 1 << 20).into();
            disk.write(OBJECT, block * MIB, data).await.expect("there is room");
        }
        // Also when the disk is full, bytes that others read can be written over.
        let held = disk.read(OBJECT, 0, MIB).await.expect("it is there");
        disk.write(OBJECT, 5, pattern(7, 100).into()).await.expect("there is a part for it");
        drop((held, others));
        let mut expected = pattern(0, 1 << 20);
        expected[5..105].copy_from_slice(&pattern(7, 100));
        assert_eq!(bytes(&disk, OBJECT, 0, MIB).await, expected);
        disk.remove(OBJECT).await.expect("it can be removed");
    });
}

#[test]
fn damaged_memory_is_found() {
    with_disk(|world, disk| async move {
        let block = fetched(&world, 1, MIB);
        let place = block.bytes().as_ptr().wrapping_add(300_000).cast_mut();
        disk.write(OBJECT, 0, block).await.expect("there is room");
        flip(place);
        assert_eq!(
            bytes(&disk, OBJECT, 0, 4 * 64 * KIB).await,
            &pattern(1, MIB as usize)[..4 << 16]
        );
        let damaged = disk.read(OBJECT, 0, MIB).await.expect_err("it is damaged");
        let DiskError::Corrupt { object: OBJECT, offset, length, .. } = damaged else {
            panic!("{damaged:?}");
        };
        assert_eq!((offset, length), (4 * 64 * KIB, 64 * KIB));
        // A write beside it does not hide it; one of the whole piece mends it.
        assert!(disk.write(OBJECT, 300_010, pattern(2, 10).into()).await.is_err());
        assert!(disk.read(OBJECT, 299_000, 5000).await.is_err());
        let piece = pattern(2, 64 << 10);
        disk.write(OBJECT, 4 * 64 * KIB, piece.clone().into()).await.expect("it covers all");
        assert_eq!(bytes(&disk, OBJECT, 4 * 64 * KIB, 64 * KIB).await, piece);
        disk.remove(OBJECT).await.expect("it can be removed");
    });
}

/// Flips a bit of memory as nothing but a defect does: through another view of this process.
fn flip(place: *mut u8) {
    let memory = File::options().read(true).write(true).open("/proc/self/mem");
    let memory = memory.expect("it is there");
    let mut byte = [0];
    memory.read_exact_at(&mut byte, place as u64).expect("it is mapped");
    memory.write_all_at(&[byte[0] ^ 4], place as u64).expect("it is mapped");
}

/// Name of the variable that makes a test the process that is killed, or the one that checks.
const ROLE: &str = "UNISONO_MEMORY_ROLE";

/// Objects of the process that is killed, and their largest size.
const OBJECTS: u64 = 3;
const OBJECT_BYTES: u64 = 3 * MIB;

/// A change of an object, drawn from a seed.
#[derive(Clone, Copy, Debug)]
enum Change {
    Fetched { object: u64, offset: u64, length: u64 },
    Write { object: u64, offset: u64, length: u64 },
    Truncate { object: u64, length: u64 },
    Remove { object: u64 },
}

impl Change {
    fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let object = random.u64(0..OBJECTS);
        match random.u32(0..10) {
            0..4 => {
                let length = 4096 << random.u32(0..9);
                let offset = random.u64(0..OBJECT_BYTES / 4096) * 4096;
                Self::Fetched { object, offset: offset.min(OBJECT_BYTES - length), length }
            }
            4..8 => {
                let length = 1 + random.u64(0..200_000) / (1 + random.u64(0..50));
                Self::Write { object, offset: random.u64(0..OBJECT_BYTES - length), length }
            }
            8 => Self::Truncate { object, length: random.u64(0..OBJECT_BYTES) },
            _ => Self::Remove { object },
        }
    }

    async fn make(self, seed: u64, world: &RealWorld, disk: &RealDisk) {
        let made = match self {
            Self::Fetched { object, offset, length } => {
                disk.write(FileId(object), offset, fetched(world, seed, length)).await
            }
            Self::Write { object, offset, length } => {
                disk.write(FileId(object), offset, pattern(seed, length as usize).into()).await
            }
            Self::Truncate { object, length } => disk.truncate(FileId(object), length).await,
            Self::Remove { object } => disk.remove(FileId(object)).await,
        };
        made.expect("there is room");
    }

    fn apply(self, seed: u64, model: &mut [Vec<u8>]) {
        match self {
            Self::Fetched { object, offset, length } | Self::Write { object, offset, length } => {
                let object = &mut model[object as usize];
                let end = (offset + length) as usize;
                object.resize(object.len().max(end), 0);
                object[offset as usize..end].copy_from_slice(&pattern(seed, length as usize));
            }
            Self::Truncate { object, length } => model[object as usize].truncate(length as usize),
            Self::Remove { object } => model[object as usize].clear(),
        }
    }
}

#[test]
fn random_changes_leave_what_a_model_says() {
    with_disk(|world, disk| async move {
        let mut model = vec![Vec::new(); OBJECTS as usize];
        let mut held = Vec::new();
        for seed in 0..2000 {
            Change::of(seed).make(seed, &world, &disk).await;
            Change::of(seed).apply(seed, &mut model);
            for (object, expected) in (0..).map(FileId).zip(&model) {
                let length = disk.metadata(object).await.expect("it tells");
                let length = length.map_or(0, |found| found.length);
                let found = bytes(&disk, object, 0, length).await;
                assert!(found == *expected, "{object} after change {seed}, {:?}", Change::of(seed));
            }
            held.push(disk.read(FileId(seed % OBJECTS), 0, MIB).await.expect("it is whole"));
            held.truncate(usize::from(seed % 5 < 3));
        }
    });
}

/// Makes changes, and says so after each, until it is killed.
async fn make_changes(first: u64) {
    let world = node(0);
    let disk = world.disks()[0].clone();
    let mut held = Vec::new();
    // So that chunks lie everywhere in the memory.
    let others: Vec<_> = (0..first % 3 * 10).map(|_| world.memory(MIB)).collect();
    for seed in first.. {
        Change::of(seed).make(seed, &world, &disk).await;
        println!("made {seed}");
        // Some data stays shared with a reader.
        held.push(disk.read(FileId(seed % OBJECTS), 0, MIB).await.expect("nothing is damaged"));
        held.truncate(usize::from(seed % 5 < 3));
    }
    drop(others);
}

/// Prints what the disk holds.
async fn show_objects() {
    let world = node(0);
    let disk = world.disks()[0].clone();
    for object in 0..OBJECTS {
        let found = disk.metadata(FileId(object)).await.expect("it tells");
        let length = found.map_or(0, |found| found.length);
        if let Some(found) = found.filter(|_| object == 0) {
            println!("time {}", found.modified.as_ns());
        }
        let data = bytes(&disk, FileId(object), 0, length).await;
        let path = PathBuf::from(std::env::var("UNISONO_MEMORY_OUT").expect("it is set"));
        std::fs::write(path.join(object.to_string()), data).expect("there is room");
    }
    println!("used {}", used(&disk).await);
    disk.set_modified(FileId(0), units::Timestamp::from_ns(12_345)).await;
}

/// Starts this test in a role, with the memory as its standard input.
fn process(memory: &File, role: &str, out: &Place) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("it is known"));
    command.args(["--exact", "--nocapture", "a_killed_process_leaves_every_acknowledged_byte"]);
    command.env(ROLE, role).env("UNISONO_MEMORY_OUT", out.path());
    command.stdin(memory.try_clone().expect("there is a descriptor")).stdout(Stdio::piped());
    command.process_group(0);
    command
}

/// Numbers behind a word in the lines of an output.
fn numbers(output: &str, word: &str) -> Vec<u64> {
    let found = output.lines().filter_map(|line| line.split_once(word)?.1.trim().parse().ok());
    found.collect()
}

/// Least number of processes that are killed.
const ROUNDS_MIN: u32 = 40;

/// Number of killed processes after which no change was cut off by chance.
const ROUNDS_MAX: u32 = 1_000;

/// Starts a process that makes changes from number `first` on, and kills it after some. Returns the
/// number of the last one that it told.
fn kill_between_changes(memory: &File, out: &Place, first: u64, random: &mut fastrand::Rng) -> u64 {
    let mut victim = process(memory, &first.to_string(), out).spawn().expect("it starts");
    let mut output = BufReader::new(victim.stdout.take().expect("it is piped"));
    let mut line = String::new();
    let wanted = first + random.u64(0..30);
    while !line.contains("made") || numbers(&line, "made ") < vec![wanted] {
        line.clear();
        assert!(output.read_line(&mut line).expect("it is piped") > 0, "it goes on");
    }
    std::thread::sleep(std::time::Duration::from_micros(random.u64(0..400)));
    victim.kill().expect("it runs");
    victim.wait().expect("it ends");
    let mut rest = line;
    std::io::Read::read_to_string(&mut output, &mut rest).expect("it is piped");
    *numbers(&rest, "made ").last().expect("it made some")
}

/// Checks that objects are as `model` says, or in part as after change `next`.
fn check_objects(objects: &[Vec<u8>], model: &[Vec<u8>], next: u64) {
    let mut after = model.to_vec();
    Change::of(next).apply(next, &mut after);
    for ((found, before), after) in objects.iter().zip(model).zip(&after) {
        let (low, high) = (before.len().min(after.len()), before.len().max(after.len()));
        assert!((low..=high).contains(&found.len()), "{}", found.len());
        let byte = |of: &[u8], at| of.get(at).copied().unwrap_or(0);
        for (at, byte_found) in found.iter().enumerate() {
            let allowed = [byte(before, at), byte(after, at)];
            assert!(allowed.contains(byte_found), "byte {at} after {:?}", Change::of(next));
        }
    }
}

#[test]
fn a_killed_process_leaves_every_acknowledged_byte() {
    if let Ok(role) = std::env::var(ROLE) {
        let memory = File::options().read(true).write(true).open("/proc/self/fd/0");
        use_memory(memory.expect("it is there")).expect("it is memory for disks");
        return run(async {
            match role.parse() {
                Ok(first) => make_changes(first).await,
                Err(_) => show_objects().await,
            }
        });
    }
    let _alone = alone();
    let out = Place::new();
    // Less than the objects may take: chunks lie behind the bytes that were reserved too.
    let memory = reserve_memory(12 * MIB, 150 * MIB).expect("there is memory");
    let mut model = vec![Vec::new(); OBJECTS as usize];
    let (mut next, mut random, mut torn) = (0, fastrand::Rng::with_seed(3), 0);
    let mut was_removed = true;
    // As many rounds as it takes to cut one change off, whatever else the machine does.
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS_MIN && torn > 0 {
            break;
        }
        let last = kill_between_changes(&memory, &out, next, &mut random);
        for seed in next..=last + 1 {
            was_removed |= matches!(Change::of(seed), Change::Remove { object: 0 });
            if seed <= last {
                Change::of(seed).apply(seed, &mut model);
                was_removed |= model[0].is_empty();
            }
        }
        next = last + 1;
        let found = process(&memory, "show", &out).output().expect("it starts");
        let said = String::from_utf8_lossy(&found.stdout);
        assert!(found.status.success(), "round {round}: {said}");
        let objects: Vec<Vec<u8>> = (0..OBJECTS)
            .map(|object| std::fs::read(out.path().join(object.to_string())).expect("it is there"))
            .collect();
        torn += u32::from(objects != model);
        check_objects(&objects, &model, next);
        // A time that was set before the process ended counts, also after later writes.
        if round > 0 && !objects[0].is_empty() && !was_removed {
            assert_eq!(numbers(&said, "time "), [12_345], "round {round}");
        }
        was_removed = objects[0].is_empty();
        // The change that was cut off is made whole by the next process.
        let used = numbers(&said, "used ")[0];
        assert!(used <= 12 * MIB, "round {round}: {used} bytes are used");
        let _ = writeln!(std::io::stderr(), "round {round}: {last} changes, {used} bytes");
    }
    assert!(torn > 0, "some changes were cut off, or were not told");
}
