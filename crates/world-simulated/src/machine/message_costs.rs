//! Processor costs of moving data.

use units::Duration;

/// Processor time of moving data, on the reference processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageCosts {
    /// Cost of sending a message.
    pub send: Duration,
    /// Cost of each byte of a message for the node that sends it, in picoseconds; 0 where data goes
    /// by DMA.
    pub message_ps_per_byte: u64,
    /// Cost of receiving a message and waking its thread.
    pub receive: Duration,
    /// Cost of a message beyond that for a node that it finds idle: its thread has gone to sleep,
    /// and other threads have used the caches meanwhile.
    pub wake: Duration,
    /// Cost of each byte for the node that receives it from a socket, in picoseconds: of a message,
    /// of a memput that the requester copies, of a memget that the owner answers. 0 where data goes
    /// by DMA to its place; then the owner of the memory handles no message for a memput.
    pub receive_ps_per_byte: u64,
    /// Cost of each memput or memget for the requesting node.
    pub one_sided: Duration,
    /// Cost of receiving the answer of each memget.
    pub get_answer: Duration,
    /// Cost of each 200 bytes (50 words) of a memput or memget for the node that sends them. A
    /// memget costs the same again for the node that receives them.
    pub per_50_words: Duration,
    /// Transport of the pieces of one memput or memget.
    pub pieces: Pieces,
    /// Node that copies the data of a memput.
    pub put_copier: PutCopier,
    /// Copies between the memories of two nodes of one host, in which the other node takes no part;
    /// `None` where data travels with messages and answers only.
    pub direct: Option<DirectCopies>,
}

/// Cost of a copy between the memories of two nodes, for the node that makes it, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectCopies {
    /// Of each byte.
    pub ps_per_byte: u64,
    /// Of each piece beyond the first, where pieces are [short](SHORT_PIECE_BYTES) and packed.
    pub ps_per_piece: u64,
    /// Of each longer piece beyond the first: an interval of its own.
    pub ps_per_interval: u64,
}

/// Bytes of a piece below which pieces are packed.
const SHORT_PIECE_BYTES: u64 = 1 << 10;

/// Bytes of an answer from which it is copied to its place in the memory of the node that asked; a
/// smaller one travels with its message.
const PLACED_BYTES_MIN: u64 = 8 << 10;

impl DirectCopies {
    fn cost(&self, count: u64, bytes: u64) -> Duration {
        let Self { ps_per_byte, ps_per_piece, ps_per_interval } = *self;
        let is_short = bytes < count.saturating_mul(SHORT_PIECE_BYTES);
        let ps_per_piece = if is_short { ps_per_piece } else { ps_per_interval };
        let pieces = ps_per_piece.saturating_mul(count.saturating_sub(1));
        Duration::from_ns(bytes.saturating_mul(ps_per_byte).saturating_add(pieces) / 1_000)
    }
}

/// Node whose processor copies the pieces of a memput to their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutCopier {
    /// The node that makes the memput: its data goes over the network.
    Requester,
    /// The node that owns the memory, out of buffers that it has in common with a node with disks:
    /// only a header goes over the network. Nodes without disks have no such buffers: what they put
    /// is copied [directly](DirectCopies), or travels in messages, which both copy.
    Owner,
}

/// Transport of the pieces of one one-sided transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pieces {
    /// Each piece is a memput or memget of its own.
    Individual,
    /// All pieces travel together, gathered by the sender and scattered by the receiver.
    Batched {
        /// Processor time of each piece beyond the first, for the node that gathers them, in
        /// picoseconds.
        gather_ps: u64,
    },
}

impl MessageCosts {
    /// Cost of a memput for the requesting node. `lends` is true for a node whose buffers others
    /// have in common.
    pub(crate) fn put(&self, lends: bool, count: u64, bytes: u64) -> Duration {
        match self.put_copier {
            PutCopier::Requester => self.ask(count, self.one_sided) + self.data(bytes),
            // A message to the owner, and its answer.
            PutCopier::Owner if lends => self.send + self.receive,
            PutCopier::Owner => match &self.direct {
                Some(direct) => self.one_sided + direct.cost(count, bytes),
                None => {
                    let packed = self.ask(count, self.one_sided) + self.data(bytes);
                    packed + self.message_data(bytes)
                }
            },
        }
    }

