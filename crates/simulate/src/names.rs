//! The words by which a scenario names its machine, read-ahead and payload. Networks, disks and
//! layouts are named in the files of their models.

use std::fmt;
use std::str::FromStr;

pub use world_simulated::LayoutKind as LayoutName;

macro_rules! name {
    (
        $(#[$doc:meta])* $name:ident, $what:literal {
            $($(#[$word_doc:meta])* $word:ident = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$word_doc])* $word),+ }

        impl $name {
            /// Every accepted word.
            pub const WORDS: &[&str] = &[$($text),+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(match self { $(Self::$word => $text),+ })
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($text => Ok(Self::$word),)+
                    _ => Err(format!(
                        concat!("{:?} is not a known ", $what, "; use one of {}"),
                        word,
                        Self::WORDS.join(", "),
                    )),
                }
            }
        }
    };
}

name! {
    /// A machine that can be simulated.
    MachineName, "machine" {
        /// The machine and the file system of TR94-226: 50 MHz processors, HP 97560 disks, a torus.
        /// Pieces travel one by one; clients have one request outstanding at each disk.
        Tr94 = "tr94",
        /// The machine and the file system of TOCS 1997: the hardware of TR94-226. Pieces travel
        /// together, clients have four requests outstanding at each disk, and time ends when the
        /// data is on the medium.
        Tocs97 = "tocs97",
        /// The machine of TR94-226 with disks that have only a latency and a rate: isolates the
        /// effect of the disk mechanics.
        Ideal = "ideal-disks",
        /// A computer of today on which servers and ranks share the cores.
        ThisMachine = "this-machine",
        /// A cluster of today: 100 Gbit/s Ethernet in a fat tree, NVMe disks, data by TCP.
        Cluster = "cluster",
    }
}

name! {
    /// Memory prefetch of the servers, in caching and two-phase.
    ReadAhead, "read-ahead mode" {
        /// Chosen from the declared access pattern.
        Declared = "declared",
        /// Nothing.
        Nothing = "nothing",
        /// The next block on the same disk.
        Next = "next",
        /// A window that slides over the file.
        Window = "window",
    }
}

name! {
    /// Kind of data that moves in a simulation.
    PayloadName, "kind of payload" {
        /// Lengths only: costs no memory, proves nothing about places.
        Phantom = "phantom",
        /// Origin of each byte: proves that every byte lands once, in its place.
        Traced = "traced",
    }
}
