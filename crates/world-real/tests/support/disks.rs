//! Disk whose files a test can access.

use super::Place;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use units::FileId;
use world::{Disk, DiskError, Disks};
use world_real::{DiskConfig, DiskOptions, NodeConfig, OpenError, RealDisk, RealWorld};

/// Object that tests write.
pub(crate) const OBJECT: FileId = FileId(0x2a);

/// Bytes that share a checksum.
pub(crate) const PIECE: u64 = 64 << 10;

/// Opens a node whose only disk is `directory`. Waits for another node to release it: the thread of
/// a disk ends a moment after its node.
pub(crate) fn node_on(directory: &Path, options: DiskOptions) -> RealWorld {
    node_of(DiskConfig { identity: 7, options, ..DiskConfig::at(directory) })
}

/// As [`node_on`], with the full configuration of the disk.
pub(crate) fn node_of(disk: DiskConfig) -> RealWorld {
    let disks = vec![disk];
    let config = NodeConfig { disks, ..NodeConfig::default() };
    loop {
        match RealWorld::open(config.clone()) {
            Err(OpenError::Directory { cause, .. }) if cause.contains("another server") => {
                std::thread::yield_now();
            }
            opened => return opened.expect("a node must open"),
        }
    }
}

/// Calls `program` with a disk of its own, which is closed afterwards.
pub(crate) fn with_disk<F: Future>(
    place: &Place,
    disks: DiskOptions,
    program: impl FnOnce(RealDisk) -> F,
) -> F::Output {
    world_real::run(async {
        let world = node_on(place.path(), disks);
        program(world.disks()[0].clone()).await
    })
}

/// Returns the path of the object's bytes.
pub(crate) fn data_file(place: &Place) -> PathBuf {
    place.path().join(format!("objects/{:016x}", OBJECT.0))
}

/// Returns the path of the object's checksums.
pub(crate) fn sums_file(place: &Place) -> PathBuf {
    place.path().join(format!("objects/{:016x}.sums", OBJECT.0))
}

/// Inverts the bits of a byte of a file.
pub(crate) fn flip(path: &Path, offset: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("the byte is there");
    file.write_all_at(&[!byte[0]], offset).expect("a test may write");
}

/// Truncates a file.
pub(crate) fn cut(path: &Path, length: u64) {
    let file = std::fs::File::options().write(true).open(path).expect("it is there");
    file.set_len(length).expect("a test may cut");
}

/// Returns pseudorandom bytes with a long period.
pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    };
    (0..length).map(step).collect()
}

/// Reads bytes of the object.
pub(crate) async fn read(disk: &RealDisk, offset: u64, length: u64) -> Result<Vec<u8>, DiskError> {
    disk.read(OBJECT, offset, length).await.map(|payload| payload.bytes().to_vec())
}

/// Writes bytes to the object.
pub(crate) async fn write(disk: &RealDisk, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
    disk.write(OBJECT, offset, bytes.to_vec().into()).await
}

/// Returns the damaged piece, if the outcome reports one.
pub(crate) fn damaged<T>(outcome: Result<T, DiskError>) -> Option<u64> {
    match outcome {
        Err(DiskError::Corrupt { object: OBJECT, offset, length: PIECE, .. }) => {
            assert!(offset.is_multiple_of(PIECE));
            Some(offset / PIECE)
        }
        _ => None,
    }
}
