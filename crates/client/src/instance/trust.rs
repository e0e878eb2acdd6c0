//! Refusal of directories that other users control.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symbolic links on a path, as in Linux.
const LINKS_MAX: usize = 40;

/// Reason for which a directory is not used, and what to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// Property of the directory, or of a link to it, that lets others change it.
    pub cause: String,
    /// Change that makes it usable.
    pub help: String,
}

/// Refuses a directory that belongs to another user, that others may write to, or that is reached
/// through another user's link. Root counts as this user. A directory that is not there is not
/// refused.
///
/// # Errors
/// Fails when another user controls what the path names.
pub fn refuse_foreign(directory: &Path) -> Result<(), Foreign> {
    refuse_foreign_links(directory)?;
    let Ok(found) = fs::metadata(directory) else { return Ok(()) };
    let shown = directory.display();
    if !is_trusted(found.uid()) {
        return Err(Foreign {
            cause: format!("{shown} belongs to user {}", found.uid()),
            help: format!(
                "name a directory of your own, or become its owner: chown {} {shown}",
                rustix::process::geteuid().as_raw()
            ),
        });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Foreign {
            cause: format!("other users may write to {shown}: its mode is {mode:o}"),
            help: format!("if it is meant for this alone: chmod go-w {shown}"),
        });
    }
    Ok(())
}

/// Refuses a path on which another user can redirect a symbolic link.
///
/// # Errors
/// Fails when a link belongs to another user.
pub fn refuse_foreign_links(path: &Path) -> Result<(), Foreign> {
    let parts = |path: &Path| path.components().rev().map(owned).collect::<Vec<PathBuf>>();
    let (mut left, mut at, mut links) = (parts(path), PathBuf::new(), 0);
    while let Some(part) = left.pop() {
        if part.as_os_str() == ".." {
            at.pop();
            continue;
        }
        let next = at.join(part);
        // The use of a path that does not exist or cannot be read fails by itself.
        let Ok(found) = fs::symlink_metadata(&next) else { return Ok(()) };
        if !found.is_symlink() {
            at = next;
            continue;
        }
        if !is_trusted(found.uid()) {
            return Err(Foreign {
                cause: format!(
                    "{} is a symbolic link of user {}, who could redirect it",
                    next.display(),
                    found.uid()
                ),
                help: "name the directory by a path without this link".to_owned(),
            });
        }
        links += 1;
        let Ok(target) = fs::read_link(&next) else { return Ok(()) };
        if links > LINKS_MAX {
            return Ok(());
        }
        left.extend(parts(&target));
    }
    Ok(())
}

fn owned(part: Component<'_>) -> PathBuf {
    PathBuf::from(part.as_os_str())
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    //! Proves: directories and links of others are refused, and those of this user are not, also
    //! below a directory that all may write to.
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    #[test]
    fn directories_of_others_are_refused() {
        let room = tempfile::tempdir().expect("a test must have room");
        let (own, link) = (room.path().join("own"), room.path().join("link"));
        fs::create_dir(&own).expect("a test must have room");
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is this user's");
        };
        set(&own, 0o755);
        symlink("own/../own", &link).expect("a test must have room");
        assert_eq!(refuse_foreign(&link), Ok(()));
        assert_eq!(refuse_foreign(&room.path().join("none/below")), Ok(()));
        set(room.path(), 0o1777);
        assert_eq!(refuse_foreign(&own), Ok(()), "its parent may be /tmp");
        for mode in [0o777, 0o1777, 0o775, 0o702] {
            set(&own, mode);
            let found = refuse_foreign(&own).expect_err("others may write to it");
            assert!(found.cause.contains(&format!("{mode:o}")), "{found:?}");
            assert!(found.help.contains("chmod go-w"), "{found:?}");
        }
        set(&own, 0o755);
        if rustix::process::geteuid().is_root() {
            lchown(&link, Some(7), None).expect("root may");
            let found = refuse_foreign(&link.join("below")).expect_err("the link is of another");
            assert!(found.cause.contains("link of user 7"), "{found:?}");
            assert_eq!(refuse_foreign(&own), Ok(()));
            chown(&own, Some(7), None).expect("root may");
            let found = refuse_foreign(&own).expect_err("it is of another");
            assert!(found.cause.contains("belongs to user 7"), "{found:?}");
        }
    }
}
