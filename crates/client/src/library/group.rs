//! Groups: processes that make collective calls together.

use super::calls_alone::{CallsAlone, Manner};
use super::collective_options::CollectiveOptions;
use super::connection::Connection;
use super::file::File;
use super::member::{FileCall, Member};
use super::on_thread::OnThread;
use super::operation::Operation;
use super::peers::Peers;
use super::range_lock::RangeLock;
use super::user_memory::RawMemory;
use filesystem::Fault;
use filesystem::collective::Strategy;
use interface::{ErrorKind, UserError};
use policy::{Direction, LockKind, OwnPart};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use units::{ByteRange, ClientId, FileId};

/// Length of a group's number in bytes, as members exchange it.
const NUMBER_BYTES: usize = 8;

/// One process's membership in a group. Members make the same collective calls in the same order,
/// each with its own part; several calls may be under way. Clones are handles to the same one; the
/// process leaves the group with the last of them.
#[derive(Clone)]
pub struct Group(Arc<Inner>);

struct Inner {
    connection: Connection,
    member: Option<Arc<OnThread<Rc<Member>>>>,
    rank: u32,
    size: u32,
    alone: Arc<CallsAlone>,
}

impl Group {
    /// Forms a group whose members meet at the servers under a name that they share and no other
    /// group uses at the time. Collective: every member calls it, and it waits for all of them.
    ///
    /// # Errors
    /// [`ErrorKind::MembersMissing`] names the ranks that have not come within the time-out.
    pub fn form(
        connection: &Connection,
        name: &str,
        rank: u32,
        size: u32,
    ) -> Result<Self, UserError> {
        let own = some_number(rank);
        let (what, name) = (format!("cannot form the group {name:?}"), format!("name {name}"));
        let timeout = connection.options().timeout();
        let met = connection.run(
            || what,
            async move |shared| {
                shared.client.all_gather(&name, (ClientId(rank), size), own, timeout).await
            },
        )?;
        Self::register(connection, rank, size, &met)
    }

