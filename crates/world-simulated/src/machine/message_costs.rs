//! What it costs processors to move data.

use units::Duration;

/// Processor time on the reference processor that moving data costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageCosts {
    /// To send a message; its data goes by DMA.
    pub send: Duration,
    /// To take a message from the network and wake the thread it is for.
    pub receive: Duration,
    /// For each memput or memget, to the node that asks for it.
    pub one_sided: Duration,
    /// For each memget, to take up what comes back.
    pub get_answer: Duration,
    /// For each 200 bytes (50 words) that a memput or memget moves, to the node that sends them;
    /// a memget costs the same once more to the node that takes them up.
    pub per_50_words: Duration,
    /// How the pieces of one memput or memget travel.
    pub pieces: Pieces,
}

/// How the pieces of one one-sided transfer travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pieces {
    /// Each as a memput or memget of its own.
    Individual,
    /// Together, gathered by the sender and scattered by the receiver.
    Batched {
        /// Processor time for each piece beyond the first, to the node that asks.
        gather: Duration,
    },
}

impl MessageCosts {
    /// Of a memput, to the node that asks for it.
    pub(crate) fn put(&self, count: u64, bytes: u64) -> Duration {
        self.ask(count, self.one_sided) + self.data(bytes)
    }

    /// Of a memget, to the node that asks for it.
    pub(crate) fn get(&self, count: u64, bytes: u64) -> Duration {
        self.ask(count, self.one_sided + self.get_answer) + self.data(bytes)
    }

    /// Of moving bytes, to the node that sends or takes them up.
    pub(crate) fn data(&self, bytes: u64) -> Duration {
        Duration::from_ns(self.per_50_words.as_ns().saturating_mul(bytes) / 200)
    }

    /// Headers on the network of a transfer of `count` pieces.
    pub(crate) fn headers(&self, count: u64) -> u64 {
        match self.pieces {
            Pieces::Individual => count,
            Pieces::Batched { .. } => 1,
        }
    }

    fn ask(&self, count: u64, once: Duration) -> Duration {
        let ns = match self.pieces {
            Pieces::Individual => once.as_ns().saturating_mul(count),
            Pieces::Batched { gather } => {
                once.as_ns() + gather.as_ns().saturating_mul(count.saturating_sub(1))
            }
        };
        Duration::from_ns(ns)
    }
}
