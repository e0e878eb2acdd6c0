//! Messages between ranks over sockets, and the loop in which a rank waits.
//!
//! A rank sends and receives only while it waits, as processes of an MPI library without a progress
//! thread do. Data of messages is zeros, and is thrown away. A rank that waits for messages looks
//! for them all the time, if its program's library does; one that waits for a file sleeps.

use super::bell::Bell;
use interface::{ExitCode, UserError};
use program::{Manner, Stream};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Bytes of a frame before its data: communicator, manner, tag and bytes of data.
const FRAME_BYTES: usize = 24;

/// Bytes of data that are written or read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Turns of its loop for which a rank looks for messages that it waits for, before it sleeps.
const TURNS_AWAKE: u32 = 50;

/// Turns after which a rank that does not sleep looks at the clock.
const TURNS_OF_POLLING: u32 = 1 << 14;

/// Connections of a rank to all others.
pub(super) struct Messages {
    own: u32,
    /// Socket by which other ranks connect, and the directory of those of all ranks.
    listener: Option<(UnixListener, PathBuf)>,
    state: RefCell<State>,
    bell: Arc<Bell>,
    /// Longest time without any event.
    patience: Cell<Duration>,
    /// True if a rank that waits for messages does not sleep.
    polls: Cell<bool>,
    /// Waits for messages under way.
    awaited: Cell<u32>,
}

/// A wait for messages, until it is dropped.
pub(super) struct Awaited<'a>(&'a Cell<u32>);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.update(|waits| waits - 1);
    }
}

/// Longest time until all ranks are connected.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct State {
    peers: BTreeMap<u32, Peer>,
    lines: BTreeMap<(u32, Stream), Line>,
}

struct Peer {
    socket: UnixStream,
    /// Frames that are not yet written, each with the number of its message.
    outgoing: VecDeque<Outgoing>,
    begun: u64,
    written: u64,
    writers: BTreeMap<u64, Waker>,
    header: Vec<u8>,
    /// Message whose data arrives, and its bytes that have not.
    arriving: Option<(Stream, u64)>,
    /// Reason for which it has left, if it has.
    left: Option<String>,
}

struct Outgoing {
    header: [u8; FRAME_BYTES],
    /// Bytes written, of header and data.
    done: u64,
    all: u64,
}

/// Messages of one stream from one rank.
#[derive(Default)]
struct Line {
    arrived: u64,
    receivers: u64,
    /// Messages that their receivers have.
    taken: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Messages {
    /// No connections: the rank exchanges messages with itself only.
    ///
    /// # Errors
    /// Fails when the system has no more descriptors.
    pub(super) fn alone(own: u32) -> Result<Self, UserError> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let event = event.map_err(|error| lost(own, &error.into()))?;
        let bell = Arc::new(Bell { event, has_rung: AtomicBool::new(false) });
        let (state, patience) = (RefCell::default(), Cell::new(CONNECT_PATIENCE));
        let (polls, awaited) = (Cell::new(false), Cell::new(0));
        Ok(Self { own, listener: None, state, bell, patience, polls, awaited })
    }

    /// Listens for the other ranks.
    ///
    /// # Errors
    /// Fails when the directory cannot have a socket.
    pub(super) fn listen(directory: &Path, own: u32) -> Result<Self, UserError> {
        let listener =
            UnixListener::bind(path(directory, own)).map_err(|error| lost(own, &error))?;
        let listener = Some((listener, directory.to_owned()));
        Ok(Self { listener, ..Self::alone(own)? })
    }

    /// Makes waiting end with an error when nothing has happened for so long.
    pub(super) fn set_patience(&self, patience: Duration) {
        self.patience.set(patience);
    }

    /// Has the rank look for messages all the time that it waits for them.
    pub(super) fn set_polling(&self, polls: bool) {
        self.polls.set(polls);
    }

