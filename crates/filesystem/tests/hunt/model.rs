//! Model of the files and names of a machine, as far as an outside observer can know.
//!
//! Every byte has the values that a read may return *now*, and those that the disk may have *kept*
//! if its server loses power at this moment. A write that begins adds its value to both; one that
//! is acknowledged is the only value now; a sync makes it the only one kept; a crash lets every
//! kept value be the current one.
//!
//! Invariant: every value that may be read may be kept.

use policy::Stripe;
use std::collections::{BTreeMap, BTreeSet};
use units::{Duration, FileId, Instant};

/// Time after a failure during which the failed operation may still take effect: messages in flight
/// arrive.
pub(crate) const GRACE: Duration = Duration::from_ms(20);

/// Bytes of a file with their values.
pub(crate) type Values = Vec<(u64, u8)>;

/// One byte of a file.
#[derive(Clone, Debug)]
struct Byte {
    now: Vec<u8>,
    kept: Vec<u8>,
    /// Values that could be read until some instant.
    past: Vec<(u8, Instant)>,
    /// The latest write, once it is acknowledged and until it is synced.
    acknowledged: Option<Acknowledged>,
    /// Instant of the last event that concerned it, or until which a write of it may go on.
    disturbed: Instant,
    /// True when it may be one value now and another later, because the disk lost a value that the
    /// cache has, or a client one that it had gathered.
    flips: bool,
    /// Session of the client that may still have gathered its latest write.
    gathered: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    value: u8,
    session: u64,
    at: Instant,
    /// True when its server has crashed or failed to write since the write began.
    endangered: bool,
}

/// A file, from the moment of the request to create it.
pub(crate) struct File {
    pub(crate) id: Option<FileId>,
    /// True when a client has asked to remove it.
    pub(crate) condemned: bool,
    /// True when a client has cut it.
    pub(crate) was_cut: bool,
    bytes: Vec<Byte>,
    stripe: Stripe,
}

/// Latest events of a server.
#[derive(Clone, Copy, Default)]
struct Troubles {
    crashed: Option<Instant>,
    failing: bool,
    failed: Option<Instant>,
}

/// The whole model.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) files: Vec<File>,
    /// Possible sets of names of each team, each name with its file.
    pub(crate) names: Vec<Vec<BTreeMap<String, usize>>>,
    servers: BTreeMap<u32, Troubles>,
}

fn add(values: &mut Vec<u8>, value: u8) {
    if !values.contains(&value) {
        values.push(value);
    }
}

impl Byte {
    fn new() -> Self {
        Self {
            now: vec![0],
            kept: vec![0],
            past: Vec::new(),
            acknowledged: None,
            disturbed: Instant::START,
            flips: false,
            gathered: None,
        }
    }

    /// Narrows the byte to `value`.
    fn narrow(&mut self, value: u8, now: Instant) {
        let gone = self.now.iter().filter(|old| **old != value);
        self.past.extend(gone.map(|old| (*old, now)));
        self.now = vec![value];
    }

    /// Widens the byte to all values that the disk may have.
    fn widen(&mut self, now: Instant) {
        for value in self.kept.clone() {
            add(&mut self.now, value);
        }
        self.disturbed = self.disturbed.max(now);
        if let Some(acknowledged) = &mut self.acknowledged {
            acknowledged.endangered = true;
        }
    }

    fn may_be_read(&self, value: u8, since: Instant) -> bool {
        self.now.contains(&value)
            || self.past.iter().any(|(old, until)| *old == value && *until >= since)
    }
}

impl Model {
    pub(crate) fn new(teams: usize) -> Self {
        Self { names: vec![vec![BTreeMap::new()]; teams], ..Self::default() }
    }

    /// Adds a file that a client asks to create.
    pub(crate) fn add_file(&mut self, bytes: u64, stripe: Stripe) -> usize {
        let bytes = (0..bytes).map(|_| Byte::new()).collect();
        self.files.push(File { id: None, condemned: false, was_cut: false, bytes, stripe });
        self.files.len() - 1
    }

    /// Notes the number of a file, which no other may have had.
    pub(crate) fn identify(&mut self, file: usize, id: FileId) {
        let others = self.files.iter().enumerate().filter(|(other, _)| *other != file);
        for (_, other) in others {
            assert_ne!(other.id, Some(id), "a number must not be given twice");
        }
        let known = *self.files[file].id.get_or_insert(id);
        assert_eq!(known, id, "a name must stand for the file it was given to");
    }

