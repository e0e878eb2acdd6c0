//! Records of a file that match a condition.
//!
//! With a group, all members make the calls here, with equal arguments and in the same order.
//!
//! *Invariant:* all members' calls end with the same error, or none does, unless a member makes no
//! call at all; then those of others end after the time-out.

use super::connection::Shared;
use super::file::File;
use super::group::Group;
use super::member::Member;
use super::on_thread::OnThread;
use super::operation::Operation;
use super::user_memory::RawMemory;
use filesystem::Fault;
use filesystem::collective::{Agreements, FoundRecords, Selecting, Share};
use interface::{RecordType, TypedRecords, UserError, read_npy_header};
use policy::{Condition, Expression, FieldAt, RecordGrid, Reduced, Reduction};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use world_real::RealWorld;

/// Bytes of a file in which its header is looked for.
const HEADER_BYTES: u64 = 1 << 16;

/// Records that match, of one process. The servers keep them until that of rank 0 is dropped, as
/// far as they have room for them; others they read again.
pub struct Records {
    file: File,
    group: Option<Group>,
    found: Arc<OnThread<FoundRecords<RealWorld>>>,
    count: u64,
    record_bytes: u32,
    blocks: Blocks,
}

/// Blocks of a file that a selection concerns, as rank 0 knows them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Blocks {
    /// Blocks that were read.
    pub read: u64,
    /// Blocks that were not read, since no record of them matches.
    pub skipped: u64,
}

impl From<(u64, u64)> for Blocks {
    fn from((read, skipped): (u64, u64)) -> Self {
        Self { read, skipped }
    }
}

/// A call of a process, on the I/O thread.
struct Call {
    shared: Rc<Shared>,
    member: Option<Rc<Member>>,
    agreements: Agreements,
}

impl Call {
    fn selecting(&self) -> Selecting<'_, RealWorld> {
        let group = self.member.as_ref().map(|member| member.membership());
        Selecting::new(&self.shared.client, group)
    }
}

impl File {
    /// Returns the records of the file: of a type as a user writes it ([`RecordType::parse`]), or
    /// as the .npy header of the file says. `start` is the first byte, by default 0 or the end of
    /// the header, and `count` their number, by default all.
    ///
    /// # Errors
    /// A type that makes no sense or does not divide the file, and a file without a header.
    pub fn typed_records(
        &self,
        record_type: Option<&str>,
        start: Option<u64>,
        count: Option<u64>,
    ) -> Result<TypedRecords, UserError> {
        let bytes = self.size()?;
        let Some(text) = record_type else {
            let mut head = vec![0; bytes.min(HEADER_BYTES) as usize];
            let read = self.read_at(&mut head, 0)?;
            let mut found = read_npy_header(&head[..read])?;
            found.start = start.unwrap_or(found.start);
            found.count = count.unwrap_or(found.count);
            return Ok(found);
        };
        let (records, start) = (RecordType::parse(text)?, start.unwrap_or(0));
        let (record_bytes, left) = (u64::from(records.record_bytes()), bytes.checked_sub(start));
        let all = left.filter(|left| left % record_bytes == 0).map(|left| left / record_bytes);
        let count = count.or(all).ok_or_else(|| {
            UserError::usage(
                format!("cannot read {:?} as records", self.name()),
                format!(
                    "{bytes} bytes from byte {start} on are no whole number of records of \
                     {record_bytes} bytes"
                ),
                "correct the type, or say where the records begin, or how many they are",
            )
        })?;
        Ok(TypedRecords { records, start, count })
    }

    /// Finds the records that match. With a group, all members make the call, and each gets its
    /// share; without one, this process gets all.
    ///
    /// # Errors
    /// [`ErrorKind::BadAccess`](crate::ErrorKind::BadAccess) if the records do not fit the file,
    /// the condition does not fit the records, or a key names no member;
    /// [`ErrorKind::CallsDiffer`](crate::ErrorKind::CallsDiffer) if the members want different
    /// records; faults of the servers.
    pub fn find_records(
        &self,
        group: Option<&Group>,
        records: RecordGrid,
        condition: Condition,
        share: Share,
    ) -> Result<Records, UserError> {
        let (known, thread) = (self.known().clone(), Arc::clone(&self.connection().0.thread));
        let end = records.extent_end();
        let found = self.on_records(group, "find", false, async move |call| {
            let file = known.reaching(&call.shared.client, end).await;
            let wanted = (records, condition);
            let file = file.as_deref().map_err(Clone::clone);
            let found = call.selecting().find(&call.agreements, file, wanted, share).await?;
            let (count, blocks) = (found.count(), found.blocks().into());
            Ok((count, blocks, Arc::new(OnThread::new(&thread, found))))
        });
        let (count, blocks, found) = found.wait()?;
        let (file, group, record_bytes) = (self.clone(), group.cloned(), records.record_bytes);
        Ok(Records { file, group, found, count, record_bytes, blocks })
    }

