//! Protected files of which something at this server is not protected now.
//!
//! Not protected are:
//! - bytes that clients have written and the disk may lack, since the copy or parity gets them with
//!   it: known from the [block cache](super::block_cache);
//! - what a copy or parity protects that may lack changes: known from the
//!   [mirrors](super::mirrors);
//! - a part that is lost, or being filled: until all of it is, its copy is the file; and what a
//!   copy or parity here protected that is lost: known from the [refill](super::refill).
//!
//! Writes that clients gather, and lines in their caches, are unknown here.
//!
//! Invariant: where a number is not known, the larger one counts.

use crate::server::refill::LackingFile;
use crate::server::state::Server;
use policy::{Protection, Unprotected};
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, ServerId};
use wire::{FileRecord, FileSize, UnprotectedFiles};
use world::World;

/// Maximum number of files in one answer.
const FILES_PER_ANSWER_MAX: u32 = 256;

/// Number of copies and parities in an answer after which it takes no further file.
const BEHIND_PER_ANSWER_MAX: usize = 4096;

/// What is known of a file that may be unprotected.
struct Suspect {
    record: FileRecord,
    /// Bytes of it that the disks may lack.
    unstored_bytes: u64,
    /// Places whose copy or parity may lack changes.
    behind: BTreeSet<ServerId>,
}

impl<W: World> Server<W> {
    /// Returns at most `count` files, from `from` on, of which something is not protected here.
    pub(crate) async fn unprotected_files(&self, from: FileId, count: u32) -> UnprotectedFiles {
        // What a lost connection may have left behind counts at once.
        self.mirrors().notice_ended_connections();
        let mut known = UnprotectedFiles {
            is_all_known: !self.lacking().is_listing() && !self.config().read_only,
            ..UnprotectedFiles::default()
        };
        let count = count.clamp(1, FILES_PER_ANSWER_MAX) as usize;
        let mut places = 0;
        for (file, suspect) in self.suspects(from) {
            let unprotected = self.unprotected(&suspect).await;
            if unprotected.is_nothing() {
                continue;
            }
            if known.files.len() == count || places >= BEHIND_PER_ANSWER_MAX {
                known.more = true;
                break;
            }
            places += unprotected.behind.len();
            known.files.push((file, unprotected));
        }
        known
    }

    /// Returns the protected files, from `from` on, of which something may not be protected.
    fn suspects(&self, from: FileId) -> BTreeMap<FileId, Suspect> {
        let mut suspects = BTreeMap::<FileId, Suspect>::new();
        let of = |record: FileRecord| {
            let record = self.files().as_protected(record);
            Suspect { record, unstored_bytes: 0, behind: BTreeSet::new() }
        };
        for record in self.lacking().records() {
            suspects.insert(record.file, of(record));
        }
        for file in self.mirrors().behind() {
            let suspect = suspects.entry(file.file).or_insert_with(|| of(file.record.clone()));
            suspect.behind.extend(file.places_behind());
        }
        for (file, (record, bytes)) in self.cache().unstored(from) {
            suspects.entry(file).or_insert_with(|| of(record)).unstored_bytes = bytes;
        }
        suspects
            .retain(|file, suspect| *file >= from && suspect.record.protection != Protection::None);
        suspects
    }

    async fn unprotected(&self, suspect: &Suspect) -> Unprotected {
        let Suspect { record, unstored_bytes, behind } = suspect;
        let Some(place) = record.place_of(self.config().id) else { return Unprotected::default() };
        let file_bytes = self.bytes_known(record).await;
        let (protection, stripe) = (record.protection, &record.stripe);
        let protected = |at| protection.protected_at(stripe, at, file_bytes);
        // Of an empty file nothing can be lost.
        let behind = behind.iter().map(|at| (*at, protected(*at))).filter(|(_, bytes)| *bytes > 0);
        let mut behind: BTreeMap<ServerId, u64> = behind.collect();
        let mut own_bytes = *unstored_bytes;
        if let Some(lacking) = self.lacking().of(record.file) {
            own_bytes += lacking_bytes(&lacking, place, file_bytes);
            if !lacking.copy.is_empty() {
                behind.insert(place, protected(place).max(1));
            }
        }
        Unprotected { file_bytes, own_bytes, behind: behind.into_iter().collect() }
    }

    /// Size of a file in bytes, as far as this server knows it.
    async fn bytes_known(&self, record: &FileRecord) -> u64 {
        let open = self.files().find(record.file).ok().flatten();
        let own = open.map_or_else(FileSize::default, |open| open.size()).max(record.size());
        // If a disk fails, what is known without it counts.
        self.mirrors().reach(record, own).await.unwrap_or(own).bytes
    }
}

/// Number of bytes that disks of the server at `place` lack of its part. The size of the file may
/// be unknown, so that is at least one if they lack anything.
fn lacking_bytes(lacking: &LackingFile, place: ServerId, file_bytes: u64) -> u64 {
    let stripe = &lacking.record.stripe;
    let bytes = |disk| stripe.object_bytes(place, disk, file_bytes);
    let all: u64 = lacking.own.iter().map(|disk| bytes(*disk)).sum();
    all.max(u64::from(!lacking.own.is_empty()))
}