    /// Begins a wait for messages.
    pub(super) fn awaited(&self) -> Awaited<'_> {
        self.awaited.update(|waits| waits + 1);
        Awaited(&self.awaited)
    }

    /// Connects to all other ranks of `ranks`, which listen.
    ///
    /// # Errors
    /// Fails when one of them cannot be reached.
    pub(super) fn connect(&self, ranks: u32) -> Result<(), UserError> {
        let failed = |error: std::io::Error| lost(self.own, &error);
        let Some((listener, directory)) = &self.listener else { return Ok(()) };
        for other in 0..self.own {
            let mut socket = UnixStream::connect(path(directory, other)).map_err(failed)?;
            socket.write_all(&self.own.to_le_bytes()).map_err(failed)?;
            self.add(other, socket).map_err(failed)?;
        }
        for _ in self.own + 1..ranks {
            wait_for(listener).map_err(failed)?;
            let (mut socket, _) = listener.accept().map_err(failed)?;
            socket.set_read_timeout(Some(CONNECT_PATIENCE)).map_err(failed)?;
            let mut number = [0; 4];
            socket.read_exact(&mut number).map_err(failed)?;
            self.add(u32::from_le_bytes(number), socket).map_err(failed)?;
        }
        Ok(())
    }

    fn add(&self, other: u32, socket: UnixStream) -> std::io::Result<()> {
        socket.set_nonblocking(true)?;
        let peer = Peer {
            socket,
            outgoing: VecDeque::new(),
            begun: 0,
            written: 0,
            writers: BTreeMap::new(),
            header: Vec::new(),
            arriving: None,
            left: None,
        };
        self.state.borrow_mut().peers.insert(other, peer);
        Ok(())
    }

    /// Sends a message; ends when all of it is written. A message to the rank itself is there at
    /// once.
    pub(super) fn send(
        self: &Rc<Self>,
        to: u32,
        stream: Stream,
        bytes: u64,
    ) -> impl Future<Output = Result<(), UserError>> + 'static + use<> {
        let messages = Rc::clone(self);
        let mut number = None;
        std::future::poll_fn(move |context| {
            let state = &mut *messages.state.borrow_mut();
            if to == messages.own {
                state.arrived(to, stream);
                return Poll::Ready(Ok(()));
            }
            let Some(peer) = state.peers.get_mut(&to) else {
                return Poll::Ready(Err(gone(to, "it was never connected")));
            };
            let number = *number.get_or_insert_with(|| peer.begin(stream, bytes));
            if let Some(cause) = &peer.left {
                return Poll::Ready(Err(gone(to, cause)));
            }
            if let Err(error) = peer.write() {
                return Poll::Ready(Err(gone(to, &error.to_string())));
            }
            if peer.written > number {
                return Poll::Ready(Ok(()));
            }
            peer.writers.insert(number, context.waker().clone());
            Poll::Pending
        })
    }

    /// Receives the next message of a stream.
    pub(super) fn receive(
        self: &Rc<Self>,
        from: u32,
        stream: Stream,
    ) -> impl Future<Output = Result<(), UserError>> + 'static + use<> {
        let messages = Rc::clone(self);
        let mut number = None;
        std::future::poll_fn(move |context| {
            let state = &mut *messages.state.borrow_mut();
            let line = state.lines.entry((from, stream)).or_default();
            let number = *number.get_or_insert_with(|| {
                line.receivers += 1;
                line.receivers - 1
            });
            if line.arrived > number {
                line.taken += 1;
                if line.taken == line.arrived && line.taken == line.receivers {
                    state.lines.remove(&(from, stream));
                }
                return Poll::Ready(Ok(()));
            }
            if from != messages.own {
                let left = match state.peers.get(&from) {
                    Some(peer) => peer.left.as_deref(),
                    None => Some("it was never connected"),
                };
                if let Some(cause) = left {
                    return Poll::Ready(Err(gone(from, cause)));
                }
            }
            line.waiting.insert(number, context.waker().clone());
            Poll::Pending
        })
    }

    /// Carries out a future on this thread, moving messages while it waits.
    ///
    /// # Errors
    /// Fails when the system cannot wait.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, UserError> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let (mut turns, mut since) = (0, None);
        loop {
            self.bell.has_rung.store(false, Ordering::Release);
            if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                return Ok(result);
            }
            loop {
                let has_moved = self.move_messages();
                if has_moved || self.bell.has_rung.load(Ordering::Acquire) {
                    (turns, since) = (0, None);
                    break;
                }
                turns += 1;
                match (self.awaited.get() > 0, self.polls.get()) {
                    (true, true) if turns < TURNS_OF_POLLING => {}
                    (true, true) => {
                        turns = 0;
                        if since.get_or_insert_with(Instant::now).elapsed() > self.patience.get() {
                            return Err(lost(self.own, &self.waited_long()));
                        }
                    }
                    (true, false) if turns < TURNS_AWAKE => std::thread::yield_now(),
                    _ => self.sleep().map_err(|error| lost(self.own, &error))?,
                }
            }
        }
    }

    /// Writes and reads what sockets permit; true when a message moved.
    fn move_messages(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        let mut moved = false;
        let numbers: Vec<u32> = state.peers.keys().copied().collect();
        for number in numbers {
            let Some(peer) = state.peers.get_mut(&number) else { continue };
            let written = peer.written;
            let mut arrived = Vec::new();
            let ended = peer.write().and_then(|()| peer.read(&mut arrived));
            moved |= peer.written > written || !arrived.is_empty();
            for stream in arrived {
                state.arrived(number, stream);
            }
            if let Err(error) = ended {
                moved |= state.lose(number, &error.to_string());
            }
        }
        moved
    }

    fn waited_long(&self) -> std::io::Error {
        let waited = self.patience.get().as_secs();
        let cause = format!("nothing has happened for {waited} s: ranks wait for one another");
        std::io::Error::other(cause)
    }

    /// Waits until a socket is ready or the bell rings.
    fn sleep(&self) -> std::io::Result<()> {
        let state = self.state.borrow();
        let mut waits = vec![PollFd::new(&self.bell.event, PollFlags::IN)];
        for peer in state.peers.values().filter(|peer| peer.left.is_none()) {
            let writes = if peer.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            waits.push(PollFd::new(&peer.socket, PollFlags::IN | writes));
        }
        match poll(&mut waits, Some(&timeout(self.patience.get()))) {
            Ok(0) => return Err(self.waited_long()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut count = [0; 8];
        // Nothing is there when a socket was ready.
        let _ = rustix::io::read(&self.bell.event, &mut count);
        Ok(())
    }
}

impl State {
    fn arrived(&mut self, from: u32, stream: Stream) {
        let line = self.lines.entry((from, stream)).or_default();
        let number = line.arrived;
        line.arrived += 1;
        if let Some(waker) = line.waiting.remove(&number) {
            waker.wake();
        }
    }

    /// Notes that a rank has left, and wakes those that wait for it. False when it was known.
    fn lose(&mut self, number: u32, cause: &str) -> bool {
        let Some(peer) = self.peers.get_mut(&number).filter(|peer| peer.left.is_none()) else {
            return false;
        };
        peer.left = Some(cause.to_owned());
        peer.outgoing.clear();
        std::mem::take(&mut peer.writers).into_values().for_each(Waker::wake);
        for ((from, _), line) in &mut self.lines {
            if *from == number {
                std::mem::take(&mut line.waiting).into_values().for_each(Waker::wake);
            }
        }
        true
    }
}

impl Peer {
    fn begin(&mut self, stream: Stream, bytes: u64) -> u64 {
        let manner: u32 = match stream.manner {
            Manner::Data => 0,
            Manner::Ask => 1,
            Manner::Ready => 2,
        };
        let mut header = [0; FRAME_BYTES];
        header[..4].copy_from_slice(&stream.communicator.to_le_bytes());
        header[4..8].copy_from_slice(&manner.to_le_bytes());
        header[8..16].copy_from_slice(&stream.tag.to_le_bytes());
        header[16..].copy_from_slice(&bytes.to_le_bytes());
        self.outgoing.push_back(Outgoing {
            header,
            done: 0,
            all: bytes.saturating_add(FRAME_BYTES as u64),
        });
        self.begun += 1;
        self.begun - 1
    }

    /// Writes as much as the socket takes.
    fn write(&mut self) -> std::io::Result<()> {
        static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];
        while let Some(first) = self.outgoing.front_mut() {
            let header = first.header.get(first.done as usize..).unwrap_or_default();
            let data = (first.all - first.done - header.len() as u64).min(CHUNK_BYTES as u64);
            let parts = [IoSlice::new(header), IoSlice::new(&ZEROS[..data as usize])];
            match self.socket.write_vectored(&parts) {
                Ok(wrote) => first.done += wrote as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if first.done == first.all {
                self.outgoing.pop_front();
                if let Some(waker) = self.writers.remove(&self.written) {
                    waker.wake();
                }
                self.written += 1;
            }
        }
        Ok(())
    }

    /// Reads what has arrived, and adds the streams of messages that are complete.
    fn read(&mut self, arrived: &mut Vec<Stream>) -> std::io::Result<()> {
        thread_local! {
            static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK_BYTES]);
        }
        if self.left.is_some() {
            return Ok(());
        }
        SCRATCH.with_borrow_mut(|scratch| {
            loop {
                let got = match self.socket.read(scratch) {
                    Ok(0) => return Err(std::io::Error::other("its process has ended")),
                    Ok(got) => got,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                self.take(&scratch[..got], arrived);
            }
        })
    }

    fn take(&mut self, mut bytes: &[u8], arrived: &mut Vec<Stream>) {
        loop {
            if let Some((stream, rest)) = self.arriving {
                let some = rest.min(bytes.len() as u64);
                bytes = &bytes[some as usize..];
                self.arriving = Some((stream, rest - some)).filter(|(_, rest)| *rest > 0);
                if self.arriving.is_some() {
                    return;
                }
                arrived.push(stream);
            }
            if bytes.is_empty() {
                return;
            }
            let some = (FRAME_BYTES - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..some]);
            bytes = &bytes[some..];
            if self.header.len() < FRAME_BYTES {
                return;
            }
            self.arriving = Some(decode(&self.header));
            self.header.clear();
        }
    }
}

