//! A time in the description of a disk.

use serde::Deserialize;
use units::Duration;

/// A time as a file gives it: microseconds, with decimals where wanted.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Microseconds(pub(super) Duration);

impl TryFrom<f64> for Microseconds {
    type Error = String;

    fn try_from(us: f64) -> Result<Self, String> {
        if !(0.0..=1e6).contains(&us) {
            return Err(format!("{us} is not a time from 0 to 1000000 microseconds"));
        }
        Ok(Self(Duration::from_ns((us * 1_000.0).round() as u64)))
    }
}