    /// Finds the records that match, for this process alone, and divides them into parts: a record
    /// goes to the part that `key` names, and to none if that is negative.
    ///
    /// # Errors
    /// As for [`File::find_records`].
    pub fn divide_records(
        &self,
        records: RecordGrid,
        condition: Condition,
        key: Expression,
        parts: u32,
    ) -> Result<Vec<Records>, UserError> {
        let (known, thread) = (self.known().clone(), Arc::clone(&self.connection().0.thread));
        let end = records.extent_end();
        let found = self.on_records(None, "divide", false, async move |call| {
            let file = known.reaching(&call.shared.client, end).await?;
            let (wanted, by) = ((records, condition), (key, parts));
            let found = call.selecting().divide(&file, wanted, by).await?;
            let one = |one: FoundRecords<_>| {
                let (count, blocks) = (one.count(), one.blocks().into());
                (count, blocks, Arc::new(OnThread::new(&thread, one)))
            };
            Ok(found.into_iter().map(one).collect::<Vec<_>>())
        });
        let record_bytes = records.record_bytes;
        let one = |(count, blocks, found)| {
            let (file, group) = (self.clone(), None);
            Records { file, group, found, count, record_bytes, blocks }
        };
        Ok(found.wait()?.into_iter().map(one).collect())
    }

    /// Has the servers compute bounds of fields for each block, so that later selections of the
    /// same records do not read blocks in which nothing matches. They count until the file changes,
    /// or its servers end. With a group, all members make the call.
    ///
    /// # Errors
    /// As for [`File::find_records`]; a file that changes meanwhile.
    pub fn summarise_records(
        &self,
        group: Option<&Group>,
        records: RecordGrid,
        fields: Vec<FieldAt>,
    ) -> Result<(), UserError> {
        let (known, end) = (self.known().clone(), records.extent_end());
        let summarised = self.on_records(group, "summarise", false, async move |call| {
            let file = known.reaching(&call.shared.client, end).await;
            let file = file.as_deref().map_err(Clone::clone);
            call.selecting().summarise(&call.agreements, file, records, fields).await
        });
        summarised.wait()
    }

    /// Computes a number from the records that match. With a group, all members make the call, and
    /// all get the number.
    ///
    /// # Errors
    /// As for [`File::find_records`].
    pub fn reduce_records(
        &self,
        group: Option<&Group>,
        records: RecordGrid,
        condition: Condition,
        reduction: Reduction,
    ) -> Result<(Reduced, Blocks), UserError> {
        let (known, end) = (self.known().clone(), records.extent_end());
        let reduced = self.on_records(group, "reduce", false, async move |call| {
            let file = known.reaching(&call.shared.client, end).await;
            let wanted = (records, condition);
            let file = file.as_deref().map_err(Clone::clone);
            call.selecting().reduce(&call.agreements, file, wanted, reduction).await
        });
        reduced.wait().map(|(reduced, blocks)| (reduced, blocks.into()))
    }

    /// Begins a call on the I/O thread, alone or as a member of a group.
    fn on_records<T: Send + 'static, F: Future<Output = Result<T, Fault>> + 'static>(
        &self,
        group: Option<&Group>,
        verb: &'static str,
        uses_memory: bool,
        work: impl FnOnce(Call) -> F + Send + 'static,
    ) -> Operation<T> {
        let (name, member) = (self.name(), group.map(Group::member));
        let what = move || format!("cannot {verb} records of {name:?}");
        self.connection().begin(what, uses_memory, move |shared| {
            let member = member.map(|member| Rc::clone(member.get()));
            // The order of calls is that of the jobs.
            let begin = |member: &Rc<Member>| member.membership().begin_agreements();
            let agreements = member.as_ref().map_or_else(Agreements::of_one, begin);
            work(Call { shared, member, agreements })
        })
    }
}

impl Records {
    /// Number of records of this process.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Blocks that were read for it, and that were not.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> u32 {
        self.record_bytes
    }

    /// Reads the records, in the order of the file. With a group, all members make the call.
    /// Returns the number of records.
    ///
    /// # Errors
    /// [`ErrorKind::BadAccess`](crate::ErrorKind::BadAccess) if `into` of a member is too small;
    /// then no bytes have moved. Faults of the servers, among them that the file was changed since
    /// the records were found.
    pub fn read(&self, into: &mut [u8]) -> Result<u64, UserError> {
        RawMemory::read_to(into, |memory| self.start_read_memory(memory))
    }

    /// Reads as many records as `into` has room for, from the one of number `first` among those
    /// of this process on. With a group, all members make the call. Returns their number.
    ///
    /// # Errors
    /// As for [`Records::read`].
    pub fn read_from(&self, first: u64, into: &mut [u8]) -> Result<u64, UserError> {
        let room = into.len() as u64 / u64::from(self.record_bytes.max(1));
        let range = first.min(self.count)..first.saturating_add(room).min(self.count);
        RawMemory::read_to(into, |memory| self.start_read_range(range, memory))
    }

    /// Begins a [`Records::read`] to memory of the caller.
    pub fn start_read_memory(&self, memory: RawMemory) -> Operation<u64> {
        self.start_read_range(0..self.count, memory)
    }

    fn start_read_range(&self, range: Range<u64>, memory: RawMemory) -> Operation<u64> {
        let (found, count) = (Arc::clone(&self.found), range.end - range.start);
        self.file.on_records(self.group.as_ref(), "read", true, async move |call| {
            let (memory, selecting) = (memory.lend(), call.selecting());
            let taken = selecting.take(&call.agreements, found.get(), range, &memory);
            taken.await.map(|()| count)
        })
    }
}
