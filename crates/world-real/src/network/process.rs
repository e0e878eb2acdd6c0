//! One-sided copies between this process and another on the same machine.
//!
//! Invariants:
//!
//! - The process is the one at the other end of a socket, as the kernel says, never as a message
//!   says.
//! - A pidfd holds it, so that its number cannot come to mean another process.
//! - It is used only after a secret that it announced was found in its memory.
#![allow(unsafe_code)]

use libc::iovec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// Size of the secret that shows that a process id means the right process.
pub(crate) const NONCE_BYTES: usize = 16;

/// Maximum number of intervals of one system call on each side (`IOV_MAX`, 1024 on Linux).
const INTERVALS_MAX: usize = 1024;

/// Another process of this machine, whose memory this one may read and write.
pub(crate) struct PeerProcess {
    pid: Pid,
    handle: OwnedFd,
}

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From this process to the peer.
    Write,
    /// From the peer to this process.
    Read,
}

impl PeerProcess {
    /// Returns the process `pid`, if its memory holds `nonce` at `address`; `None` otherwise, or
    /// when the system denies access.
    pub(crate) fn probe(pid: i32, address: u64, nonce: &[u8; NONCE_BYTES]) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        // The handle comes before the check: if the number is reused in between, the nonce is not
        // there; afterwards it cannot be reused.
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let process = Self { pid, handle };
        let mut found = [0; NONCE_BYTES];
        let mut near = [interval(found.as_mut_ptr() as usize, NONCE_BYTES)];
        let mut far = [interval(usize::try_from(address).ok()?, NONCE_BYTES)];
        // SAFETY: `near` is the whole of `found`.
        unsafe { process.copy(Direction::Read, &mut near, &mut far) }.ok()?;
        (found == *nonce).then_some(process)
    }

    /// Copies between intervals `near` in this process and `far` in the other, which hold the same
    /// number of bytes. `EFAULT`: part of `far` is not mapped in the peer.
    ///
    /// # Safety
    ///
    /// `near` is readable, and for [`Direction::Read`] writable, during the call.
    pub(crate) unsafe fn copy(
        &self,
        direction: Direction,
        mut near: &mut [iovec],
        mut far: &mut [iovec],
    ) -> Result<(), Errno> {
        debug_assert_eq!(bytes(near), bytes(far), "both sides must hold as many bytes");
        self.check_alive()?;
        let pid = self.pid.as_raw_nonzero().get();
        loop {
            advance(&mut near, 0);
            advance(&mut far, 0);
            if near.is_empty() || far.is_empty() {
                return Ok(());
            }
            let near_count = near.len().min(INTERVALS_MAX) as libc::c_ulong;
            let far_count = far.len().min(INTERVALS_MAX) as libc::c_ulong;
            let (near_list, far_list) = (near.as_ptr(), far.as_ptr());
            let count = match direction {
                // SAFETY: both lists are that long, and the caller guarantees the near bytes. The
                // kernel checks the far ones.
                Direction::Write => unsafe {
                    libc::process_vm_writev(pid, near_list, near_count, far_list, far_count, 0)
                },
                // SAFETY: as above.
                Direction::Read => unsafe {
                    libc::process_vm_readv(pid, near_list, near_count, far_list, far_count, 0)
                },
            };
            match usize::try_from(count) {
                Ok(0) => return Err(Errno::FAULT),
                Ok(count) => {
                    advance(&mut near, count);
                    advance(&mut far, count);
                }
                Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(code) => return Err(Errno::from_raw_os_error(code)),
                    None => return Err(Errno::IO),
                },
            }
        }
    }

    /// Returns the path by which this process can open a file that the other has open.
    pub(crate) fn descriptor_path(&self, descriptor: u64) -> String {
        format!("/proc/{}/fd/{descriptor}", self.pid.as_raw_nonzero())
    }

    /// Returns `ESRCH` when the process has ended.
    pub(crate) fn check_alive(&self) -> Result<(), Errno> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&at_once))?;
        if ended == 0 { Ok(()) } else { Err(Errno::SRCH) }
    }
}

/// Permits any process of this user to read and write the memory of this one, where the system
/// requires such a permission (Yama); elsewhere this changes nothing.
pub(crate) fn permit_access() {
    // The system call fails without Yama, and then no permission is needed.
    let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
}

/// Describes `length` bytes at `address`, in this process or another.
pub(crate) fn interval(address: usize, length: usize) -> iovec {
    iovec { iov_base: address as *mut libc::c_void, iov_len: length }
}

fn bytes(intervals: &[iovec]) -> usize {
    intervals.iter().map(|interval| interval.iov_len).sum()
}

/// Drops the first `count` bytes of `intervals`, and empty intervals at the front.
fn advance(intervals: &mut &mut [iovec], mut count: usize) {
    while let Some(first) = intervals.first_mut() {
        if first.iov_len > count {
            *first = interval(first.iov_base as usize + count, first.iov_len - count);
            return;
        }
        count -= first.iov_len;
        *intervals = &mut std::mem::take(intervals)[1..];
    }
}
