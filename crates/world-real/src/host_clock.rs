//! The clock that all processes of this host share.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Number of the clock: the same in processes that read the same time.
pub(crate) fn number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    // Shared with no other process if the system does not tell.
    *NUMBER.get_or_init(|| of_system().unwrap_or_else(random))
}

/// Puts together the number of this start of the system and that of the namespace of clocks, which
/// may shift the time since the start.
fn of_system() -> Option<u64> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    let boot = u64::from_str_radix(&digits, 16).ok()?;
    let namespace = fs::metadata("/proc/self/ns/time").ok()?;
    Some(boot ^ namespace.ino().rotate_left(32))
}

fn random() -> u64 {
    let mut random = [0; 8];
    crate::fill_random(&mut random);
    u64::from_le_bytes(random)
}

/// Time since the start of the host in ns, by the clock of [`world::Clock::now`]. For threads other
/// than that of the event loop.
pub fn host_time_ns() -> u64 {
    crate::timers::now().as_ns()
}
