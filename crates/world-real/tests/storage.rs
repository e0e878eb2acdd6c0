//! Proves: a full disk, a vanished directory and one that is in use give different errors, and
//! records survive a restart.

mod support;

use std::process::Command;
use std::time::{Duration, Instant};
use support::{Kind, Place};
use units::FileId;
use world::{Disk, DiskError, Disks, RecordChange, RecordTable, Records};
use world_real::{DiskConfig, DiskOptions, NodeConfig, OpenError, RECORDS_FILE, RealWorld, run};

/// Small mounted file system; `None` if this process may not mount one.
struct Mounted(Place);

impl Mounted {
    fn new(kind: &str, options: &str) -> Option<Self> {
        let place = Place::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", kind, "-o", options, kind]).arg(place.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: this process may not mount a small file system");
        }
        mounted.then_some(Self(place))
    }
}

/// An ext4 in a file, mounted; `None` if this process may not mount one.
struct Ext4 {
    image: Place,
    mounted: Place,
}

impl Ext4 {
    fn new() -> Option<Self> {
        let (image, mounted) = (Place::new(), Place::new());
        let made = Self { image, mounted };
        let image = made.image();
        let file = std::fs::File::create(&image).expect("a test has room");
        file.set_len(32 << 20).expect("a test has room");
        let is_there = succeeds("mkfs.ext4", &["-q", &image]) && made.mount();
        if !is_there {
            println!("skipped: this process may not mount an ext4");
        }
        is_there.then_some(made)
    }

    fn image(&self) -> String {
        self.image.path().join("image").display().to_string()
    }

    fn mount(&self) -> bool {
        succeeds("mount", &["-o", "loop", &self.image(), &self.mounted.path().to_string_lossy()])
    }

