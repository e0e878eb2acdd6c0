//! The machine under one rank: its process, the client library, and sockets to other ranks.

use super::checks::Checks;
use super::messages::Messages;
use client::{
    CollectiveOptions, Connection, ConnectionOptions, File, Group, InPlaceOptions, Instance,
};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use interface::{ErrorKind, ExitCode, UserError};
use policy::{Buffering, Direction, OwnPart};
use program::{Meeting, OpenedFile, Rank, Stream, Transfer, meet};
use rustix::time::{ClockId, clock_gettime};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time;
use trace::Collective;
use units::{Duration, Instant};

/// Computations up to this length are measured by the clock: reading the processor time of a thread
/// takes a microsecond.
const SHORT_COMPUTATION: Duration = Duration::from_us(5);

/// The machine of one rank. A process has one for all programs, and changes a clone of it for each.
#[derive(Clone)]
pub(super) struct RealRank {
    pub(super) connection: Rc<LateConnection>,
    pub(super) messages: Rc<Messages>,
    pub(super) options: CollectiveOptions,
    /// Names of the files of this run, by those that the program gave.
    pub(super) names: BTreeMap<String, String>,
    pub(super) new_files: NewFiles,
    pub(super) block_bytes: u64,
    /// True if the files are ordinary ones, named by their paths.
    pub(super) in_place: bool,
    /// Part of the names of groups.
    pub(super) run: String,
    pub(super) begun: time::Instant,
    /// Memories of transfers that have ended, for later ones.
    pub(super) memories: Rc<RefCell<Vec<Vec<u8>>>>,
    /// Measurement of the transfers, where the ranks are those of a bench. Its group is that of the
    /// file, and the ranks meet by it.
    pub(super) checks: Option<Rc<Checks>>,
}

/// Connection to the instance, which a program makes with its first call of a file.
pub(super) struct LateConnection {
    instance: Instance,
    options: ConnectionOptions,
    made: OnceCell<Connection>,
}

impl LateConnection {
    /// Makes none yet.
    pub(super) fn new(instance: Instance, options: ConnectionOptions) -> Self {
        Self { instance, options, made: OnceCell::new() }
    }

    /// Returns a connection to the same instance that is not made yet.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.instance.clone(), self.options.clone())
    }

    /// Returns the connection, which is made if there is none.
    ///
    /// # Errors
    /// Fails when a server cannot be reached.
    pub(super) fn get(&self) -> Result<&Connection, UserError> {
        match self.made.get() {
            Some(made) => Ok(made),
            None => {
                let made = Connection::open_with(&self.instance, self.options.clone())?;
                Ok(self.made.get_or_init(|| made))
            }
        }
    }
}

/// Files that the program makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NewFiles {
    /// Empty files, also where they exist.
    Empty,
    /// Files of this size, which must not exist.
    OfBytes(u64),
    /// Files that exist, and keep their data.
    Existing,
}

/// File that a rank has opened.
#[derive(Clone)]
pub(super) struct RealFile {
    opened: OpenedFile,
    file: File,
    group: Group,
}

impl RealRank {
    /// Name of a file in this run. The files of users are never touched.
    fn name(&self, name: &str) -> Result<String, UserError> {
        self.names.get(name).cloned().ok_or_else(|| {
            UserError::new(
                ExitCode::Failed,
                format!("the replay has no file for {name:?}"),
                "the trace does not list it",
                "report this as a defect, with the trace",
            )
        })
    }

