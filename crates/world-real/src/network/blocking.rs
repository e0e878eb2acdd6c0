//! A connection of one thread that waits for the answer to each of its messages.
//!
//! The event loop makes the connection and then knows nothing of it. So a message and its answer
//! wake the peer and the waiting thread, and no other.
//!
//! Invariants:
//! - One message is under way at a time.
//! - After an error the stream is at an unknown place: the connection is of no use any more.
//! - Over a protected TCP connection nothing is given out of a record that is not checked.
//! - A wait pauses after a stated time, also when signals interrupt it more often.

use super::frame::{Exposure, FRAME_BYTES, Frame, Kind};
use super::outbox::COPIED_BYTES_MAX;
use super::receive_buffer::ReceiveBuffer;
use super::record::{Sealer, Session};
use super::socket::Socket;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use units::RegionId;

/// Name of the region that a peer is told. Data that it places there comes with its messages.
const REGION: RegionId = RegionId(1);

/// Number of bytes that are read at once: frames, headers, and small bodies.
const READ_BYTES: usize = 4608;

/// Maximum size of the header of an answer, in bytes. That of an error has some text.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Maximum number of frames that come before an answer.
const OTHER_FRAMES_MAX: u32 = 1024;

/// A connection whose calls block the calling thread.
pub struct BlockingConnection {
    socket: OwnedFd,
    /// Records of a protected TCP connection.
    records: Option<Box<Records>>,
    /// Bytes that were read and not used yet: those from `start` to `end`.
    buffer: Box<[u8; READ_BYTES]>,
    start: usize,
    end: usize,
    /// True when the peer knows the region.
    is_begun: bool,
    pause: Duration,
    /// Process that made it. A forked child has a copy of the descriptor only.
    process: u32,
}

/// Both directions of a protected connection, with their buffers.
struct Records {
    sealer: Sealer,
    /// Records to send.
    sealed: Vec<u8>,
    received: ReceiveBuffer,
}

impl Drop for BlockingConnection {
    /// Ends the connection, also where a forked child keeps the descriptor.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // An error here means that the peer is gone already.
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        }
    }
}

/// Tells after each pause whether a call goes on waiting.
type GoesOn<'a> = &'a mut dyn FnMut() -> bool;

/// The waits of one call.
struct Wait<'a> {
    goes_on: GoesOn<'a>,
    pause: Duration,
    /// Time of the first interruption since the last pause.
    interrupted: Option<Instant>,
}