    /// Loses what is not on the device, as after an error, and mounts the file system again.
    fn shut_down_and_repair(&self) {
        // EXT4_IOC_SHUTDOWN, without a flush of the journal.
        let shut_down = "import fcntl, os, struct, sys\n\
                         at = os.open(sys.argv[1], os.O_RDONLY)\n\
                         fcntl.ioctl(at, 0x8004587d, struct.pack('I', 2))";
        let path = self.mounted.path().to_string_lossy().into_owned();
        assert!(succeeds("python3", &["-c", shut_down, &path]), "it can be shut down");
        // The thread of a disk ends a moment after its node.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !succeeds("umount", &[&path]) {
            assert!(Instant::now() < deadline, "nobody uses it");
        }
        // It ends with 1 when it has repaired something.
        let _ = succeeds("e2fsck", &["-fy", &self.image()]);
        assert!(self.mount(), "it was repaired");
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let _ = succeeds("umount", &["-l", &self.mounted.path().to_string_lossy()]);
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

fn node_on(directory: &std::path::Path) -> RealWorld {
    let disks = vec![DiskConfig::at(directory)];
    RealWorld::open(NodeConfig { disks, ..NodeConfig::default() }).expect("it opens")
}

#[test]
fn a_full_disk_has_no_space_until_something_is_removed() {
    let Some(mounted) = Mounted::new("tmpfs", "size=1m") else { return };
    run(async {
        let world = node_on(mounted.0.path());
        let disk = &world.disks()[0];
        let mut outcome = Ok(());
        for index in 0..32 {
            outcome = disk.write(FileId(1), index << 16, vec![1; 1 << 16].into()).await;
            if outcome.is_err() {
                break;
            }
        }
        assert!(matches!(outcome, Err(DiskError::NoSpace { .. })), "{outcome:?}");
        let space = disk.space().await.expect("a full disk can be asked");
        assert!(space.free_bytes < 1 << 16 && space.capacity_bytes == 1 << 20, "{space:?}");
        disk.remove(FileId(1)).await.expect("a full disk can be emptied");
        // A child that another test is starting may have the file open for a moment.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let is_empty = async || disk.space().await.is_ok_and(|space| space.free_bytes > 1 << 19);
        while !is_empty().await && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        disk.write(FileId(2), 0, vec![1; 1 << 16].into()).await.expect("there is room again");
    });
}

#[test]
fn a_file_system_that_was_repaired_in_the_same_boot_has_old_or_new_bytes() {
    // Proves: after a file system was shut down, repaired and mounted again without a boot of the
    // machine, every byte is readable: as synced, or as written since.
    const OBJECT: FileId = FileId(5);
    const PIECE: u64 = 1 << 16;
    for seed in 0..4_u64 {
        let Some(ext4) = Ext4::new() else { return };
        run(async {
            let world = node_on(ext4.mounted.path());
            let disk = &world.disks()[0];
            let (old, new) = (vec![1; 100 * PIECE as usize], vec![2; PIECE as usize + 77]);
            disk.write(OBJECT, 0, old.into()).await.expect("there is room");
            disk.sync(OBJECT).await.expect("it is stored");
            // So far apart that the device has the checksums of the first ones, without the bytes.
            for place in [seed, 50 + seed, 90] {
                let written = disk.write(OBJECT, place * PIECE + 9, new.clone().into()).await;
                written.expect("there is room");
            }
            if seed % 2 == 0 {
                // Some of the pages reach the device, perhaps those of the checksums.
                rustix::fs::sync();
                disk.write(OBJECT, 6 * PIECE, new.into()).await.expect("there is room");
            }
        });
        ext4.shut_down_and_repair();
        run(async {
            let world = node_on(ext4.mounted.path());
            let disk = &world.disks()[0];
            let bytes = disk.read(OBJECT, 0, 100 * PIECE).await.expect("nothing is damaged");
            assert!(bytes.bytes().iter().all(|byte| [1, 2].contains(byte)), "seed {seed}");
            let last = disk.read(OBJECT, 30 * PIECE, PIECE).await.expect("nobody wrote it");
            assert!(last.bytes().iter().all(|byte| *byte == 1), "seed {seed}");
        });
    }
}

#[test]
fn a_directory_that_is_gone_or_replaced_has_vanished() {
    let place = Place::new();
    run(async {
        let home = place.path().join("disk");
        std::fs::create_dir(&home).expect("a test has room");
        let world = node_on(&home);
        let disk = &world.disks()[0];
        disk.write(FileId(1), 0, vec![1; 10].into()).await.expect("it is there");
        let gone = || matches!(std::fs::remove_dir_all(&home), Ok(()));
        assert!(gone());
        for _ in 0..2 {
            let vanished = |outcome| matches!(outcome, Err(DiskError::Vanished { .. }));
            assert!(vanished(disk.read(FileId(1), 0, 10).await.map(|_| ())));
            assert!(vanished(disk.write(FileId(1), 0, vec![1; 10].into()).await));
            assert!(vanished(disk.sync(FileId(1)).await));
            // Another directory at the same path is not the disk either.
            std::fs::create_dir_all(home.join("objects")).expect("a test has room");
        }
    });
}

#[test]
fn a_file_system_without_direct_transfers_is_told() {
    // Proves: a directory on a file system without direct I/O is refused for that, before anything
    // is stored, and can be used through the page cache.
    let Some(mounted) = Mounted::new("ramfs", "mode=700") else { return };
    run(async {
        let options = DiskOptions { direct: true, ..DiskOptions::default() };
        let disks = vec![DiskConfig { options, ..DiskConfig::at(mounted.0.path()) }];
        let config = NodeConfig { disks, ..NodeConfig::default() };
        let refused = RealWorld::open(config).err();
        assert!(matches!(refused, Some(OpenError::NotDirect { .. })), "{refused:?}");
        let left = std::fs::read_dir(mounted.0.path().join("objects")).expect("it was made");
        assert_eq!(left.count(), 0, "the probe must go");
        let world = node_on(mounted.0.path());
        world.disks()[0].write(FileId(1), 0, vec![1; 10].into()).await.expect("there is room");
    });
}

#[test]
fn one_node_at_a_time_owns_a_directory() {
    let place = Place::new();
    run(async {
        let first = place.node(Kind::OneSided, 0);
        let config = NodeConfig { listen: None, ..place.config(Kind::OneSided, 0) };
        let second = RealWorld::open(config).err();
        assert!(matches!(second, Some(OpenError::Directory { .. })), "{second:?}");
        drop(first);
    });
}

#[test]
fn more_objects_than_descriptors_keep_their_bytes() {
    let place = Place::new();
    run(async {
        let world = place.node(Kind::OneSided, 0);
        let disk = &world.disks()[0];
        for object in 0..600_u64 {
            let payload = object.to_le_bytes().to_vec().into();
            disk.write(FileId(object), 0, payload).await.expect("there is room");
        }
        for object in 0..600_u64 {
            let payload = disk.read(FileId(object), 0, 8).await.expect("it was written");
            assert_eq!(payload.bytes(), object.to_le_bytes());
        }
    });
}

#[test]
fn damaged_records_are_told() {
    // Proves: whichever bit of the file is flipped, the records read are those written, or none;
    // also those of a killed node, whose last change is never lost silently.
    let place = Place::new();
    let expected: Vec<(u64, Vec<u8>)> = (0..400).map(|key| (key, vec![key as u8; 60])).collect();
    let changes = |value: fn(u64) -> Vec<u8>| {
        (0..400).map(|key| RecordChange::put(key, value(key))).collect::<Vec<_>>()
    };
    let file = place.path().join("node-0/Catalogue").join(RECORDS_FILE);
    let killed = run(async {
        let world = open_records(&place).expect("it begins");
        for changes in [changes(|key| vec![!key as u8; 60]), changes(|key| vec![key as u8; 60])] {
            world.record_change(RecordTable::Catalogue, changes).await.expect("there is room");
        }
        std::fs::read(&file).expect("it is there")
    });
    // The thread closes the file a moment after the drop.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let closed = std::fs::read(&file).expect("it is there");
    for (state, whole) in [("closed", closed), ("killed", killed)] {
        let (mut told, mut unseen) = (0, 0);
        // Most of the file is free space: so the header, whose byte 9 says where to begin, and the
        // records are flipped.
        let places = |turn: usize| match turn % 3 {
            0 => turn * 7919 % whole.len(),
            1 => turn,
            _ => whole.windows(8).rposition(|bytes| bytes == [turn as u8; 8]).expect("a record"),
        };
        let places = (0..180).map(|turn| (places(turn), turn % 8));
        for (at, bit) in places.chain((0..8).map(|bit| (9, bit))) {
            match records_with_flipped(&place, &file, &whole, at, bit) {
                None => told += 1,
                Some(found) => {
                    assert!(found == expected, "{state}: bit {bit} of byte {at}");
                    unseen += 1;
                }
            }
        }
        assert!(told >= 60 && unseen > 0, "{state}: {told} of {} were told", told + unseen);
    }
}

#[test]
fn records_that_were_never_made_can_be_made() {
    // Proves: a database of which only the beginning was created, as a full disk or a kill leaves
    // it, is created anew; one without its first bytes is refused.
    let place = Place::new();
    let file = place.path().join("node-0/Catalogue").join(RECORDS_FILE);
    let records = || {
        run(async {
            let world = open_later(&place)?;
            Ok(world.records(RecordTable::Catalogue).await.expect("they are there"))
        })
    };
    let empty: Result<Vec<(u64, Vec<u8>)>, OpenError> = Ok(Vec::new());
    for begun in [vec![0; 100], vec![0; 1 << 20]] {
        let mut begun = begun;
        begun[20] = 1;
        place.config(Kind::OneSided, 0);
        std::fs::write(&file, begun).expect("a test may write");
        assert_eq!(records(), empty);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    run(async {
        let world = open_later(&place).expect("it begins");
        let changes = vec![RecordChange::put(1, vec![1; 5000])];
        world.record_change(RecordTable::Catalogue, changes).await.expect("there is room");
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut whole = std::fs::read(&file).expect("it is there");
    whole[..9].fill(0);
    std::fs::write(&file, whole).expect("a test may write");
    assert!(matches!(records(), Err(OpenError::DamagedRecords { .. })));
}

#[test]
fn older_records_are_told() {
    // Proves: records restored from a copy without their commit count are refused, repeatedly, and
    // accepted once the count is removed.
    let place = Place::new();
    let directory = place.path().join("node-0/Catalogue");
    let (file, copy) = (directory.join(RECORDS_FILE), place.path().join("copy"));
    let change = |value: u8| {
        run(async {
            let world = open_later(&place).expect("it begins");
            let changes = vec![RecordChange::put(1, vec![value])];
            world.record_change(RecordTable::Catalogue, changes).await.expect("there is room");
        });
    };
    change(1);
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::fs::copy(&file, &copy).expect("a test may copy");
    change(2);
    change(3);
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::fs::copy(&copy, &file).expect("a test may copy");
    for _ in 0..2 {
        let refused = run(async { open_later(&place).err() });
        let Some(OpenError::DamagedRecords { cause, .. }) = refused else { panic!("{refused:?}") };
        assert!(cause.contains("last 2 changes counted in records.last"), "{cause}");
    }
    std::fs::remove_file(directory.join("records.last")).expect("it is there");
    run(async {
        let world = open_later(&place).expect("it begins");
        let found = world.records(RecordTable::Catalogue).await.expect("they are there");
        assert_eq!(found, [(1, vec![1])]);
    });
}

/// Opens a node with records, after the thread of the node before has closed its file, a moment
/// after its drop.
fn open_later(place: &Place) -> Result<RealWorld, OpenError> {
    let mut opened = open_records(place);
    for _ in 0..100 {
        if !matches!(&opened, Err(OpenError::Directory { .. })) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        opened = open_records(place);
    }
    opened
}

/// Opens a node with records and nothing else.
fn open_records(place: &Place) -> Result<RealWorld, OpenError> {
    let config = place.config(Kind::OneSided, 0);
    RealWorld::open(NodeConfig { listen: None, disks: Vec::new(), ..config })
}

/// Returns the records of a file that was `whole` and has one bit flipped; `None` if damage is
/// reported.
fn records_with_flipped(
    place: &Place,
    file: &std::path::Path,
    whole: &[u8],
    at: usize,
    bit: usize,
) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut damaged = whole.to_vec();
    damaged[at] ^= 1 << bit;
    // In another file: the one before may not be closed yet.
    let aside = file.with_extension("new");
    std::fs::write(&aside, &damaged).expect("a test may write");
    std::fs::rename(&aside, file).expect("a test may rename");
    run(async {
        match open_later(place) {
            Err(OpenError::DamagedRecords { .. }) => None,
            Err(error) => panic!("bit {bit} of byte {at}: {error}"),
            Ok(world) => Some(world.records(RecordTable::Catalogue).await.expect("they are there")),
        }
    })
}

#[test]
fn records_survive_a_restart() {
    let place = Place::new();
    run(async {
        let world = place.node(Kind::OneSided, 0);
        for key in [3, 1, 2] {
            let changes = vec![RecordChange::put(key, vec![key as u8; 5])];
            world.record_change(RecordTable::Catalogue, changes).await.expect("it is stored");
        }
        let changes = vec![RecordChange::remove(2)];
        world.record_change(RecordTable::Catalogue, changes).await.expect("it is removed");
    });
    run(async {
        let mut world = None;
        // The threads of the first node close their files a moment after its drop.
        while world.is_none() {
            let config = place.config(Kind::OneSided, 0);
            world = RealWorld::open(NodeConfig { listen: None, ..config }).ok();
            std::thread::yield_now();
        }
        let records = world
            .expect("opened above")
            .records(RecordTable::Catalogue)
            .await
            .expect("they are there");
        assert_eq!(records, [(1, vec![1; 5]), (3, vec![3; 5])]);
    });
}
