//! Directories of an instance: those that only this user may enter, and those of its data.
//!
//! Invariant: what was there before is never changed: a directory that is not as it must be is
//! refused.

use crate::labels::unusable as unusable_data;
use crate::server::{CATALOGUE, CATALOGUE_COPY, SIZES};
use client::{CLIENTS_DIRECTORY, Foreign, refuse_foreign, refuse_foreign_links};
use interface::UserError;
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use world_real::OBJECTS_DIRECTORY;

/// One of these is in every directory that was an instance's before.
const MARKS: [&str; 3] = ["instance.json", "key", CLIENTS_DIRECTORY];

/// Makes the directory of an instance, or takes one that is empty or was an instance's before.
pub(crate) fn make_instance_directory(directory: &Path) -> Result<(), UserError> {
    make_directory(directory)?;
    let mut entries =
        fs::read_dir(directory).map_err(|error| unusable(directory, &error.to_string()))?;
    let is_instance = MARKS.iter().any(|mark| directory.join(mark).exists());
    if entries.next().is_some() && !is_instance {
        return Err(unusable(directory, "it is not empty and does not hold an instance"));
    }
    Ok(())
}

/// Makes a directory of mode 0700, or takes one that is there: no link, this user's, closed to
/// others, and not reached through the link of another user.
pub(crate) fn make_directory(directory: &Path) -> Result<(), UserError> {
    let failed = |error: std::io::Error| unusable(directory, &error.to_string());
    refuse_foreign_links(directory)
        .map_err(|Foreign { cause, help }| UserError::usage(what(directory), cause, help))?;
    if let Some(parent) = directory.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        // The umask may have taken even this user's rights.
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check(directory),
        Err(error) => Err(failed(error)),
    }
}

/// Makes a data directory, or takes one that is there and that no other user can change.
pub(crate) fn make_data_directory(directory: &Path) -> Result<(), UserError> {
    let failed = |error: std::io::Error| unusable_data(directory, &error.to_string());
    if !directory.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        // The umask may have taken even this user's rights.
        fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed)?;
    }
    refuse_foreign(directory).map_err(|Foreign { cause, help }| UserError {
        help,
        ..unusable_data(directory, &cause)
    })?;
    refuse_links_in(directory)
}

/// Refuses a data directory whose parts are links. Servers make none.
pub(crate) fn refuse_links_in(directory: &Path) -> Result<(), UserError> {
    let part = |name: &str| directory.join(name);
    let is_link = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match [OBJECTS_DIRECTORY, CATALOGUE, CATALOGUE_COPY, SIZES].map(part).into_iter().find(is_link)
    {
        None => Ok(()),
        Some(link) => Err(UserError {
            help: format!("put the directory itself in place of the link: rm {}", link.display()),
            ..unusable_data(directory, &format!("{} is a symbolic link", link.display()))
        }),
    }
}

fn check(directory: &Path) -> Result<(), UserError> {
    let found = fs::symlink_metadata(directory);
    let found = found.map_err(|error| unusable(directory, &error.to_string()))?;
    if found.is_symlink() {
        return Err(unusable(directory, "it is a symbolic link, which other users could redirect"));
    }
    if !found.is_dir() {
        return Err(unusable(directory, "it is not a directory"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(unusable(directory, "it belongs to another user"));
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        let cause = format!("other users may access it: its mode is {mode:o}");
        let help = format!(
            "if it is meant for this alone: chmod 700 {}   (or name another with --instance)",
            directory.display()
        );
        return Err(UserError::usage(what(directory), cause, help));
    }
    Ok(())
}

fn unusable(directory: &Path, cause: &str) -> UserError {
    let help = "name one that does not exist yet with --instance or UNISONO_INSTANCE";
    UserError::usage(what(directory), cause, help)
}

fn what(directory: &Path) -> String {
    format!("cannot use the instance directory {}", directory.display())
}

/// Refuses to go on as root.
///
/// # Errors
/// Fails when the effective user of this process is root.
pub fn refuse_root() -> Result<(), UserError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(UserError::usage(
        "cannot start servers as root",
        "an attacker who took over a server could access every file of this machine",
        "start them as an ordinary user, or use --allow-root (UNISONO_ALLOW_ROOT=true)",
    ))
}