fn decode(header: &[u8]) -> (Stream, u64) {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let (first, tag, bytes) = (word(0), word(8) as i64, word(16));
    let manner = match first >> 32 {
        0 => Manner::Data,
        1 => Manner::Ask,
        _ => Manner::Ready,
    };
    (Stream { communicator: first as u32, tag, manner }, bytes)
}

/// Waits until a rank connects.
fn wait_for(listener: &UnixListener) -> std::io::Result<()> {
    let mut waits = [PollFd::new(listener, PollFlags::IN)];
    loop {
        match poll(&mut waits, Some(&timeout(CONNECT_PATIENCE))) {
            Ok(0) => return Err(std::io::Error::other("another rank did not connect in time")),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn timeout(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: duration.subsec_nanos().into() }
}

fn path(directory: &Path, rank: u32) -> PathBuf {
    directory.join(format!("rank-{rank}"))
}

fn lost(rank: u32, error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("rank {rank} of the replay cannot send messages"),
        error.to_string(),
        "raise the limit on open files (ulimit -n), or use a shorter directory (TMPDIR)",
    )
}

fn gone(rank: u32, cause: &str) -> UserError {
    UserError::new(
        ExitCode::Collective,
        format!("rank {rank} of the replay has left"),
        cause,
        "see its error above",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: messages of any size arrive in order and whole, also when both sides send more than
    //! sockets hold before they receive; a rank that leaves fails those that wait for it.
    use super::*;

    const STREAM: Stream = Stream { communicator: 3, tag: -9, manner: Manner::Ask };

    fn ranks(directory: &Path, run: impl Fn(Rc<Messages>) + Send + Sync + Copy + 'static) {
        let gate = Arc::new(std::sync::Barrier::new(3));
        let threads: Vec<_> = (0..3)
            .map(|own| {
                let (directory, gate) = (directory.to_owned(), Arc::clone(&gate));
                std::thread::spawn(move || {
                    let messages = Rc::new(Messages::listen(&directory, own).unwrap());
                    gate.wait();
                    messages.connect(3).unwrap();
                    run(messages);
                    gate.wait();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_wait_without_a_message_ends_after_a_while() {
        for polls in [true, false] {
            let messages = Rc::new(Messages::alone(0).unwrap());
            messages.set_polling(polls);
            messages.set_patience(Duration::from_millis(50));
            let waiting = async {
                let _awaited = messages.awaited();
                messages.receive(0, STREAM).await
            };
            let error = messages.block_on(waiting).unwrap_err();
            assert!(error.to_string().contains("ranks wait for one another"), "{error}");
            assert_eq!(messages.awaited.get(), 0);
        }
    }

    #[test]
    fn messages_arrive_in_both_directions_at_once() {
        let directory = tempfile::tempdir().unwrap();
        ranks(directory.path(), |messages| {
            let next = (messages.own + 1) % 3;
            let last = (messages.own + 2) % 3;
            let all = async {
                for bytes in [0, 1, 24, 5_000_000, 3] {
                    let sending = messages.send(next, STREAM, bytes);
                    let receiving = messages.receive(last, STREAM);
                    let (sent, received) = futures_util::join!(sending, receiving);
                    sent.unwrap();
                    received.unwrap();
                }
                // Two receivers of one stream, whose messages arrive before either looks again.
                let receivers = [messages.receive(last, STREAM), messages.receive(last, STREAM)];
                for _ in 0..2 {
                    messages.send(next, STREAM, 8).await.unwrap();
                }
                for received in futures_util::future::join_all(receivers).await {
                    received.unwrap();
                }
                messages.send(messages.own, STREAM, 8).await.unwrap();
                messages.receive(messages.own, STREAM).await.unwrap();
            };
            messages.block_on(all).unwrap();
            assert!(messages.state.borrow().lines.is_empty());
        });
    }

    #[test]
    fn who_waits_for_a_rank_that_left_fails() {
        let directory = tempfile::tempdir().unwrap();
        ranks(directory.path(), |messages| {
            if messages.own == 1 {
                messages.state.borrow_mut().peers.clear();
                return;
            }
            let ended = messages.block_on(messages.receive(1, STREAM)).unwrap();
            assert_eq!(ended.unwrap_err().error, "rank 1 of the replay has left");
        });
    }
}