    fn open_here(&self, file: &OpenedFile) -> Result<File, UserError> {
        let (name, connection) = (self.name(&file.name)?, self.connection.get()?);
        let is_maker = file.place == 0 && file.creates;
        if self.in_place {
            return self.open_in_place(connection, &name, is_maker);
        }
        let create =
            |bytes| connection.create(&name, bytes, self.block_bytes, Buffering::default());
        match self.new_files {
            NewFiles::OfBytes(bytes) if is_maker => return create(bytes),
            NewFiles::Empty if is_maker => match create(0) {
                Err(error) if error.kind == ErrorKind::AlreadyExists => {}
                other => return other,
            },
            _ => {}
        }
        let opened = connection.open_file(&name)?;
        // Before the others open it, so that all see it empty.
        let is_emptied = self.new_files == NewFiles::Empty && file.is_fresh;
        if file.place == 0 && is_emptied && opened.size()? > 0 {
            opened.set_size(0)?;
        }
        Ok(opened)
    }

    fn open_in_place(
        &self,
        connection: &Connection,
        path: &str,
        is_maker: bool,
    ) -> Result<File, UserError> {
        let create = is_maker && self.new_files != NewFiles::Existing;
        let block_bytes = Some(self.block_bytes);
        let options = InPlaceOptions { create, exclusive: create, block_bytes };
        let opened = connection.open_in_place(Path::new(path), options)?;
        if let NewFiles::OfBytes(bytes) = self.new_files
            && create
        {
            opened.set_size(bytes)?;
        }
        Ok(opened)
    }

    /// Lets the members of a file meet, and exchange `bytes` bytes if they do so by messages.
    async fn meet(&self, file: &OpenedFile, kind: Collective, bytes: u64) -> Result<(), UserError> {
        match &self.checks {
            Some(checks) => checks.group().barrier(),
            None => meet(self, file, kind, bytes).await,
        }
    }

    /// Takes memory for a transfer. Only transfers at the same time need more than that of the
    /// process, which is then touched here once, as the memory of a program is.
    fn memory(&self, bytes: u64) -> Vec<u8> {
        let mut memory = self.memories.borrow_mut().pop().unwrap_or_default();
        memory.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0x5a);
        memory
    }
}

