//! The words by which a scenario names its machine, network, layout, read-ahead and payload.

use std::fmt;
use std::str::FromStr;

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
            /// Every word that can be said.
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
                        concat!("{:?} is no ", $what, "; there are {}"),
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
        /// The machine and the file system of TR94-226: 50 MHz processors, HP 97560 disks, a
        /// torus; pieces travel one by one, clients have one request under way at each disk.
        Tr94 = "tr94",
        /// Those of TOCS 1997: the same hardware; pieces travel together, clients have four
        /// requests under way at each disk, and time ends when the data is on the medium.
        Tocs97 = "tocs97",
        /// The same with disks that know only a latency and a rate: shows what the mechanics do.
        Ideal = "ideal-disks",
    }
}

name! {
    /// What servers read before anyone asks for it, in caching and two-phase.
    ReadAhead, "way to read ahead" {
        /// As suits what is declared.
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
    /// What connects the nodes of a machine.
    NetworkName, "network" {
        /// A torus of two dimensions, nearly square, with modelled contention.
        Torus = "torus",
        /// The same torus, flit by flit.
        ExactTorus = "exact-torus",
        /// One switch between all nodes.
        Crossbar = "crossbar",
        /// Two levels of switches.
        FatTree = "fat-tree",
    }
}

name! {
    /// How blocks lie on a simulated disk.
    LayoutName, "layout" {
        /// One after the other.
        Contiguous = "contiguous",
        /// Each anywhere.
        RandomBlocks = "random-blocks",
        /// Consecutive within a track, the tracks anywhere.
        RandomTracks = "random-tracks",
    }
}

name! {
    /// What kind of data moves in a simulation.
    PayloadName, "kind of payload" {
        /// Lengths only: costs no memory, proves nothing about places.
        Phantom = "phantom",
        /// Where each byte came from: proves that every byte lands once, in its place.
        Traced = "traced",
    }
}