impl Wait<'_> {
    /// Returns the result of a call of the system, or `None` when it is to be repeated.
    fn repeats(&mut self, result: Result<usize, Errno>) -> io::Result<Option<usize>> {
        match result {
            Ok(count) => Ok(Some(count)),
            // The next call waits for a whole pause again.
            Err(Errno::INTR) => {
                let first = *self.interrupted.get_or_insert_with(Instant::now);
                if first.elapsed() < self.pause { Ok(None) } else { self.look() }
            }
            Err(Errno::AGAIN) => self.look(),
            Err(error) => Err(error.into()),
        }
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        self.interrupted = None;
        if (self.goes_on)() { Ok(None) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl BlockingConnection {
    /// Largest body of a message in either direction, in bytes.
    pub const BODY_BYTES_MAX: usize = 64 << 10;

    /// Takes over a socket after its handshake. Each wait pauses after a time of `pause`, to ask
    /// whether it goes on. `session` protects a TCP connection.
    pub(super) fn new(
        socket: Socket,
        session: Option<Session>,
        pause: Duration,
    ) -> io::Result<Self> {
        let socket = socket.into_inner();
        rustix::io::ioctl_fionbio(&socket, false)?;
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(pause))?;
        }
        let buffer = Box::new([0; READ_BYTES]);
        let process = std::process::id();
        let records = session.map(|session| Box::new(Records::new(session)));
        let (start, end, is_begun) = (0, 0, false);
        Ok(Self { socket, records, buffer, start, end, is_begun, pause, process })
    }

    /// Region to which the peer places the data of its answers.
    pub fn region(&self) -> RegionId {
        REGION
    }

    /// Sends a message with or without a body.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::TimedOut`] when `goes_on` is false.
    pub fn send(
        &mut self,
        header: &[u8],
        body: Option<&[u8]>,
        goes_on: GoesOn<'_>,
    ) -> io::Result<()> {
        let mut frame = Frame::new(Kind::Message, 0, 0);
        frame.with_body = body.is_some();
        let body = body.unwrap_or_default();
        if body.len() > Self::BODY_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let wait = &mut self.wait(goes_on);
        (frame.header_bytes, frame.body_bytes) = (header.len(), body.len() as u64);
        if self.is_begun {
            return self.write_all(&mut [&frame.encode(), header, body], wait);
        }
        self.is_begun = true;
        let length = Self::BODY_BYTES_MAX as u64;
        let exposure = Exposure { address: 0, length, may_be_written: false }.encode();
        let mut expose = Frame::new(Kind::Expose, REGION.0, 0);
        expose.header_bytes = exposure.len();
        let parts = &mut [&expose.encode()[..], &exposure, &frame.encode(), header, body];
        self.write_all(parts, wait)
    }

    /// Waits for the next message of the peer. Its header replaces `header`, and its body goes to
    /// the start of `into`. Returns the number of bytes of the body, if it has one.
    ///
    /// # Errors
    /// As for [`BlockingConnection::send`]; when a body has no room.
    pub fn receive(
        &mut self,
        header: &mut Vec<u8>,
        into: &mut [u8],
        goes_on: GoesOn<'_>,
    ) -> io::Result<Option<usize>> {
        let wait = &mut self.wait(goes_on);
        for _ in 0..OTHER_FRAMES_MAX {
            let mut bytes = [0; FRAME_BYTES];
            self.read_exact(&mut bytes, wait)?;
            let frame = Frame::decode(&bytes).map_err(io::Error::other)?;
            if frame.header_bytes > HEADER_BYTES_MAX {
                return Err(io::Error::other("the header of the answer is too large"));
            }
            header.resize(frame.header_bytes, 0);
            self.read_exact(header, wait)?;
            match frame.kind {
                Kind::Message => {
                    let length = usize::try_from(frame.body_bytes).unwrap_or(usize::MAX);
                    let room = into.get_mut(..length);
                    let room = room.ok_or_else(|| io::Error::other("the answer has no room"))?;
                    self.read_exact(room, wait)?;
                    return Ok(frame.with_body.then_some(length));
                }
                // The peer knows the region.
                Kind::Done if frame.body_bytes == 0 => {}
                // A sign of life is wanted, or a region of the peer is gone.
                Kind::Withdraw | Kind::Expose => {
                    let done = Frame::new(Kind::Done, 0, frame.number).encode();
                    self.write_all(&mut [&done], wait)?;
                }
                other => return Err(io::Error::other(format!("the peer sent a {other:?}"))),
            }
        }
        Err(io::Error::other("the peer sends no answer"))
    }

    fn wait<'a>(&self, goes_on: GoesOn<'a>) -> Wait<'a> {
        Wait { goes_on, pause: self.pause, interrupted: None }
    }

    /// Writes all of `parts`, in records if the connection has some.
    fn write_all(&mut self, parts: &mut [&[u8]], wait: &mut Wait<'_>) -> io::Result<()> {
        let Some(records) = &mut self.records else {
            return write_parts(&self.socket, parts, wait);
        };
        // A forked child would use numbers of records that its parent uses too.
        if self.process != std::process::id() {
            return Err(io::Error::other("the connection belongs to another process"));
        }
        records.seal(parts);
        write_parts(&self.socket, &mut [&records.sealed], wait)
    }

    /// Fills `bytes`: first with what was read before, then from the stream, with what follows
    /// going to the buffer.
    fn read_exact(&mut self, bytes: &mut [u8], wait: &mut Wait<'_>) -> io::Result<()> {
        if let Some(records) = &mut self.records {
            return records.read_exact(&self.socket, bytes, wait);
        }
        let ahead = bytes.len().min(self.end - self.start);
        bytes[..ahead].copy_from_slice(&self.buffer[self.start..self.start + ahead]);
        self.start += ahead;
        let mut filled = ahead;
        while filled < bytes.len() {
            let wanted = bytes.len() - filled;
            let parts =
                &mut [IoSliceMut::new(&mut bytes[filled..]), IoSliceMut::new(&mut self.buffer[..])];
            let read = rustix::io::readv(&self.socket, parts);
            match wait.repeats(read)? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(count) => {
                    filled += count.min(wanted);
                    (self.start, self.end) = (0, count.saturating_sub(wanted));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn write_parts(socket: &OwnedFd, parts: &mut [&[u8]], wait: &mut Wait<'_>) -> io::Result<()> {
    let mut first = 0;
    loop {
        while parts.get(first).is_some_and(|part| part.is_empty()) {
            first += 1;
        }
        let left = &mut parts[first..];
        if left.is_empty() {
            return Ok(());
        }
        let slices: Vec<IoSlice<'_>> = left.iter().map(|part| IoSlice::new(part)).collect();
        let mut nothing = SendAncillaryBuffer::default();
        // A closed peer is reported as an error, not by SIGPIPE, which would end the process.
        let sent = rustix::net::sendmsg(socket, &slices, &mut nothing, SendFlags::NOSIGNAL);
        let mut count = wait.repeats(sent)?.unwrap_or(0);
        for part in left {
            let taken = count.min(part.len());
            *part = &part[taken..];
            count -= taken;
        }
    }
}

impl Records {
    fn new(session: Session) -> Self {
        let received = ReceiveBuffer::new(Some(session.opener));
        Self { sealer: session.sealer, sealed: Vec::new(), received }
    }

    /// Makes records of `parts`. A large body, the last of them, has records of its own.
    fn seal(&mut self, parts: &[&[u8]]) {
        self.sealed.clear();
        let (joined, body) = match parts {
            [before @ .., body] if body.len() as u64 > COPIED_BYTES_MAX => (before, *body),
            all => (all, &[][..]),
        };
        self.sealer.append(&joined.concat(), &mut self.sealed);
        self.sealer.append(body, &mut self.sealed);
    }

    /// Fills `bytes` from the records that come.
    fn read_exact(
        &mut self,
        socket: &OwnedFd,
        bytes: &mut [u8],
        wait: &mut Wait<'_>,
    ) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            while self.received.data().is_empty() && !self.received.open_next()? {
                self.read_more(socket, wait)?;
            }
            filled += self.received.take(&mut bytes[filled..]);
        }
        Ok(())
    }

    fn read_more(&mut self, socket: &OwnedFd, wait: &mut Wait<'_>) -> io::Result<()> {
        let read = rustix::io::read(socket, self.received.room());
        match wait.repeats(read)? {
            Some(0) => match self.received.cut() {
                Some(cut) => Err(cut.into()),
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            },
            count => {
                self.received.sealed_end += count.unwrap_or(0);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a message and its answer pass, with frames of the transport between; waits pause
    //! in time, whatever interrupts them; what a peer must not send is refused.
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    const PAUSE: Duration = Duration::from_millis(20);

    /// A connection, and the socket of its peer.
    fn pair() -> (BlockingConnection, UnixStream) {
        let (own, peer) = UnixStream::pair().expect("a pair of sockets");
        own.set_nonblocking(true).expect("a socket can be nonblocking");
        let socket = Socket::new(own).expect("a socket");
        (BlockingConnection::new(socket, None, PAUSE).expect("a connection"), peer)
    }

    fn answer(header: &[u8], body: Option<&[u8]>) -> Vec<u8> {
        let mut frame = Frame::new(Kind::Message, 0, 0);
        frame.with_body = body.is_some();
        let body = body.unwrap_or_default();
        (frame.header_bytes, frame.body_bytes) = (header.len(), body.len() as u64);
        [&frame.encode()[..], header, body].concat()
    }

    #[tokio::test]
    async fn a_message_and_its_answer_pass() {
        let (mut connection, mut peer) = pair();
        let never = &mut || false;
        connection.send(b"ask", Some(b"data"), never).expect("there is room");
        // The region is told first.
        let mut sent = vec![0; 2 * FRAME_BYTES + 17 + 3 + 4];
        peer.read_exact(&mut sent).expect("it was sent");
        assert_eq!(sent[2], Kind::Expose as u8);
        assert!(sent.ends_with(b"askdata"));
        let ping = Frame::new(Kind::Withdraw, 0, 9).encode();
        let known = Frame::new(Kind::Done, 0, 0).encode();
        let large = vec![7; BlockingConnection::BODY_BYTES_MAX];
        let bytes = [&ping[..], &known, &answer(b"told", Some(&large))].concat();
        let writer = std::thread::spawn(move || {
            peer.write_all(&bytes).expect("it is read");
            let mut done = [0; FRAME_BYTES];
            peer.read_exact(&mut done).expect("the ping is answered");
            (peer, done)
        });
        let (mut header, mut room) = (Vec::new(), vec![0; BlockingConnection::BODY_BYTES_MAX]);
        let received = connection.receive(&mut header, &mut room, &mut || true);
        assert_eq!((received.expect("an answer"), &header[..]), (Some(large.len()), &b"told"[..]));
        assert!(room == large);
        let (_, done) = writer.join().expect("the peer ends");
        assert_eq!(done, Frame::new(Kind::Done, 0, 9).encode());
    }

    #[tokio::test]
    async fn waits_pause() {
        let (mut connection, _peer) = pair();
        let mut pauses = 0;
        let mut third = || {
            pauses += 1;
            pauses < 3
        };
        let received = connection.receive(&mut Vec::new(), &mut [], &mut third);
        assert_eq!(received.expect_err("no answer").kind(), io::ErrorKind::TimedOut);
        assert_eq!(pauses, 3);
        // A send that has no room pauses too.
        let body = vec![0; BlockingConnection::BODY_BYTES_MAX];
        let sent = (0..100).find_map(|_| connection.send(b"", Some(&body), &mut || false).err());
        assert_eq!(sent.expect("the socket is full").kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn interruptions_put_no_pause_off() {
        let mut looks = 0;
        let mut goes_on = || {
            looks += 1;
            false
        };
        let mut wait = Wait { goes_on: &mut goes_on, pause: PAUSE, interrupted: None };
        let begun = Instant::now();
        let ended = loop {
            match wait.repeats(Err(Errno::INTR)) {
                Ok(None) => std::thread::sleep(PAUSE / 10),
                other => break other,
            }
        };
        assert_eq!(ended.expect_err("it does not go on").kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= PAUSE);
        assert_eq!(looks, 1);
    }

    #[tokio::test]
    async fn wrong_answers_are_refused() {
        let header = vec![0; HEADER_BYTES_MAX + 1];
        let pings: Vec<u8> =
            (0..=OTHER_FRAMES_MAX).flat_map(|_| Frame::new(Kind::Done, 0, 0).encode()).collect();
        for bytes in [answer(&header, None), answer(b"", Some(&[1; 9])), pings, vec![1; 40]] {
            let (mut connection, mut peer) = pair();
            let writer = std::thread::spawn(move || peer.write_all(&bytes));
            let received = connection.receive(&mut Vec::new(), &mut [0; 8], &mut || false);
            assert!(received.is_err());
            drop(connection);
            // The peer may have been cut off.
            let _ = writer.join().expect("the peer ends");
        }
        let (mut connection, _peer) = pair();
        let body = vec![0; BlockingConnection::BODY_BYTES_MAX + 1];
        assert!(connection.send(b"", Some(&body), &mut || false).is_err());
    }
}
