//! `mount`, `unmount`, and the processes of a mount.
//!
//! Two processes belong to a mount, so that neither leaves it behind when it is killed. One serves
//! the kernel, and unmounts when its standard input ends. The other holds that input, and unmounts
//! when the first one has ended.

use super::servers::instance;
use crate::arguments::{InstanceOnly, Mount, Unmount};
use crate::output::present;
use client::Instance;
use cluster::{Child, Program};
use interface::{ErrorKind, Failure, UserError};
use mount::{MountOptions, MountPoint, mount_point};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Line by which a process of a mount says that it is mounted. Any other is a [`Failure`].
const MOUNTED: &str = "mounted";

pub(crate) fn mount(which: &InstanceOnly, arguments: &Mount) -> Result<(), UserError> {
    if arguments.foreground {
        return hold(which, arguments);
    }
    let instance = instance(which);
    let mut holder = start("mount-hold", &instance, arguments, log_of(&instance))?;
    until_mounted(&mut holder, &arguments.directory)?;
    holder.detach();
    tell_mounted(which, &instance, arguments)
}

/// A mount for the time of a program. Dropping it unmounts, whoever still uses it.
pub(crate) struct MountOfRun {
    directory: PathBuf,
    // Dropped last: it ends by itself once nothing is mounted.
    _holder: Child,
}

impl MountOfRun {
    /// Mounts an instance.
    ///
    /// # Errors
    /// Fails when the directory cannot be mounted on.
    pub(crate) fn start(instance: &Instance, directory: &Path) -> Result<Self, UserError> {
        let directory = directory.to_owned();
        let (allow_other, read_only, foreground, attached) = (false, false, false, true);
        let arguments = Mount { directory, allow_other, read_only, foreground, attached };
        let mut holder = start("mount-hold", instance, &arguments, log_of(instance))?;
        until_mounted(&mut holder, &arguments.directory)?;
        Ok(Self { directory: whole_path(&arguments.directory), _holder: holder })
    }

    /// Whole path of the directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for MountOfRun {
    fn drop(&mut self) {
        // The program may have unmounted it.
        let _ = mount::unmount(&self.directory, true);
    }
}

fn tell_mounted(
    which: &InstanceOnly,
    instance: &Instance,
    arguments: &Mount,
) -> Result<(), UserError> {
    let directory = whole_path(&arguments.directory);
    if which.json {
        return present::json(&json!({
            "schema": "unisono.mount/1", "instance": instance.directory(), "directory": directory,
        }));
    }
    let (shown, from) = (directory.display(), instance.directory().display());
    present::line(&format!("{shown} has the files of the instance {from}"))?;
    present::line(&format!("  unmount it with: unisono unmount {shown}"))
}

pub(crate) fn unmount(arguments: &Unmount) -> Result<(), UserError> {
    let directory = whole_path(&arguments.directory);
    mount::unmount(&arguments.directory, arguments.lazy)?;
    match arguments.json {
        true => present::json(&json!({ "schema": "unisono.unmount/1", "directory": directory })),
        false => present::line(&format!("{} is unmounted", directory.display())),
    }
}

/// Starts the process that serves a mount, says when it is mounted, and frees the directory when
/// that process has ended.
pub(crate) fn hold(which: &InstanceOnly, arguments: &Mount) -> Result<(), UserError> {
    if arguments.attached
        && let Err(error) = cluster::outlast_sigterm()
    {
        return tell(Err(error));
    }
    let instance = instance(which);
    // Before the mount: once its process is gone, the path leads nowhere.
    let directory = whole_path(&arguments.directory);
    let mut server = start("mount-serve", &instance, arguments, Stdio::inherit())?;
    let started = until_mounted(&mut server, &arguments.directory);
    match (started, arguments.foreground) {
        (Err(error), true) => return Err(error),
        (Err(error), false) => return tell(Err(error)),
        (Ok(()), true) => tell_mounted(which, &instance, arguments)?,
        (Ok(()), false) => tell(Ok(()))?,
    }
    if arguments.attached {
        std::thread::spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            // With this process ends the input of the one that serves, which unmounts.
            std::process::exit(0);
        });
    }
    // Its input must stay open until then, which a wait would close.
    while let Ok(Some(_)) = server.read_line() {}
    let ended = server.wait();
    if !ended.is_ok_and(|status| status.success())
        && mount_point(&directory).is_ok_and(|found| found == MountPoint::Instance)
    {
        mount::unmount(&directory, true)?;
        let what = format!("the mount on {} has ended", directory.display());
        let cause = "the process that served it was killed, or has failed";
        let help = "mount it again; if it recurs, report it with mounts.log of the instance";
        return Err(UserError::of_kind(ErrorKind::Internal, what, cause, help));
    }
    Ok(())
}

/// Serves a mount until it is unmounted or standard input ends.
pub(crate) fn serve(which: &InstanceOnly, arguments: &Mount) -> Result<(), UserError> {
    let Mount { directory, allow_other, read_only, attached, .. } = arguments;
    if *attached && let Err(error) = cluster::outlast_sigterm() {
        return tell(Err(error));
    }
    let options = MountOptions { allow_other: *allow_other, read_only: *read_only };
    let mounted = match mount::mount(&instance(which), directory, options) {
        Ok(mounted) => mounted,
        Err(error) => return tell(Err(error)),
    };
    tell(Ok(()))?;
    mounted.until_end(std::io::stdin()).map_err(|error| {
        let what = format!("the mount on {} has ended", directory.display());
        let help = "mount it again; if it recurs, report it with the log of the instance";
        UserError::of_kind(ErrorKind::Internal, what, error.to_string(), help)
    })
}

/// Starts a process of a mount.
fn start(
    role: &str,
    instance: &Instance,
    arguments: &Mount,
    errors: Stdio,
) -> Result<Child, UserError> {
    let mut command = Program::current()?.command(&[role.to_owned()]);
    command.arg("--instance").arg(instance.directory());
    let flags = [
        (arguments.allow_other, "--allow-other"),
        (arguments.read_only, "--read-only"),
        (arguments.attached, "--attached"),
    ];
    command.args(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
    command.arg("--").arg(&arguments.directory);
    Child::start(command, errors)
}

/// Waits until a process of a mount says that it is mounted.
fn until_mounted(process: &mut Child, directory: &Path) -> Result<(), UserError> {
    let said = process.read_line().ok().flatten();
    if said.as_deref() == Some(MOUNTED) {
        return Ok(());
    }
    let failure = said.and_then(|said| serde_json::from_str::<Failure>(&said).ok());
    Err(failure.map_or_else(
        || {
            let what = format!("cannot mount the instance on {}", directory.display());
            let cause = "the process of the mount ended before it was mounted";
            UserError::of_kind(
                ErrorKind::Internal,
                what,
                cause,
                "try again; if it recurs, report it",
            )
        },
        UserError::from,
    ))
}

/// Tells the process that started this one how the start went.
fn tell(mounted: Result<(), UserError>) -> Result<(), UserError> {
    let line = match mounted {
        Ok(()) => MOUNTED.to_owned(),
        Err(error) => json!(Failure::from(error)).to_string(),
    };
    let mut output = std::io::stdout().lock();
    // One that has ended takes the other end of standard input with it.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    Ok(())
}

/// Log of the mounts of an instance, for warnings.
fn log_of(instance: &Instance) -> Stdio {
    let path = instance.directory().join("mounts.log");
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    opened.map_or_else(|_| Stdio::null(), Stdio::from)
}

fn whole_path(directory: &Path) -> PathBuf {
    std::fs::canonicalize(directory).unwrap_or_else(|_| client::absolute(directory))
}
