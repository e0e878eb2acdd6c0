//! Plan of a copy: which files go where, and which directories they need.

use super::ends::is_standard_input;
use crate::names::Place;
use crate::session::Session;
use interface::{ExitCode, UserError};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wire::{EntryKind, Fault, Special, name_flaw};

/// Characters shown of an invalid name in an error.
const SHOWN_CHARS_MAX: usize = 80;

/// Size of standard input, as of a file that does not tell its size.
const UNTOLD: u64 = 0;

/// Files to copy, and the directories that they need.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    target: Place,
    /// State of the target when the plan was made.
    target_is: Kind,
    /// Block size of every file, in bytes. Overrides the default of the directory.
    block_bytes: Option<u64>,
    options: CopyOptions,
    /// Directories to make, each before those in it.
    directories: Vec<Place>,
    files: Vec<FileCopy>,
}

/// Choices of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyOptions {
    /// True if the copy compares the data in the instance with the data copied.
    pub(super) verifies: bool,
    /// True if targets get the times of the last change of their sources.
    pub(super) keeps_times: bool,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self { verifies: true, keeps_times: false }
    }
}

/// One file to copy.
#[derive(Clone, Debug)]
pub struct FileCopy {
    /// Source of the file.
    pub from: Place,
    /// Destination of the file.
    pub to: Place,
    /// Size when the plan was made, in bytes.
    pub bytes: u64,
    /// Target of the link, if it is a symbolic link of an instance, which is made anew.
    pub link: Option<String>,
    /// True if the file may replace another.
    pub replaces: bool,
}

/// Object that a place holds now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Nothing,
    File(u64),
    Directory,
}

impl CopyPlan {
    /// Copies `sources` to `target`, as `cp` does: into `target` if it is a directory, else under
    /// its name. Directories are copied with `recursive` only. Existing files are replaced.
    ///
    /// # Errors
    /// Fails when something is not there, is a directory without `recursive`, or several would go
    /// to one name; nothing has been copied then.
    pub fn new(
        session: &Session,
        sources: &[Place],
        target: &Place,
        recursive: bool,
        block_bytes: Option<u64>,
    ) -> Result<Self, UserError> {
        let target_is = kind_of(session, target)?;
        let into = target_is == Kind::Directory;
        if sources.len() > 1 && !into {
            return Err(UserError::usage(
                format!("cannot copy to {target}"),
                "the target of several sources must be a directory, and this is not one",
                "make it first: unisono mkdir -p DIRECTORY",
            ));
        }
        let (directories, files) = (Vec::new(), Vec::new());
        let target = target.clone();
        let mut plan = Self {
            target,
            target_is,
            block_bytes,
            options: CopyOptions::default(),
            directories,
            files,
        };
        for source in sources {
            let to = match source.last_part().filter(|_| into) {
                Some(_) if matches!(source, Place::Local(path) if is_standard_input(path)) => {
                    return Err(UserError::usage(
                        format!("cannot copy standard input to {}", plan.target),
                        "standard input has no name, and the target is a directory",
                        "name the file, not the directory",
                    ));
                }
                Some(last) => plan.target.join(&last),
                None => plan.target.clone(),
            };
            match kind_of(session, source)? {
                Kind::Nothing => return Err(missing(source)),
                Kind::File(bytes) => plan.add_file(source.clone(), to, bytes),
                Kind::Directory if !recursive => {
                    return Err(UserError::usage(
                        format!("cannot copy {source}"),
                        "it is a directory",
                        "use --recursive to copy it with everything below it",
                    ));
                }
                Kind::Directory => plan.add_tree(session, source, &to)?,
            }
        }
        plan.check_targets()?;
        Ok(plan)
    }