    pub(crate) fn file_of(&self, id: FileId) -> Option<usize> {
        self.files.iter().position(|file| file.id == Some(id))
    }

    pub(crate) fn is_condemned(&self, id: FileId) -> bool {
        self.file_of(id).is_some_and(|file| self.files[file].condemned)
    }

    pub(crate) fn length(&self, file: usize) -> u64 {
        self.files[file].bytes.len() as u64
    }

    /// Grows a file on request of a client; the next user finds it grown.
    pub(crate) fn grow(&mut self, file: usize, by: u64) {
        self.files[file].bytes.extend((0..by).map(|_| Byte::new()));
    }

    fn server_of(stripe: &Stripe, offset: u64) -> u32 {
        stripe.locate(offset / stripe.block_bytes).server.0
    }

    /// Begins a write that ends, or fails, until some instant at the latest.
    pub(crate) fn begin_write(&mut self, file: usize, values: &Values, until: Instant) {
        for (offset, value) in values {
            let byte = &mut self.files[file].bytes[*offset as usize];
            byte.disturbed = until;
            byte.acknowledged = None;
            byte.gathered = None;
            add(&mut byte.now, *value);
            add(&mut byte.kept, *value);
        }
    }

    /// Ends a write that has failed, or of which a server may have lost what it had acknowledged:
    /// any part of it may have been made.
    pub(crate) fn fail_write(&mut self, file: usize, values: &Values, now: Instant) {
        for (offset, _) in values {
            let byte = &mut self.files[file].bytes[*offset as usize];
            byte.disturbed = byte.disturbed.min(now);
        }
        self.disturb(file, now);
    }

    /// Notes that a write was gathered by a client, which loses it if its connection is lost.
    pub(crate) fn gathered(&mut self, (file, session): (usize, u64), values: &Values) {
        for (offset, _) in values {
            self.files[file].bytes[*offset as usize].gathered = Some(session);
        }
    }

    /// Notes that clients may lose what they have gathered: one of them, or all.
    pub(crate) fn lose_gathered(&mut self, session: Option<u64>, now: Instant) {
        for byte in self.files.iter_mut().flat_map(|file| &mut file.bytes) {
            let is_lost =
                byte.gathered.is_some() && session.is_none_or(|it| byte.gathered == Some(it));
            if is_lost {
                byte.widen(now);
                byte.flips = true;
            }
        }
    }

    /// Acknowledges a write that began at `begun`; with `sync` it is on stable storage.
    pub(crate) fn acknowledge(
        &mut self,
        (file, session): (usize, u64),
        values: &Values,
        (begun, now): (Instant, Instant),
        sync: bool,
    ) {
        let file = &mut self.files[file];
        for &(offset, value) in values {
            let byte = &mut file.bytes[offset as usize];
            byte.disturbed = now;
            byte.flips = false;
            let server = Self::server_of(&file.stripe, offset);
            let troubles = self.servers.get(&server).copied().unwrap_or_default();
            let since = |at: Option<Instant>| at.is_some_and(|at| at >= begun);
            let crashed = since(troubles.crashed);
            let failed = troubles.failing || since(troubles.failed);
            if sync {
                byte.narrow(value, now);
                byte.kept = vec![value];
                continue;
            }
            let endangered = crashed || failed;
            byte.acknowledged = Some(Acknowledged { value, session, at: now, endangered });
            if endangered {
                byte.widen(now);
                byte.flips = failed;
            } else {
                byte.narrow(value, now);
            }
        }
    }

    /// Notes that the client of a write may be gone: any part of it may have been made.
    pub(crate) fn disturb(&mut self, file: usize, now: Instant) {
        for byte in &mut self.files[file].bytes {
            byte.disturbed = byte.disturbed.max(now);
        }
    }

    /// Notes the success of a sync that began at `begun`: all earlier acknowledged writes of its
    /// session are on stable storage, and those of other sessions unless an event concerned them.
    pub(crate) fn synced(&mut self, file: usize, session: u64, (begun, now): (Instant, Instant)) {
        for byte in &mut self.files[file].bytes {
            let Some(last) = byte.acknowledged else { continue };
            if last.at <= begun && (last.session == session || !last.endangered) {
                byte.narrow(last.value, now);
                byte.kept = vec![last.value];
                byte.acknowledged = None;
                byte.gathered = None;
                byte.flips = false;
                byte.disturbed = now;
            }
        }
    }

