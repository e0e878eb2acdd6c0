//! Mounts an instance, serves the kernel, and unmounts.

use crate::attributes::Usual;
use crate::operations::Kernel;
use crate::points::{MountPoint, mount_point, release};
use client::{Connection, ConnectionOptions, Instance, InstanceFile, MOUNT_SOURCE};
use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use interface::{ErrorKind, UserError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

/// Threads that serve requests of the kernel.
const THREADS: usize = 8;

/// KiB that the kernel reads ahead of a program that reads a file in order, if it lets us.
const READ_AHEAD_KIB: u32 = 4096;

/// Time between two looks at the instance, whose end ends the mount.
const WATCH_EVERY: Duration = Duration::from_millis(500);

/// Time that programs have to close files of a mount that ends.
const LET_GO_WITHIN: Duration = Duration::from_secs(1);

/// Choices of a mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MountOptions {
    /// True if other users may use it, as the modes of its entries say.
    pub allow_other: bool,
    /// True if nothing can be changed through it.
    pub read_only: bool,
}

/// A mounted instance, not served yet.
pub struct Mounted {
    session: BackgroundSession,
    place: PathBuf,
    instance: Instance,
    file: InstanceFile,
}

/// Reason for which a mount ends.
enum End {
    /// Somebody has unmounted it.
    Unmounted(io::Result<()>),
    /// The process that holds it has ended.
    Held,
    /// The servers were stopped, or started again.
    Instance,
}

