//! Protection of TCP connections: what somebody on the way can read and change.

use serde::{Deserialize, Serialize};
use world::Address;

/// Protection of the bytes of a TCP connection after its handshake, from the weakest. Unix sockets
/// need none.
// Numbers are sent, pinned by a test of the handshake. Words are kept in `instance.json`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireProtection {
    /// None: the bytes travel as they are.
    Plain = 1,
    /// Changes are found; the bytes can be read.
    Integrity = 2,
    /// Changes are found, and the bytes are encrypted.
    Private = 3,
}

impl WireProtection {
    /// All protections, from the weakest.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Integrity, Self::Private];

    /// Word by which users know it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Integrity => "integrity",
            Self::Private => "private",
        }
    }

    /// Returns the protection with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protection| protection.word() == word)
    }

    /// Default for connections to a listener at `address`: [`Plain`](Self::Plain) on the loopback
    /// interface, whose bytes stay in this machine, else [`Private`](Self::Private).
    pub fn default_at(address: &Address) -> Self {
        let host = address.0.strip_prefix("tcp:").unwrap_or_default();
        match host.parse::<std::net::SocketAddr>() {
            Ok(host) if host.ip().to_canonical().is_loopback() => Self::Plain,
            _ => Self::Private,
        }
    }

    /// True if this processor has the instructions that it needs. Intel's have them since
    /// Broadwell, AMD's since Zen.
    pub fn is_supported(self) -> bool {
        self == Self::Plain || graviola::util::is_cpu_supported()
    }
}

impl std::fmt::Display for WireProtection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    //! Proves: connections within a machine are plain by default, all others private.
    use super::*;

    #[test]
    fn only_loopback_is_plain_by_default() {
        let of = |address: &str| WireProtection::default_at(&Address(address.to_owned()));
        for address in ["tcp:127.0.0.1:7", "tcp:127.8.9.1:7", "tcp:[::1]:7"] {
            assert_eq!(of(address), WireProtection::Plain, "{address}");
        }
        let mapped = "tcp:[::ffff:127.0.0.1]:7";
        assert_eq!(of(mapped), WireProtection::Plain);
        for address in ["tcp:10.0.0.1:7", "tcp:[fe80::1]:7", "tcp:localhost:7", "unix:/a", ""] {
            assert_eq!(of(address), WireProtection::Private, "{address}");
        }
    }

    #[test]
    fn words_name_protections() {
        for protection in WireProtection::ALL {
            assert_eq!(WireProtection::from_word(protection.word()), Some(protection));
        }
        assert_eq!(WireProtection::from_word("Private"), None);
    }
}
