//! Time in whole nanoseconds, real or simulated.
//!
//! 2^64 ns are 584 years, enough for every simulation. Overflow is an error of the program and
//! panics.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Length of time in nanoseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Duration(u64);

impl Duration {
    /// Zero nanoseconds.
    pub const ZERO: Self = Self(0);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// `seconds`, rounded to the nearest nanosecond. Panics unless finite and not negative.
    pub fn from_seconds(seconds: f64) -> Self {
        assert!((0.0..1e10).contains(&seconds), "not a length of time: {seconds} s");
        Self((seconds * 1e9).round() as u64)
    }

    /// Time that `bytes` take at `bytes_per_second`, rounded up to a nanosecond.
    pub fn of_transfer(bytes: u64, bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "a rate must not be zero");
        let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
        Self(u64::try_from(ns).expect("a transfer must end within 584 years"))
    }

    /// Whole milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Length in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Length in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("a duration must fit in 584 years"))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a duration must not be negative"))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.checked_mul(times).expect("a duration must fit in 584 years"))
    }
}

/// Moment, in nanoseconds since the start of the world.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(u64);

impl Instant {
    /// Start of the world.
    pub const START: Self = Self(0);

    /// Moment `ns` nanoseconds after the start of the world.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start of the world.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`. Panics when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration(self.0.checked_sub(earlier.0).expect("time must not run backwards"))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0.checked_add(length.0).expect("an instant must lie within 584 years"))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.6} s", self.as_seconds())
    }
}
/// Time of day: nanoseconds since the start of 1970 (UTC), until the year 2554. The clock that it
/// comes from may be set back.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// `ns` nanoseconds after the start of 1970.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// `seconds` seconds after the start of 1970, at most the greatest time.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the start of 1970.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Whole seconds since the start of 1970.
    pub const fn as_seconds(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// The present time `now`, or the instant after this time if the clock has not advanced since.
    #[must_use]
    pub const fn advanced_to(self, now: Self) -> Self {
        if now.0 > self.0 { now } else { Self(self.0.saturating_add(1)) }
    }
}