    /// Cost of a memput for the node that owns the memory, when it copies.
    pub(crate) fn put_for_owner(&self, lends: bool, count: u64, bytes: u64) -> Duration {
        match self.direct {
            _ if lends => self.ask(count, self.receive + self.send) + self.data(bytes),
            Some(_) => Duration::ZERO,
            None => self.ask(count, self.receive),
        }
    }

    /// Cost of receiving a message of `bytes` bytes.
    #[inline]
    pub(crate) fn receive_bytes(&self, bytes: u64) -> Duration {
        match self.receive_ps_per_byte {
            0 => self.receive,
            _ => self.receive + self.received_data(bytes),
        }
    }

    /// Cost of taking `bytes` from a socket.
    pub(crate) fn received_data(&self, bytes: u64) -> Duration {
        Duration::from_ns(bytes.saturating_mul(self.receive_ps_per_byte) / 1_000)
    }

    /// True if data of memputs and memgets travels in streams, out of which its receiver copies it.
    pub(crate) fn streams(&self) -> bool {
        self.receive_ps_per_byte > 0
    }

    /// Cost for the owner of the memory of a memput whose data comes in a stream.
    pub(crate) fn streamed_put_for_owner(&self, count: u64, bytes: u64) -> Duration {
        self.ask(count, self.receive) + self.received_data(bytes)
    }

    /// Cost for the owner of the memory of a memget, who sends the data.
    pub(crate) fn get_for_owner(&self, count: u64, bytes: u64) -> Duration {
        match self.streams() {
            true => self.ask(count, self.receive) + self.send + self.data(bytes),
            false => self.data(bytes),
        }
    }

    /// Cost of sending a message of `bytes` bytes; `has_place` is true for an answer whose place in
    /// the memory of the node that asked is known.
    pub(crate) fn send_bytes(&self, has_place: bool, bytes: u64) -> Duration {
        match &self.direct {
            Some(direct) if has_place && bytes >= PLACED_BYTES_MIN => {
                self.send + direct.cost(1, bytes)
            }
            Some(_) | None => self.send + self.message_data(bytes),
        }
    }

    /// Cost of the bytes of a message for the sender.
    fn message_data(&self, bytes: u64) -> Duration {
        match self.message_ps_per_byte {
            0 => Duration::ZERO,
            ps => Duration::from_ns(bytes.saturating_mul(ps) / 1_000),
        }
    }

    /// Cost of a message of a program for the sender, whose processor copies its data.
    pub(crate) fn send_data(&self, bytes: u64) -> Duration {
        self.send + self.data(bytes)
    }

    /// Cost of a memget for the requesting node.
    pub(crate) fn get(&self, count: u64, bytes: u64) -> Duration {
        if let Some(direct) = &self.direct {
            return self.one_sided + direct.cost(count, bytes);
        }
        match self.streams() {
            true => self.one_sided,
            false => self.ask(count, self.one_sided + self.get_answer) + self.data(bytes),
        }
    }

    /// Cost of the data of a memget for the requesting node, when it arrives in a stream.
    pub(crate) fn streamed_get(&self, count: u64, bytes: u64) -> Duration {
        self.ask(count, self.receive + self.get_answer) + self.received_data(bytes)
    }

    /// Cost of moving bytes, for the node that sends or receives them.
    pub(crate) fn data(&self, bytes: u64) -> Duration {
        Duration::from_ns(self.per_50_words.as_ns().saturating_mul(bytes) / 200)
    }

    /// Number of headers on the network of a transfer of `count` pieces.
    pub(crate) fn headers(&self, count: u64) -> u64 {
        match self.pieces {
            Pieces::Individual => count,
            Pieces::Batched { .. } => 1,
        }
    }

    fn ask(&self, count: u64, once: Duration) -> Duration {
        let ns = match self.pieces {
            Pieces::Individual => once.as_ns().saturating_mul(count),
            Pieces::Batched { gather_ps } => {
                once.as_ns() + gather_ps.saturating_mul(count.saturating_sub(1)) / 1_000
            }
        };
        Duration::from_ns(ns)
    }
}