/// Uses the processor for a time.
fn spin(time: Duration) {
    if time <= SHORT_COMPUTATION {
        let until = time::Instant::now() + time::Duration::from_nanos(time.as_ns());
        while time::Instant::now() < until {
            std::hint::spin_loop();
        }
        return;
    }
    let used = || {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    };
    let until = used() + time.as_ns();
    // The clock of the thread is read seldom: it is a system call.
    loop {
        let left = until.saturating_sub(used());
        if left == 0 {
            return;
        }
        let pause = time::Duration::from_nanos((left / 2).clamp(500, 1_000_000));
        let until = time::Instant::now() + pause;
        while time::Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

impl Rank for RealRank {
    type File = RealFile;
    type Error = UserError;
    type Call = LocalBoxFuture<'static, Result<(), UserError>>;

    fn now(&self) -> Instant {
        Instant::from_ns(self.begun.elapsed().as_nanos() as u64)
    }

    async fn compute(&self, time: Duration) {
        spin(time);
    }

    async fn block(&self, time: Duration) {
        std::thread::sleep(time::Duration::from_nanos(time.as_ns()));
    }

    fn send(&self, to: u32, stream: Stream, bytes: u64) -> Self::Call {
        self.messages.send(to, stream, bytes).boxed_local()
    }

    fn receive(&self, from: u32, stream: Stream) -> Self::Call {
        self.messages.receive(from, stream).boxed_local()
    }

    async fn wait_for_messages<T>(&self, messages: impl Future<Output = T>) -> T {
        let _awaited = self.messages.awaited();
        messages.await
    }

    fn meet_all(&self, meeting: Meeting) -> Option<Self::Call> {
        let checks = Rc::clone(self.checks.as_ref()?);
        Some(async move { checks.meet_all(meeting) }.boxed_local())
    }

    /// Opens a file. If transfers are checked, a program that is carried out again finds it open.
    async fn open(&self, opened: OpenedFile) -> Result<RealFile, UserError> {
        if let Some((file, group)) = self.checks.as_ref().and_then(|checks| checks.opened()) {
            return Ok(RealFile { opened, file, group });
        }
        self.connection.get()?;
        // As the interposer of MPI does: a communicator of its own, rank 0 first, and a group.
        self.meet(&opened, Collective::AllReduce, 8).await?;
        let first = match opened.place {
            0 => Some(self.open_here(&opened)?),
            _ => None,
        };
        self.meet(&opened, Collective::Broadcast, 24).await?;
        let file = match first {
            Some(file) => file,
            None => self.open_here(&opened)?,
        };
        self.meet(&opened, Collective::AllGather, 16).await?;
        let group = match &self.checks {
            Some(checks) => {
                checks.prepare(&file, self.options)?;
                checks.group().clone()
            }
            None => {
                let name = format!("{}-{}", self.run, opened.number);
                let members = opened.members.len() as u32;
                Group::form(self.connection.get()?, &name, opened.place, members)?
            }
        };
        Ok(RealFile { opened, file, group })
    }

    async fn close(&self, file: RealFile) -> Result<(), UserError> {
        drop(file.group);
        file.file.close()
    }

    fn transfer(&self, file: &RealFile, transfer: Transfer) -> Self::Call {
        let options = self.options;
        if let Some(checks) = self.checks.clone() {
            return async move { checks.transfer(options, &transfer) }.boxed_local();
        }
        let Transfer { direction, is_collective, is_blocking, part, .. } = transfer;
        let (mut bytes, memories) = (self.memory(part.memory_bytes()), Rc::clone(&self.memories));
        let extent = part.file_extent();
        let moving: LocalBoxFuture<'static, Result<Vec<u8>, UserError>> = match extent {
            _ if is_collective => {
                file.group.start_vector(direction, options, &file.file, part, bytes).boxed_local()
            }
            None => std::future::ready(Ok(bytes)).boxed_local(),
            // As the program, which does nothing else meanwhile.
            Some(extent)
                if is_blocking
                    && extent.length() <= client::BLOCKING_BYTES_MAX
                    && extent.length() == OwnPart::bytes(&part) =>
            {
                let moved = match direction {
                    Direction::Read => file.file.read_at(&mut bytes, extent.start).map(|_| ()),
                    Direction::Write => file.file.write_at(&bytes, extent.start),
                };
                std::future::ready(moved.map(|()| bytes)).boxed_local()
            }
            Some(extent) if extent.length() == OwnPart::bytes(&part) => match direction {
                Direction::Read => file.file.start_read_vector(bytes, extent.start).boxed_local(),
                Direction::Write => file.file.start_write_vector(bytes, extent.start).boxed_local(),
            },
            Some(_) => file.file.start_part_vector(direction, part, bytes).boxed_local(),
        };
        async move {
            let memory = moving.await?;
            memories.borrow_mut().push(memory);
            Ok(())
        }
        .boxed_local()
    }

    async fn sync(&self, file: &RealFile) -> Result<(), UserError> {
        self.meet(&file.opened, Collective::AllReduce, 8).await?;
        if file.opened.place == 0 {
            file.file.start_flush(true).await?;
        }
        self.meet(&file.opened, Collective::AllReduce, 8).await
    }

    async fn set_size(
        &self,
        file: &RealFile,
        bytes: u64,
        only_grows: bool,
    ) -> Result<(), UserError> {
        self.meet(&file.opened, Collective::AllReduce, 8).await?;
        if file.opened.place == 0 && !(only_grows && file.file.size()? >= bytes) {
            file.file.set_size(bytes)?;
        }
        self.meet(&file.opened, Collective::AllReduce, 8).await?;
        if file.opened.place != 0 {
            file.file.size()?;
        }
        Ok(())
    }

    async fn get_size(&self, file: &RealFile) -> Result<(), UserError> {
        file.file.size().map(|_| ())
    }

    async fn delete(&self, name: &str) -> Result<(), UserError> {
        match self.connection.get()?.remove(&self.name(name)?) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}
