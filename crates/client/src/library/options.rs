//! Options of a connection, and what the environment says of them.

use crate::instance::InstanceFile;
use interface::UserError;
use std::ffi::OsStr;
use units::{Duration, MIB};

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Size of the pool that buffers come from, in bytes. Only what is used of it takes memory.
    pub pool_bytes: u64,
    /// Time after which a server that does not answer is given up, and that collective calls wait
    /// for missing members.
    pub timeout: std::time::Duration,
    /// Host of this machine on which members of a group listen for one another, where servers
    /// listen by TCP; `None` for the one by which this machine reaches server 0.
    pub peer_host: Option<String>,
    /// True if small writes may be gathered in the memory of the program. All clients see them as
    /// if they were at the servers, but a program that is killed loses those of its last half
    /// second.
    pub gathers_writes: bool,
    /// Time for which a lost server is waited for; then calls of it fail. 0: they fail at once.
    /// `None`: as long as the instance says, which is 0 where nobody starts lost servers again.
    pub reconnect: Option<std::time::Duration>,
}

/// Time-out of calls when nothing else is said, in seconds.
const TIMEOUT_SECONDS: u64 = 60;

impl Default for ConnectionOptions {
    /// A pool of 64 MiB, and a time-out of 60 s.
    fn default() -> Self {
        let timeout = std::time::Duration::from_secs(TIMEOUT_SECONDS);
        let (pool_bytes, peer_host, reconnect) = (64 * MIB, None, None);
        Self { pool_bytes, timeout, peer_host, gathers_writes: true, reconnect }
    }
}

impl ConnectionOptions {
    /// The default, with what the environment says: `UNISONO_TIMEOUT` is the time-out in seconds,
    /// `UNISONO_RECONNECT` the time for which lost servers are waited for, and `UNISONO_GATHER`
    /// says whether small writes are gathered.
    ///
    /// # Errors
    /// Fails when that is no number of seconds, or no answer.
    pub fn from_environment() -> Result<Self, UserError> {
        let mut options = Self::default();
        if let Some(word) = std::env::var_os("UNISONO_TIMEOUT") {
            options.timeout = timeout_of(&word)?;
        }
        if let Some(word) = std::env::var_os("UNISONO_RECONNECT") {
            options.reconnect = Some(reconnect_of(&word)?);
        }
        if let Some(word) = std::env::var_os("UNISONO_GATHER") {
            options.gathers_writes = answer_of(&word)?;
        }
        Ok(options)
    }

    /// The default with a pool of `pool_bytes` bytes.
    pub fn with_pool(pool_bytes: u64) -> Self {
        Self { pool_bytes, ..Self::default() }
    }

    /// The time-out as the file system counts time.
    pub(crate) fn timeout(&self) -> Duration {
        of_world(self.timeout)
    }

    /// Time for which lost servers of an instance are waited for.
    pub(crate) fn reconnect(&self, instance: &InstanceFile) -> Duration {
        let of_instance = || std::time::Duration::from_secs(instance.reconnect_s.into());
        of_world(self.reconnect.unwrap_or_else(of_instance))
    }
}

/// A time as the file system counts it.
fn of_world(time: std::time::Duration) -> Duration {
    Duration::from_ns(time.as_nanos().min(u128::from(u64::MAX / 4)) as u64)
}

fn seconds_of(word: &OsStr) -> Option<std::time::Duration> {
    let seconds = word.to_str()?.parse::<f64>().ok()?;
    std::time::Duration::try_from_secs_f64(seconds).ok()
}

fn reconnect_of(word: &OsStr) -> Result<std::time::Duration, UserError> {
    seconds_of(word).ok_or_else(|| {
        UserError::usage(
            "cannot connect to an instance",
            format!("UNISONO_RECONNECT is {word:?}, not a number of seconds"),
            "set it to the number of seconds to wait for a lost server, such as 60, or to 0",
        )
    })
}

fn timeout_of(word: &OsStr) -> Result<std::time::Duration, UserError> {
    let timeout = seconds_of(word);
    timeout.filter(|timeout| !timeout.is_zero()).ok_or_else(|| {
        UserError::usage(
            "cannot connect to an instance",
            format!("UNISONO_TIMEOUT is {word:?}, not a number of seconds above 0"),
            "set it to the number of seconds to wait for servers and missing members, such as 60",
        )
    })
}

fn answer_of(word: &OsStr) -> Result<bool, UserError> {
    match word.to_str().map(str::to_ascii_lowercase).as_deref() {
        Some("" | "1" | "true" | "yes" | "on") => Ok(true),
        Some("0" | "false" | "no" | "off") => Ok(false),
        _ => Err(UserError::usage(
            "cannot connect to an instance",
            format!("UNISONO_GATHER is {word:?}, neither true nor false"),
            "set it to false to have each small write sent to the servers at once",
        )),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: words of the environment are understood, or refused with the variable's name.
    use super::*;

    #[test]
    fn words_of_the_environment_are_understood() {
        for (word, expected) in
            [("1", true), ("", true), ("Yes", true), ("off", false), ("0", false)]
        {
            assert_eq!(answer_of(OsStr::new(word)).ok(), Some(expected), "{word}");
        }
        let refused = answer_of(OsStr::new("maybe")).expect_err("no answer");
        assert!(refused.to_string().contains("UNISONO_GATHER"), "{refused}");
        assert_eq!(timeout_of(OsStr::new("2")).ok(), Some(std::time::Duration::from_secs(2)));
        for word in ["0", "-1", "soon", ""] {
            assert!(timeout_of(OsStr::new(word)).is_err(), "{word}");
        }
        assert_eq!(reconnect_of(OsStr::new("0")).ok(), Some(std::time::Duration::ZERO));
        let refused = reconnect_of(OsStr::new("soon")).expect_err("no time");
        assert!(refused.to_string().contains("UNISONO_RECONNECT"), "{refused}");
    }
}
