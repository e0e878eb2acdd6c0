//! `status --wait`: waits until servers have filled lost data directories, and copies and parity
//! are equal to what they are of.

use crate::output::format::plural;
use client::{ServerState, Session};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use interface::UserError;
use std::thread;
use std::time::{Duration, Instant};

/// Pause before the servers are asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Longest wait for a server that does not answer: it may be started again meanwhile.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// What servers still have to do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Left {
    /// Bytes that were filled, and bytes that are to be filled.
    filled_bytes: u64,
    bytes: u64,
    /// Files of which something is to be filled.
    files: u64,
    /// Disks of which it is not known what they lack.
    unlisted_disks: u32,
    /// Files whose copies or parity may not be equal.
    files_behind: u64,
    /// Servers that do not answer.
    away: u32,
}

impl Left {
    fn of(states: &[ServerState]) -> Self {
        let mut left = Self::default();
        for state in states {
            let Ok(status) = &state.status else {
                left.away += 1;
                continue;
            };
            left.filled_bytes += status.refill.filled_bytes;
            left.bytes += status.refill.bytes;
            left.files += status.refill.files;
            left.unlisted_disks += status.refill.unlisted_disks;
            left.files_behind += status.files_behind;
        }
        left
    }

    fn is_nothing(&self) -> bool {
        let Self { files, unlisted_disks, files_behind, away, .. } = *self;
        (files, unlisted_disks, files_behind, away) == (0, 0, 0, 0)
    }

    /// Words beside the bar.
    fn words(&self) -> String {
        match self {
            Self { away: 1.., .. } => format!("{} away", plural(self.away, "server")),
            Self { unlisted_disks: 1.., .. } => "finding out what is lacking".to_owned(),
            Self { files: 1.., .. } => format!("{} to fill", plural(self.files, "file")),
            _ => format!("the protection of {} is behind", plural(self.files_behind, "file")),
        }
    }
}

/// Waits until nothing is left to do, with a progress bar on a terminal. Returns earlier when a
/// server does not answer for a minute.
pub(super) fn until_whole(session: &Session) -> Result<(), UserError> {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{bar:40} {binary_bytes} of {binary_total_bytes}  {eta} left  {msg}",
    );
    // The template is a literal above; a test that waits would find a mistake in it.
    bar.set_style(style.unwrap_or_else(|error| unreachable!("the template is wrong: {error}")));
    let mut answered = Instant::now();
    loop {
        let left = Left::of(&session.status()?);
        if left.is_nothing() || left.away > 0 && answered.elapsed() > AWAY_MAX {
            bar.finish_and_clear();
            return Ok(());
        }
        if left.away == 0 {
            answered = Instant::now();
        }
        bar.set_length(left.filled_bytes + left.bytes);
        bar.set_position(left.filled_bytes);
        bar.set_message(left.words());
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    //! Proves: it is told what is left, first what must be done first.
    use super::*;

    #[test]
    fn what_is_left_is_told() {
        let mut left = Left { filled_bytes: 9, ..Left::default() };
        assert!(left.is_nothing());
        left.files_behind = 1;
        assert_eq!(left.words(), "the protection of 1 file is behind");
        left.files = 2;
        assert_eq!(left.words(), "2 files to fill");
        left.unlisted_disks = 1;
        assert_eq!(left.words(), "finding out what is lacking");
        left.away = 1;
        assert_eq!(left.words(), "1 server away");
        assert!(!left.is_nothing());
    }
}
