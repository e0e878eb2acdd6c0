//! The log of what a server or client does, which the variable `UNISONO_LOG` switches on.

use crate::UserError;
use std::str::FromStr;
use std::sync::OnceLock;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Begins to write events to stderr, if the environment says so: `UNISONO_LOG` is a level (`error`,
/// `warn`, `info`, `debug` or `trace`), or levels of parts of the program, such as
/// `filesystem::server=debug`, separated by commas. Only the first call of a process counts, and a
/// program that has a log of its own keeps that.
///
/// # Errors
/// Fails when the variable has no such value.
pub fn begin_log() -> Result<(), UserError> {
    static BEGUN: OnceLock<Result<(), UserError>> = OnceLock::new();
    BEGUN.get_or_init(begin).clone()
}

fn begin() -> Result<(), UserError> {
    let Some(word) = std::env::var_os("UNISONO_LOG").filter(|word| !word.is_empty()) else {
        return Ok(());
    };
    let levels = levels(&word.to_string_lossy())?;
    let events = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // It fails where the program has another log.
    let _ = tracing_subscriber::registry().with(events).with(levels).try_init();
    Ok(())
}

/// Reads the value of the variable.
fn levels(word: &str) -> Result<Targets, UserError> {
    Targets::from_str(word).map_err(|error| {
        UserError::usage(
            "cannot write a log",
            format!("UNISONO_LOG is {word:?}: {error}"),
            "set it to error, warn, info, debug or trace, or to levels of parts, such as \
             filesystem::server=debug",
        )
    })
}

#[cfg(test)]
mod tests {
    //! Proves: levels of the whole program and of parts are read, other words refused.
    use super::*;

    #[test]
    fn levels_are_read() {
        for word in ["info", "debug", "filesystem::server=debug,info"] {
            assert!(levels(word).is_ok(), "{word}");
        }
        for word in ["filesystem=loud", "a=b=c"] {
            let error = levels(word).expect_err(word);
            assert!(error.cause.contains(word), "{error:?}");
        }
    }
}