/// Mounts an instance on an empty directory. Threads of this process serve it from now on.
///
/// # Errors
/// Fails when there is no such instance or directory, when it is not empty, or when the system
/// refuses the mount.
pub fn mount(
    instance: &Instance,
    directory: &Path,
    options: MountOptions,
) -> Result<Mounted, UserError> {
    let what = cannot_mount(directory);
    let place = free_directory(&what, directory)?;
    // The kernel has its own memory for data.
    let connecting = ConnectionOptions { pool_bytes: 0, ..ConnectionOptions::from_environment()? };
    let failed = |error: UserError| error.doing(&what);
    let connection = Connection::open_with(instance, connecting).map_err(failed)?;
    let file = instance.read().map_err(failed)?;
    let usual = Usual {
        owner: rustix::process::getuid().as_raw(),
        group: rustix::process::getgid().as_raw(),
        time: SystemTime::now(),
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("{MOUNT_SOURCE}{}", instance.directory().display())),
        MountOption::Subtype("unisono".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
        MountOption::NoDev,
        MountOption::NoSuid,
        if options.read_only { MountOption::RO } else { MountOption::RW },
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let kernel = Kernel::new(connection, file.disks_per_server, usual);
    let below = std::fs::metadata(&place).map_or(0, |found| found.dev());
    let session = fuser::spawn_mount(kernel, &place, &config);
    let session = session.map_err(|error| refused(&what, &error))?;
    read_further_ahead(&place, below);
    Ok(Mounted { session, place, instance: instance.clone(), file })
}

/// Refuses a directory on which nothing can be mounted, before there is an instance.
///
/// # Errors
/// Fails when there is no such directory, when it is not empty, or when something is mounted there.
pub fn check_directory(directory: &Path) -> Result<(), UserError> {
    free_directory(&cannot_mount(directory), directory).map(|_| ())
}

fn cannot_mount(directory: &Path) -> String {
    format!("cannot mount the instance on {}", directory.display())
}

impl Mounted {
    /// Waits until it is unmounted, until `holder` ends, or until the servers are stopped, and
    /// unmounts it then. Programs that use it get errors from then on.
    ///
    /// # Errors
    /// Fails when the kernel sends what is no request.
    pub fn until_end(self, holder: impl Read + Send + 'static) -> io::Result<()> {
        let Self { session, place, instance, file } = self;
        let (sender, ends) = channel();
        let tell = sender.clone();
        std::thread::spawn(move || {
            until_closed(holder);
            let _ = tell.send(End::Held);
        });
        let tell = sender.clone();
        std::thread::spawn(move || watch(&instance, &file, &tell));
        std::thread::spawn(move || {
            let _ = sender.send(End::Unmounted(session.join()));
        });
        match ends.recv() {
            Ok(End::Unmounted(ended)) => return ended,
            Ok(End::Held | End::Instance) | Err(_) => {}
        }
        // It may be unmounted by now.
        let _ = release(&place, true);
        while let Ok(end) = ends.recv_timeout(LET_GO_WITHIN) {
            if let End::Unmounted(_) = end {
                break;
            }
        }
        // The end of this process ends what programs still wait for.
        Ok(())
    }
}

/// Reads until the other end has closed.
fn until_closed(mut holder: impl Read) {
    let mut bytes = [0; 64];
    while !matches!(holder.read(&mut bytes), Ok(0) | Err(_)) {}
}

/// Waits until the servers of a mounted instance are no longer those that it was mounted with.
fn watch(instance: &Instance, mounted: &InstanceFile, tell: &Sender<End>) {
    let pids = |file: &InstanceFile| file.servers.iter().map(|it| it.pid).collect::<Vec<_>>();
    loop {
        std::thread::sleep(WATCH_EVERY);
        let has_ended = match instance.read() {
            // Servers that are started again serve on.
            Ok(now) if mounted.reconnect_s > 0 => now.supervisor != mounted.supervisor,
            Ok(now) => pids(&now) != pids(mounted),
            // A file that cannot be read for a moment says nothing.
            Err(_) => !instance.directory().join("instance.json").exists(),
        };
        if has_ended {
            let _ = tell.send(End::Instance);
            return;
        }
    }
}

/// Lets the kernel read more ahead than its usual 128 KiB, which only root may set. `below` is the
/// device of the directory before the mount, which is left as it is.
fn read_further_ahead(place: &Path, below: u64) {
    let found = std::fs::metadata(place).ok();
    let Some(found) = found.filter(|found| found.dev() != below) else { return };
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    // An ordinary user reads as far ahead as the system lets everyone.
    let _ = std::fs::write(setting, READ_AHEAD_KIB.to_string());
}

/// Returns the whole path of an empty directory on which nothing is mounted.
fn free_directory(what: &str, directory: &Path) -> Result<PathBuf, UserError> {
    let usage = |cause: String, help: &str| UserError::of_kind(ErrorKind::Usage, what, cause, help);
    let unusable = |error: io::Error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "make the directory first: mkdir -p DIRECTORY",
            io::ErrorKind::NotConnected => {
                "a mount was left there by a process that was killed; free it with: unisono \
                 unmount --lazy DIRECTORY"
            }
            _ => "mount on an empty directory of yours",
        };
        usage(error.to_string(), help)
    };
    let place = std::fs::canonicalize(directory).map_err(unusable)?;
    let mut inside = std::fs::read_dir(&place).map_err(unusable)?;
    if mount_point(&place).map_err(unusable)? != MountPoint::Free {
        let cause = "a file system is mounted there already".to_owned();
        return Err(usage(cause, "unmount it first (`unisono unmount DIR`), or choose another"));
    }
    match inside.next() {
        None => Ok(place),
        Some(_) => {
            let cause = "the directory is not empty, and a mount would hide what is in it";
            Err(usage(cause.to_owned(), "mount on an empty directory"))
        }
    }
}

fn refused(what: &str, error: &io::Error) -> UserError {
    let help = match error.kind() {
        _ if !Path::new("/dev/fuse").exists() => {
            "this machine has no FUSE: load the module (modprobe fuse), or ask who runs it; in a \
             container, pass the device /dev/fuse"
        }
        io::ErrorKind::NotFound => "install fusermount3 (Debian: apt-get install fuse3)",
        io::ErrorKind::PermissionDenied => {
            "mount on a directory of yours; --allow-other needs user_allow_other in /etc/fuse.conf"
        }
        _ => "mount on an empty directory of yours, on which nothing is mounted",
    };
    UserError::of_kind(ErrorKind::Usage, what, error.to_string(), help)
}