    /// A group of this process alone.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn alone(connection: &Connection) -> Result<Self, UserError> {
        Self::register(connection, 0, 1, &[some_number(0)])
    }

    /// Forms a group by any all-gather that its members have: `all_gather` gives each member's
    /// bytes to all of them, and returns them by rank. It is called once, with 8 bytes.
    ///
    /// # Errors
    /// Errors of `all_gather`, and faults that the servers answer with.
    pub fn form_with<E: std::fmt::Display>(
        connection: &Connection,
        rank: u32,
        size: u32,
        all_gather: impl FnOnce(&[u8]) -> Result<Vec<Vec<u8>>, E>,
    ) -> Result<Self, UserError> {
        let met = all_gather(&some_number(rank)).map_err(|error| {
            UserError::of_kind(
                ErrorKind::Other,
                "cannot form a group",
                format!("the members could not exchange bytes: {error}"),
                "see the error of the program's all-gather function",
            )
        })?;
        Self::register(connection, rank, size, &met)
    }

    /// Makes this process known to the servers as a member of the group that rank 0 has numbered.
    fn register(
        connection: &Connection,
        rank: u32,
        size: u32,
        met: &[Vec<u8>],
    ) -> Result<Self, UserError> {
        let number =
            met.first().and_then(|first| Some(u64::from_le_bytes(first[..].try_into().ok()?)));
        let number = number.filter(|_| met.len() == size as usize).ok_or_else(|| {
            UserError::usage(
                "cannot form a group",
                format!("the all-gather of {size} members returned {} values", met.len()),
                format!("it must return the {NUMBER_BYTES} bytes of each member, by rank"),
            )
        })?;
        let timeout = connection.options().timeout();
        let (instance, host) =
            (connection.instance().clone(), connection.options().peer_host.clone());
        let thread = Arc::clone(&connection.0.thread);
        let member = connection.run(
            || "cannot form a group".to_owned(),
            async move |shared| {
                let (client, place) = (shared.client.clone(), (ClientId(rank), size));
                let membership =
                    filesystem::Group::register(client, number, place, timeout).await?;
                let member = Member::new(membership, Peers::new(instance, host, number));
                Ok(Arc::new(OnThread::new(&thread, Rc::new(member))))
            },
        )?;
        let (connection, member) = (connection.clone(), Some(member));
        let alone = Arc::default();
        let group = Self(Arc::new(Inner { connection, member, rank, size, alone }));
        // A member that is registered everywhere may be named as missing; from here on, all may be.
        match group.barrier() {
            // A server was lost while they met. The group is as good without.
            Err(error) if error.kind == ErrorKind::ServerLeft && group.0.connection.waits() => {}
            met => met?,
        }
        Ok(group)
    }

    /// Rank of this process.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// The connection that it was formed by.
    pub fn connection(&self) -> &Connection {
        &self.0.connection
    }

    /// Waits until all members are here.
    ///
    /// # Errors
    /// [`ErrorKind::MembersMissing`] names the ranks that have not come within the time-out.
    pub fn barrier(&self) -> Result<(), UserError> {
        self.all_gather(&[]).map(|_| ())
    }

    /// Gives each member's bytes, at most 4096, to all of them; returns them by rank. Collective.
    ///
    /// # Errors
    /// As for [`Group::barrier`].
    pub fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, UserError> {
        let (member, own) = (self.member(), own.to_vec());
        let what = || "members could not exchange bytes".to_owned();
        self.0.connection.run(what, move |_| {
            let member = Rc::clone(member.get());
            // The order of calls is that of the jobs.
            let name = member.membership().begin_all_gather();
            async move { member.membership().all_gather_as(&name, own).await }
        })
    }

    /// Adds to the counter of the group, which is 0 when the group is formed, and returns the value
    /// before. A call of this member alone: no other need be in a call.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the sum does not fit 64 bits; the counter stays as it is.
    pub fn counter_fetch_add(&self, add: u64) -> Result<u64, UserError> {
        self.on_counter("add to", async move |member| {
            member.membership().counter_fetch_add(add).await
        })
    }

    /// Sets the counter of the group. A call of this member alone.
    ///
    /// # Errors
    /// [`ErrorKind::ServerLeft`] when the server that keeps the counter has gone.
    pub fn counter_set(&self, value: u64) -> Result<(), UserError> {
        self.on_counter("set", async move |member| member.membership().counter_set(value).await)
    }

    /// Returns the counter of the group. A call of this member alone.
    ///
    /// # Errors
    /// As for [`Group::counter_set`].
    pub fn counter_get(&self) -> Result<u64, UserError> {
        self.on_counter("read", async |member| member.membership().counter_get().await)
    }

    /// Carries out an operation on the counter, on the I/O thread.
    fn on_counter<T: Send + 'static>(
        &self,
        verb: &'static str,
        operation: impl AsyncFnOnce(Rc<Member>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, UserError> {
        let (member, rank, size) = (self.member(), self.0.rank, self.0.size);
        let what = move || format!("rank {rank} of {size} cannot {verb} the counter of its group");
        self.0.connection.run(what, move |_| {
            let member = Rc::clone(member.get());
            async move { operation(member).await }
        })
    }

    /// Locks a range of bytes among the members of the group; it need not be of a file. Waits until
    /// no other member holds a lock that conflicts: one of an overlapping range, where one of the
    /// two is exclusive. Conflicting requests are granted in the order of their arrival. Locks of
    /// one member do not conflict with one another. A call of this member alone.
    ///
    /// # Errors
    /// [`ErrorKind::LockTimedOut`] names the rank that holds a conflicting lock after the time-out,
    /// [`ErrorKind::Usage`] an empty range, [`ErrorKind::Refused`] a number of locks beyond what
    /// the server keeps.
    pub fn lock_range(&self, range: Range<u64>, kind: LockKind) -> Result<RangeLock, UserError> {
        let Range { start, end } = range;
        let (member, rank, size) = (self.member(), self.0.rank, self.0.size);
        let what = move || format!("rank {rank} of {size} cannot lock bytes {start} to {end}");
        if start >= end {
            return Err(UserError::usage(
                what(),
                "there are no bytes in this range",
                "lock at least one byte",
            ));
        }
        let range = ByteRange::new(start, end);
        let connection = self.0.connection.clone();
        let thread = Arc::clone(&connection.0.thread);
        let lock = connection.run(what, move |_| {
            let member = Rc::clone(member.get());
            async move {
                let lock = member.membership().lock_range(range, kind).await?;
                Ok(Arc::new(OnThread::new(&thread, RefCell::new(Some(lock)))))
            }
        })?;
        Ok(RangeLock::new(connection, lock, range))
    }

    /// Reads this member's part of a file to `into`, together with all members. Collective. Returns
    /// the number of bytes of the part.
    ///
    /// # Errors
    /// Every member's call ends with the same error, which names missing or dead members, the
    /// server or the disk.
    pub fn read(&self, file: &File, part: &OwnPart, into: &mut [u8]) -> Result<u64, UserError> {
        self.read_as(CollectiveOptions::default(), file, part, into)
    }

    /// [`Group::read`] with options.
    ///
    /// # Errors
    /// As for [`Group::read`].
    pub fn read_as(
        &self,
        options: CollectiveOptions,
        file: &File,
        part: &OwnPart,
        into: &mut [u8],
    ) -> Result<u64, UserError> {
        RawMemory::read_to(into, |memory| {
            self.start_memory(Direction::Read, options, file, part.clone(), memory)
        })
    }

    /// Writes this member's part of a file from `from`, together with all members. A file that ends
    /// before becomes longer. Collective. Where parts of members overlap, it is undefined whose
    /// bytes are written. Servers may write some of the data behind: [`File::flush`] meets their
    /// errors, as does [`CollectiveOptions::sync`]. Returns the number of bytes of the part.
    ///
    /// # Errors
    /// As for [`Group::read`].
    pub fn write(&self, file: &File, part: &OwnPart, from: &[u8]) -> Result<u64, UserError> {
        self.write_as(CollectiveOptions::default(), file, part, from)
    }

    /// [`Group::write`] with options.
    ///
    /// # Errors
    /// As for [`Group::read`].
    pub fn write_as(
        &self,
        options: CollectiveOptions,
        file: &File,
        part: &OwnPart,
        from: &[u8],
    ) -> Result<u64, UserError> {
        RawMemory::write_from(from, |memory| {
            self.start_memory(Direction::Write, options, file, part.clone(), memory)
        })
    }

    /// Begins a [`Group::read`] into a vector, which comes back with the result.
    pub fn start_read(&self, file: &File, part: OwnPart, into: Vec<u8>) -> Operation<Vec<u8>> {
        self.start_vector(Direction::Read, CollectiveOptions::default(), file, part, into)
    }

    /// Begins a [`Group::write`] from a vector, which comes back with the result.
    pub fn start_write(&self, file: &File, part: OwnPart, from: Vec<u8>) -> Operation<Vec<u8>> {
        self.start_vector(Direction::Write, CollectiveOptions::default(), file, part, from)
    }

    /// Begins a [`Group::read`] or [`Group::write`] with options and a vector, which comes back
    /// with the result.
    pub fn start_vector(
        &self,
        direction: Direction,
        options: CollectiveOptions,
        file: &File,
        part: OwnPart,
        bytes: Vec<u8>,
    ) -> Operation<Vec<u8>> {
        if let Err(refused) = self.check_connection(file) {
            return Operation::ended(Err(refused));
        }
        RawMemory::of_vector(bytes, |memory, bytes| {
            let manner = self.manner_of(options, file);
            if manner == Manner::Alone {
                return self.0.alone.make(direction, file, part, memory, move |_| bytes);
            }
            let call = FileCall { direction, options, known: file.known().clone(), part, memory };
            self.begin(call, manner, false, move |_| bytes)
        })
    }

    /// Begins a collective transfer between a file and memory of the caller; the result is the
    /// number of bytes of the part. Collective: members begin their calls in the same order.
    pub fn start_memory(
        &self,
        direction: Direction,
        options: CollectiveOptions,
        file: &File,
        part: OwnPart,
        memory: RawMemory,
    ) -> Operation<u64> {
        if let Err(refused) = self.check_connection(file) {
            return Operation::ended(Err(refused));
        }
        let manner = self.manner_of(options, file);
        if manner == Manner::Alone {
            return self.0.alone.make(direction, file, part, memory, |bytes| bytes);
        }
        let call = FileCall { direction, options, known: file.known().clone(), part, memory };
        self.begin(call, manner, true, |bytes| bytes)
    }

    /// Refuses a file of another connection: servers know the members of a group by connections.
    pub(super) fn check_connection(&self, file: &File) -> Result<(), UserError> {
        if Arc::ptr_eq(&self.0.connection.0, &file.connection().0) {
            return Ok(());
        }
        Err(UserError::usage(
            format!("cannot transfer {:?} collectively", file.name()),
            "another connection than that of the group has opened it",
            "open it with the connection of the group",
        ))
    }

    /// Begins a call, and tells how it is made.
    fn manner_of(&self, options: CollectiveOptions, file: &File) -> Manner {
        // A forked child must not touch what other threads of its parent may have locked.
        if !self.0.connection.0.thread.is_of_this_process() {
            return Manner::Together;
        }
        let gathers = self.0.connection.options().gathers_writes;
        let may_be_alone =
            options.relaxed && options.strategy == Strategy::DiskDirected && !options.sync;
        self.0.alone.begin(file.record().file, gathers, may_be_alone)
    }

    fn begin<T: Send + 'static>(
        &self,
        call: FileCall,
        manner: Manner,
        uses_memory: bool,
        result: impl FnOnce(u64) -> T + Send + 'static,
    ) -> Operation<T> {
        let (member, alone) = (self.member(), Arc::clone(&self.0.alone));
        let (rank, size) = (self.0.rank, self.0.size);
        let file = call.known.get().file;
        let mut ending = (manner == Manner::InOrder).then(|| Ending {
            alone: Arc::clone(&alone),
            file,
            calls: 0,
        });
        let (verb, name) = (call.verb(), call.known.get().name.clone());
        let what = move || format!("rank {rank} of {size} cannot {verb} {name:?} collectively");
        let begun = self.0.connection.begin(what, uses_memory, move |shared| {
            let member = Rc::clone(member.get());
            let may_go_alone = ending.is_some() && alone.were_small();
            // The order of calls is that of the jobs.
            let place = member.begin_call(call.options.strategy);
            async move {
                let moved = member.make(&shared, place, call, may_go_alone).await?;
                if let Some(ending) = &mut ending {
                    ending.calls = moved.calls_alone;
                }
                Ok(result(moved.bytes))
            }
        });
        if manner == Manner::InOrder && begun.was_refused() {
            self.0.alone.has_ended(file, 0);
        }
        begun
    }

    pub(super) fn member(&self) -> Arc<OnThread<Rc<Member>>> {
        Arc::clone(self.0.member.as_ref().expect("a group is joined until it is dropped"))
    }
}

/// End of a call that decides about the next ones.
struct Ending {
    alone: Arc<CallsAlone>,
    file: FileId,
    /// Number of the next calls that all members make alone.
    calls: u32,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.alone.has_ended(self.file, self.calls);
    }
}

impl Drop for Inner {
    /// Begins to leave the group. The servers learn it before they learn that the connection ends,
    /// since its end is work for the same thread.
    fn drop(&mut self) {
        let Some(member) = self.member.take() else { return };
        let thread = &self.connection.0.thread;
        if thread.is_here() {
            return;
        }
        if let Err((job, _)) = thread.post(Box::new(move || drop(member))) {
            std::mem::forget(job);
        }
    }
}

/// Proposes a number for the group. All members use that of rank 0.
fn some_number(rank: u32) -> Vec<u8> {
    random_number().wrapping_add(u64::from(rank)).to_le_bytes().to_vec()
}

/// A random number.
pub(super) fn random_number() -> u64 {
    // Where the system has no random bytes, the process and the time make up a number.
    getrandom::u64().unwrap_or_else(|_| {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        time.map_or(0, |time| time.as_nanos() as u64) ^ u64::from(std::process::id()) << 32
    })
}