    /// Checks bytes that were read between two instants. Panics when one of them is impossible.
    pub(crate) fn check(
        &mut self,
        file: usize,
        values: &Values,
        (begun, now): (Instant, Instant),
        what: &str,
    ) {
        for &(offset, value) in values {
            let byte = &mut self.files[file].bytes[offset as usize];
            assert!(
                byte.may_be_read(value, begun),
                "{what}: byte {offset} of file {file} cannot be {value} at {} us: {byte:?}",
                now.as_ns() / 1000,
            );
            // From now on the byte has the value that was read.
            if !byte.flips && byte.now.contains(&value) && byte.disturbed + GRACE < begun {
                byte.narrow(value, now);
            }
        }
    }

    /// Checks a whole file that was read between two instants: beyond its end are zeros. So it must
    /// not end before any written byte.
    pub(crate) fn check_all(
        &mut self,
        file: usize,
        mut values: Values,
        between: (Instant, Instant),
        what: &str,
    ) {
        values.extend((values.len() as u64..self.length(file)).map(|offset| (offset, 0)));
        self.check(file, &values, between, what);
    }

    /// Notes a request to remove a file: its data may be gone before its name.
    pub(crate) fn condemn(&mut self, file: usize, now: Instant) {
        self.files[file].condemned = true;
        for byte in &mut self.files[file].bytes {
            add(&mut byte.now, 0);
            add(&mut byte.kept, 0);
            byte.disturbed = now;
            byte.acknowledged = None;
            byte.flips = true;
        }
    }

    /// Notes that a server has lost its power.
    pub(crate) fn crashed(&mut self, server: u32, now: Instant) {
        self.servers.entry(server).or_default().crashed = Some(now);
        self.on_server(server, |byte| {
            byte.widen(now);
            byte.flips = false;
        });
    }

    /// Notes that the disks of a server begin or cease to fail.
    pub(crate) fn failing(&mut self, server: u32, fails: bool, now: Instant) {
        let troubles = self.servers.entry(server).or_default();
        (troubles.failing, troubles.failed) = (fails, Some(now));
        self.on_server(server, |byte| {
            byte.widen(now);
            byte.flips |= byte.kept.len() > 1;
        });
    }

    fn on_server(&mut self, server: u32, act: impl Fn(&mut Byte)) {
        for file in &mut self.files {
            let stripe = &file.stripe;
            let here = (0..).zip(&mut file.bytes);
            here.filter(|(offset, _)| Self::server_of(stripe, *offset) == server)
                .for_each(|(_, byte)| act(byte));
        }
    }

    /// Returns the names of a team, if they are certain.
    pub(crate) fn known_names(&self, team: usize) -> Option<&BTreeMap<String, usize>> {
        match &self.names[team][..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Begins a change of a team's names: from now on it may have been made. Returns its result.
    pub(crate) fn begin_change(
        &mut self,
        team: usize,
        change: impl Fn(&mut BTreeMap<String, usize>),
    ) -> BTreeMap<String, usize> {
        let mut changed = self.names[team][0].clone();
        change(&mut changed);
        self.names[team].push(changed.clone());
        changed
    }

    /// Notes the listed names of a team, with the files' numbers. Panics when they are impossible.
    pub(crate) fn listed(&mut self, team: usize, found: &BTreeMap<String, FileId>, what: &str) {
        let names: BTreeSet<&String> = found.keys().collect();
        let fits = |candidate: &BTreeMap<String, usize>| {
            candidate.keys().collect::<BTreeSet<_>>() == names
                && candidate
                    .iter()
                    .all(|(name, file)| self.files[*file].id.is_none_or(|id| id == found[name]))
        };
        let fitting: Vec<_> =
            self.names[team].iter().filter(|names| fits(names)).cloned().collect();
        let Some(first) = fitting.first() else {
            panic!("{what}: there are {found:?}, not any of {:?}", self.names[team]);
        };
        for (name, file) in first {
            self.identify(*file, found[name]);
        }
        self.names[team] = vec![first.clone()];
    }
}
