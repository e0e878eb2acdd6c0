//! The catalogue: which files there are.
//!
//! Invariants: a name stands for at most one file; a number is never given twice, not even after a
//! removal or a restart; a change is on stable storage before it is answered.

use policy::BYTES_MAX;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, ServerId};
use wire::{Fault, FileRecord, Reply, Request};
use world::{RecordsError, World};

/// The file information server: names, sizes and stripes of all files.
pub(crate) struct Catalogue<W> {
    world: W,
    files: RefCell<BTreeMap<String, FileRecord>>,
    /// Names that a creation is under way for.
    reserved: RefCell<BTreeSet<String>>,
    next: Cell<u64>,
}

/// The longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// The record that holds the next number; files are numbered from the one after it.
const NEXT_KEY: u64 = 0;

impl<W: World> Catalogue<W> {
    /// The catalogue as the records of this node have it.
    pub(crate) async fn load(world: W) -> Result<Self, Fault> {
        let records = world.records().await.map_err(|error| failed(&error))?;
        let mut files = BTreeMap::new();
        let mut next = NEXT_KEY + 1;
        for (key, value) in records {
            let damaged = |error: wire::DecodeError| Fault::CatalogueFailed {
                cause: format!("record {key} is damaged: {error}"),
            };
            if key == NEXT_KEY {
                next = next.max(wire::decode_record(&value).map_err(damaged)?);
            } else {
                next = next.max(key.saturating_add(1));
                let record: FileRecord = wire::decode_record(&value).map_err(damaged)?;
                files.insert(record.name.clone(), record);
            }
        }
        Ok(Self {
            world,
            files: RefCell::new(files),
            reserved: RefCell::default(),
            next: Cell::new(next),
        })
    }

    /// Answers a request of the catalogue; any other is refused.
    pub(crate) async fn serve(&self, request: Request) -> Result<Reply, Fault> {
        match request {
            Request::Create(record) => self.create(record).await.map(Reply::File),
            Request::Stat { name } => self.stat(&name).map(Reply::File),
            Request::List => Ok(Reply::Files(self.files.borrow().values().cloned().collect())),
            Request::Remove { name } => self.remove(&name).await.map(|()| Reply::Done),
            other => Err(Fault::BadRequest { cause: format!("not for the catalogue: {other:?}") }),
        }
    }

    async fn create(&self, record: FileRecord) -> Result<FileRecord, Fault> {
        check_record(&record)?;
        let name = record.name.clone();
        let taken = self.files.borrow().contains_key(&name);
        if taken || !self.reserved.borrow_mut().insert(name.clone()) {
            return Err(Fault::FileExists { name });
        }
        let _reservation = Reservation { reserved: &self.reserved, name: &name };
        let file = FileId(self.next.get());
        self.next.set(file.0 + 1);
        let record = FileRecord { file, ..record };
        self.put(NEXT_KEY, wire::encode_record(&self.next.get())).await?;
        self.put(file.0, wire::encode_record(&record)).await?;
        self.files.borrow_mut().insert(name.clone(), record.clone());
        Ok(record)
    }

    fn stat(&self, name: &str) -> Result<FileRecord, Fault> {
        let record = self.files.borrow().get(name).cloned();
        record.ok_or_else(|| Fault::NoSuchFile { name: name.to_owned() })
    }

    async fn remove(&self, name: &str) -> Result<(), Fault> {
        let record = self.stat(name)?;
        let deleted = self.world.record_delete(record.file.0).await;
        deleted.map_err(|error| failed(&error))?;
        let mut files = self.files.borrow_mut();
        // Another file may have the name by now, made after another removal.
        if files.get(name).is_some_and(|now| now.file == record.file) {
            files.remove(name);
        }
        Ok(())
    }

    async fn put(&self, key: u64, value: Vec<u8>) -> Result<(), Fault> {
        self.world.record_put(key, value).await.map_err(|error| failed(&error))
    }
}

/// A name that is given back when its creation ends, well or not.
struct Reservation<'a> {
    reserved: &'a RefCell<BTreeSet<String>>,
    name: &'a str,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.reserved.borrow_mut().remove(self.name);
    }
}

fn failed(error: &RecordsError) -> Fault {
    let cause = error.to_string();
    match error {
        RecordsError::NoSpace { .. } => Fault::NoSpace { server: ServerId(0), cause },
        RecordsError::Failed { .. } => Fault::CatalogueFailed { cause },
    }
}

/// Whether there can be a file as a client, which may be anyone, describes it.
pub(crate) fn check_record(record: &FileRecord) -> Result<(), Fault> {
    check_name(&record.name)?;
    if record.bytes > BYTES_MAX {
        let cause = format!("a file has at most {BYTES_MAX} bytes, not {}", record.bytes);
        return Err(Fault::BadRequest { cause });
    }
    let stripe = record.stripe.validate();
    stripe.map_err(|error| Fault::BadRequest { cause: error.to_string() })
}

fn check_name(name: &str) -> Result<(), Fault> {
    let cause = match name.len() {
        0 => "it is empty".to_owned(),
        length if length > NAME_BYTES_MAX => format!("it has more than {NAME_BYTES_MAX} bytes"),
        _ if name.chars().any(char::is_control) => "it holds a control character".to_owned(),
        _ => return Ok(()),
    };
    let shown = name.chars().take(40).collect();
    Err(Fault::BadName { name: shown, cause })
}