    /// Refuses invalid names, a file copied onto itself, and two files with the same target,
    /// because either of them could win.
    fn check_targets(&self) -> Result<(), UserError> {
        let files = self.files.iter().map(|file| &file.to);
        for target in self.directories.iter().chain(files) {
            if let Place::Instance(name) = target
                && let Some(flaw) = name_flaw(name)
            {
                // Servers check this too, but one file at a time.
                let name: String = name.chars().take(SHOWN_CHARS_MAX).collect();
                let what = format!("cannot copy to {name:?}");
                let fault = Fault::BadName { name, cause: flaw.to_owned() };
                return Err(UserError::of_fault(&what, &fault));
            }
        }
        if let Some(file) = self.files.iter().find(|file| file.from == file.to) {
            return Err(UserError::usage(
                format!("cannot copy {} to {}", file.from, file.to),
                "they are the same file",
                "name another target",
            ));
        }
        let mut targets: Vec<(String, String)> =
            self.files.iter().map(|file| (file.to.to_string(), file.from.to_string())).collect();
        targets.sort_unstable();
        match targets.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(()),
            Some(pair) => Err(UserError::usage(
                format!("cannot copy two files to {}", pair[0].0),
                format!("{} and {} would have the same name there", pair[0].1, pair[1].1),
                "copy them to different names",
            )),
        }
    }

    /// Copies one local file to a place that must be free, in a directory that need not be there.
    pub(super) fn of_file(
        from: &Path,
        to: Place,
        block_bytes: Option<u64>,
    ) -> Result<Self, UserError> {
        let from = Place::Local(from.to_owned());
        let what = format!("cannot copy {from} to {to}");
        let Place::Local(path) = &from else { unreachable!("it was made above") };
        let bytes = match is_standard_input(path) {
            true => UNTOLD,
            false => {
                let found = std::fs::metadata(path);
                found.map_err(|error| super::ends::local_error(&what, &error))?.len()
            }
        };
        let directories = to.directory().into_iter().collect();
        let file = FileCopy { from, to: to.clone(), bytes, link: None, replaces: false };
        let target_is = Kind::Nothing;
        Ok(Self {
            target: to,
            target_is,
            block_bytes,
            options: CopyOptions::default(),
            directories,
            files: vec![file],
        })
    }

    /// Leaves out the files and directories of an instance of which `is_left_out` is true. It is
    /// given their names; the name of a directory is that below the target.
    pub fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Self {
        let target = self.target.to_string();
        self.directories.retain(|place| {
            let name = place.to_string();
            !is_left_out(name.strip_prefix(&target).unwrap_or(&name).trim_start_matches('/'))
        });
        self.files.retain(|file| match &file.from {
            Place::Instance(name) => !is_left_out(name),
            Place::Local(_) => true,
        });
        self
    }

    /// Gives files and directories below `directory`, a path from the target, places directly below
    /// the target. If two files would then clash, all stay where they were.
    pub fn raised(mut self, directory: &str) -> Self {
        let Self { target, directories, files, .. } = &mut self;
        let raise = |place: &Place| {
            let path = place.path_below(target)?;
            let inside = path.strip_prefix(directory)?.strip_prefix('/')?;
            Some(target.join(inside))
        };
        let raised = |place: &Place| raise(place).unwrap_or_else(|| place.clone());
        // Directories above, which may be left without content, are made with their files.
        let is_above = |place: &Place| {
            let path = place.path_below(target);
            path.is_some_and(|path| !path.is_empty() && is_in(directory, &path))
        };
        let kept = directories.iter().filter(|place| !is_above(place));
        let mut raised_directories: Vec<Place> = kept.map(raised).collect();
        let raised_files: Vec<Place> = files.iter().map(|file| raised(&file.to)).collect();
        if directory.is_empty() || clash(&raised_files, &raised_directories) {
            return self;
        }
        for (file, raised) in files.iter_mut().zip(raised_files) {
            let needed = raised.directory().filter(|needed| !raised_directories.contains(needed));
            raised_directories.extend(needed);
            file.to = raised;
        }
        *directories = raised_directories;
        self
    }

    /// Copies local files of which `name_of` knows the name in the instance to that name.
    pub fn named(mut self, name_of: impl Fn(&Path) -> Option<String>) -> Self {
        for file in &mut self.files {
            if let Place::Local(path) = &file.from
                && let Some(name) = name_of(path)
            {
                file.to = Place::Instance(name);
                let needed = file.to.directory().filter(|it| !self.directories.contains(it));
                self.directories.extend(needed);
            }
        }
        self
    }

    /// Turns off the comparison of the data in the instance with the data copied.
    pub fn unverified(self) -> Self {
        Self { options: CopyOptions { verifies: false, ..self.options }, ..self }
    }

    /// Gives targets the times of the last change of their sources.
    pub fn keeping_times(self) -> Self {
        Self { options: CopyOptions { keeps_times: true, ..self.options }, ..self }
    }

    pub(super) fn options(&self) -> CopyOptions {
        self.options
    }

    /// Refuses a plan whose target would be a file. A target written with a slash at its end must
    /// be a directory.
    ///
    /// # Errors
    /// Fails when it would be a file.
    pub fn with_slash(self) -> Result<Self, UserError> {
        if self.files.iter().all(|file| file.to != self.target) {
            return Ok(self);
        }
        Err(no_directory(
            format!("cannot copy to {}", self.target),
            self.target_is != Kind::Nothing,
        ))
    }

    /// Destination of the whole copy.
    pub fn target(&self) -> &Place {
        &self.target
    }

    /// Files in the order in which they are begun.
    pub fn files(&self) -> &[FileCopy] {
        &self.files
    }

    /// Total size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn directories(&self) -> &[Place] {
        &self.directories
    }

    pub(super) fn block_bytes(&self) -> Option<u64> {
        self.block_bytes
    }

    fn add_file(&mut self, from: Place, to: Place, bytes: u64) {
        self.files.push(FileCopy { from, to, bytes, link: None, replaces: true });
    }

    fn add_tree(&mut self, session: &Session, from: &Place, to: &Place) -> Result<(), UserError> {
        if let (Place::Instance(from), Place::Instance(to)) = (from, to)
            && (to == from || to.starts_with(&format!("{from}/")) || from.is_empty())
        {
            return Err(UserError::usage(
                format!("cannot copy {from:?} to {to:?}"),
                "the target is inside the source",
                "name a target outside the source",
            ));
        }
        match from {
            Place::Local(path) => self.add_local_tree(path, to, &[]),
            Place::Instance(name) => {
                for entry in session.walk(name)? {
                    let inside = entry.name[name.len()..].trim_start_matches('/').to_owned();
                    let target = if inside.is_empty() { to.clone() } else { to.join(&inside) };
                    match entry.kind {
                        EntryKind::Directory(_) => self.directories.push(target),
                        EntryKind::File(record) => {
                            self.add_file(Place::Instance(entry.name), target, record.bytes);
                        }
                        EntryKind::Special(Special::Link { target: link }) => {
                            let (from, link) = (Place::Instance(entry.name), Some(link));
                            let link =
                                FileCopy { from, to: target, bytes: 0, link, replaces: true };
                            self.files.push(link);
                        }
                        // They have no data, and what they were for is here.
                        EntryKind::Special(Special::Fifo | Special::Socket) => {}
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds a local directory. `above` lists its parent directories, as the system identifies them.
    fn add_local_tree(
        &mut self,
        path: &Path,
        to: &Place,
        above: &[(u64, u64)],
    ) -> Result<(), UserError> {
        let failed = |error: std::io::Error| {
            super::ends::local_error(&format!("cannot copy {}", path.display()), &error)
        };
        let found = std::fs::metadata(path).map_err(failed)?;
        let own = (found.dev(), found.ino());
        if above.contains(&own) {
            return Err(UserError::new(
                ExitCode::Failed,
                format!("cannot copy {}", path.display()),
                "it is a link to a directory above it, so the copy would never end",
                "remove the link, or leave it out of the copy",
            ));
        }
        let above = [above, &[own]].concat();
        self.directories.push(to.clone());
        let read: std::io::Result<Vec<_>> = std::fs::read_dir(path).map_err(failed)?.collect();
        let mut entries = read.map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            // Symbolic links are followed: their targets are copied.
            let found = std::fs::metadata(entry.path());
            let metadata = found.map_err(|error| unreachable_entry(&entry.path(), &error))?;
            let Ok(part) = entry.file_name().into_string() else {
                return Err(UserError::new(
                    ExitCode::Failed,
                    // In quotes, which show the bytes.
                    format!("cannot copy {:?}", entry.path()),
                    "its name is not UTF-8, which names in an instance must be",
                    "rename it, or leave it out of the copy",
                ));
            };
            let target = to.join(&part);
            if metadata.is_dir() {
                self.add_local_tree(&entry.path(), &target, &above)?;
            } else if metadata.is_file() {
                self.add_file(Place::Local(entry.path()), target, metadata.len());
            } else {
                return Err(UserError::new(
                    ExitCode::Failed,
                    format!("cannot copy {}", entry.path().display()),
                    "it is not a regular file, but a pipe, a socket or a device",
                    "remove it, or leave it out of the copy",
                ));
            }
        }
        Ok(())
    }
}

/// True if `path` is `directory` or below it.
fn is_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if two of the files have one place, or a file has that of a directory or is above another.
fn clash(files: &[Place], directories: &[Place]) -> bool {
    let directories: BTreeSet<String> =
        directories.iter().map(|directory| format!("{directory}/./")).collect();
    let mut places: Vec<String> = files.iter().map(|file| format!("{file}/")).collect();
    places.extend(directories);
    // What is below a file would sort right after it.
    places.sort_unstable();
    places.windows(2).any(|pair| pair[1].starts_with(&pair[0]))
}

fn kind_of(session: &Session, place: &Place) -> Result<Kind, UserError> {
    match place {
        Place::Local(path) if is_standard_input(path) => Ok(Kind::File(UNTOLD)),
        Place::Local(path) => match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Kind::Directory),
            // A pipe or a device exists, too. Its worker finds out if it can be copied.
            Ok(found) => Ok(Kind::File(found.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kind::Nothing),
            Err(error) => {
                let what = format!("cannot read the metadata of {}", path.display());
                Err(super::ends::local_error(&what, &error))
            }
        },
        Place::Instance(name) => match session.find(name)?.map(|entry| entry.kind) {
            None => Ok(Kind::Nothing),
            Some(EntryKind::File(record)) => Ok(Kind::File(record.bytes)),
            Some(EntryKind::Directory(_)) => Ok(Kind::Directory),
            // The copy finds out that it cannot be opened.
            Some(EntryKind::Special(_)) => Ok(Kind::File(0)),
        },
    }
}

/// Error of an entry of a local directory that cannot be inspected.
fn unreachable_entry(path: &Path, error: &std::io::Error) -> UserError {
    let what = format!("cannot copy {}", path.display());
    match std::fs::read_link(path) {
        Ok(to) if error.kind() == std::io::ErrorKind::NotFound => UserError::new(
            ExitCode::Failed,
            what,
            format!("it is a symbolic link to {}, which does not exist", to.display()),
            "links are followed: remove the link, or create the file that it points to",
        ),
        _ => super::ends::local_error(&what, error),
    }
}

/// Error of a name with a slash at its end that names a file, or nothing.
pub fn no_directory(what: impl Into<String>, is_there: bool) -> UserError {
    let cause = match is_there {
        true => "it is not a directory, but the name ends with /",
        false => "there is no such directory, but the name ends with /",
    };
    let help = "make it first, with unisono mkdir -p DIRECTORY, or remove the /";
    UserError::usage(what, cause, help)
}

fn missing(place: &Place) -> UserError {
    let help = match place {
        Place::Local(_) => "check the path; names in the instance begin with unisono://",
        Place::Instance(_) => "`unisono ls` lists the files",
    };
    let what = format!("cannot copy {place}");
    UserError::new(ExitCode::Failed, what, "there is no such file", help)
}

#[cfg(test)]
mod tests {
    //! Proves: places below a directory are raised to the target, unless two files would clash;
    //! then all stay.
    use super::*;
    use std::collections::BTreeSet;

    fn raised(names: &[&str]) -> Vec<String> {
        let target = Place::Local("out".into());
        let file = |name: &&str| FileCopy {
            from: Place::Instance((*name).to_owned()),
            to: target.join(name),
            bytes: 1,
            link: None,
            replaces: true,
        };
        let directories = ["home", "home/me", "home/me/runs", "home/me/runs/deep"];
        let of_names = names.iter().filter_map(|name| target.join(name).directory());
        let directories: BTreeSet<String> = directories
            .iter()
            .map(|name| target.join(name))
            .chain(of_names)
            .filter(|directory| *directory != target)
            .map(|directory| directory.to_string())
            .collect();
        let plan = CopyPlan {
            target: target.clone(),
            target_is: Kind::Directory,
            block_bytes: None,
            options: CopyOptions::default(),
            directories: directories.iter().map(|path| Place::Local(path.into())).collect(),
            files: names.iter().map(file).collect(),
        };
        let plan = plan.raised("home/me/runs");
        for file in plan.files() {
            let directory = file.to.directory().expect("it has one");
            assert!(directory == target || plan.directories().contains(&directory), "{directory}");
        }
        plan.files().iter().map(|file| file.to.to_string()).collect()
    }

    #[test]
    fn files_below_a_directory_are_raised_together() {
        let names = ["home/me/runs/a", "home/me/runs/deep/b", "home/me/c", "home/me/runs2", "d"];
        assert_eq!(
            raised(&names),
            ["out/a", "out/deep/b", "out/home/me/c", "out/home/me/runs2", "out/d"]
        );
        for clashing in [
            ["home/me/runs/a", "a"],
            ["home/me/runs/a", "a/b"],
            ["home/me/runs/a/b", "a"],
            ["home/me/runs/home", "home/me/c"],
        ] {
            assert_eq!(raised(&clashing), clashing.map(|name| format!("out/{name}")));
        }
    }
}
