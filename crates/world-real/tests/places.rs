//! Proves: blocks can be sorted by physical address, objects that grow in turns have few extents,
//! and preallocated space is neither lost nor missing.

mod support;

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use support::Place;
use support::disks::{OBJECT, data_file, node_on, read, with_disk, write};
use units::{FileId, MIB};
use world::{Disk, DiskError, Disks};
use world_real::{DiskOptions, RealDisk};

/// Direct writes get their physical address at once.
const DIRECT: DiskOptions = DiskOptions { direct: true, checksums: true, preallocate: true };

const BLOCKS: u64 = 32;

/// Returns the number of extents of the blocks of an object; `None` if the system does not tell.
async fn pieces(disk: &RealDisk, object: FileId) -> Option<usize> {
    disk.locate(object).await;
    let address = |block: u64| disk.address(object, block * MIB);
    let is_known = (0..BLOCKS).all(|block| address(block) < 1 << 63);
    let breaks = (1..BLOCKS).filter(|block| address(*block) != address(block - 1) + MIB);
    is_known.then(|| 1 + breaks.count())
}

/// Writes a block of each of eight objects in turn; returns their number of extents.
fn grow_in_turns(options: DiskOptions) -> Option<usize> {
    let place = Place::new();
    with_disk(&place, options, |disk| async move {
        let block = world_real::RealPayload::from(vec![1; MIB as usize]);
        for number in 0..BLOCKS {
            for object in 0..8 {
                let written = disk.write(FileId(object), number * MIB, block.clone());
                written.await.expect("there is room");
            }
        }
        let mut all = 0;
        for object in 0..8 {
            all += pieces(&disk, FileId(object)).await?;
        }
        Some(all)
    })
}

#[test]
fn objects_that_grow_in_turns_lie_in_long_pieces() {
    let Some(without) = grow_in_turns(DiskOptions { preallocate: false, ..DIRECT }) else {
        println!("skipped: this file system does not report where files are");
        return;
    };
    let with = grow_in_turns(DIRECT).expect("it told before");
    println!("8 objects of {BLOCKS} MiB in {with} pieces, {without} without preallocation");
    assert!(with <= 8 * 2 * BLOCKS as usize / 16, "{with} pieces, {without} without");
}

#[test]
fn addresses_follow_what_is_written_and_removed() {
    // Proves: an object that was not queried, or not written, has no address; another has, with its
    // bytes in order; a new object of the same number does not have the old addresses.
    let place = Place::new();
    with_disk(&place, DIRECT, |disk| async move {
        let is_known = |offset: u64| disk.address(OBJECT, offset) < 1 << 63;
        disk.locate(OBJECT).await;
        assert!(!is_known(0));
        write(&disk, 0, &vec![1; 2 * MIB as usize]).await.expect("there is room");
        disk.sync(OBJECT).await.expect("it is stored");
        assert!(!is_known(0), "nobody asked where it is");
        disk.locate(OBJECT).await;
        if !is_known(0) {
            println!("skipped: this file system does not report where files are");
            return;
        }
        assert!(is_known(2 * MIB - 1) && !is_known(1 << 40));
        assert_eq!(disk.address(OBJECT, 100), disk.address(OBJECT, 0) + 100);
        disk.remove(OBJECT).await.expect("it can be removed");
        disk.locate(OBJECT).await;
        assert!(!is_known(0));
        let far = 64 * MIB;
        write(&disk, far, &vec![1; MIB as usize]).await.expect("there is room");
        disk.locate(OBJECT).await;
        assert!(is_known(far) && !is_known(0), "a hole has no place");
    });
}

#[test]
fn room_that_nothing_was_written_to_is_given_back() {
    // Proves: after the close of a disk, or of an object because others are used, the object
    // occupies the space that its bytes need. After a kill this holds from its next use.
    for closes_by_others in [false, true] {
        let place = Place::new();
        let used = with_disk(&place, DIRECT, |disk| {
            let file = data_file(&place);
            async move {
                write(&disk, 0, &vec![1; MIB as usize]).await.expect("there is room");
                let reserved = std::fs::metadata(&file).expect("it is there").blocks() * 512;
                if closes_by_others {
                    for other in 100..300 {
                        let payload = vec![1; 100].into();
                        disk.write(FileId(other), 0, payload).await.expect("there is room");
                    }
                    return std::fs::metadata(&file).expect("it is there").blocks() * 512;
                }
                assert!(reserved >= MIB);
                0
            }
        });
        let file = std::fs::File::options().write(true).open(data_file(&place));
        let kept = rustix::fs::FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(file.expect("it is there"), kept, MIB, 5 * MIB);
        with_disk(&place, DIRECT, |disk| async move {
            assert_eq!(read(&disk, 0, MIB).await.expect("it is whole"), vec![1; MIB as usize]);
        });
        // The next open of the disk waits for the old thread.
        with_disk(&place, DIRECT, |_| async {});
        let now = std::fs::metadata(data_file(&place)).expect("it is there").blocks() * 512;
        assert!(used.max(now) < MIB + (128 << 10), "{used} then {now} bytes are used");
    }
}

/// Loop-mounted file system of `mib` MiB; `None` if this process may not mount one.
struct SmallDisk(Place);

impl SmallDisk {
    fn new(mib: u64) -> Option<Self> {
        let place = Place::new();
        let (image, mounted) = (place.path().join("image"), place.path().join("mounted"));
        std::fs::create_dir(&mounted).expect("a test has room");
        let file = std::fs::File::create(&image).expect("a test has room");
        file.set_len(mib * MIB).expect("a test has room");
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-F", "-m", "0"]).arg(&image);
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(&image).arg(&mounted);
        for command in [&mut make, &mut mount] {
            if !command.output().is_ok_and(|output| output.status.success()) {
                println!("skipped: this process may not mount a small file system");
                return None;
            }
        }
        Some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path().join("mounted")).output();
    }
}

#[test]
fn a_disk_is_full_only_when_nothing_is_only_reserved() {
    // Proves: with preallocation as many bytes fit on a small disk as without.
    let fill = |preallocate| {
        let small = SmallDisk::new(64)?;
        world_real::run(async {
            let world =
                node_on(&small.0.path().join("mounted"), DiskOptions { preallocate, ..DIRECT });
            let disk = &world.disks()[0];
            let block = world_real::RealPayload::from(vec![1; MIB as usize / 4]);
            for number in 0..4096 {
                let offset = number / 8 * MIB / 4;
                let written = disk.write(FileId(number % 8), offset, block.clone()).await;
                match written {
                    Ok(()) => {}
                    Err(DiskError::NoSpace { .. }) => return Some(number),
                    Err(other) => panic!("{other}"),
                }
            }
            panic!("a disk of 64 MiB must be full");
        })
    };
    if let (Some(with), Some(without)) = (fill(true), fill(false)) {
        assert!(with + 4 >= without, "{with} blocks fit, {without} without preallocation");
    }
}
