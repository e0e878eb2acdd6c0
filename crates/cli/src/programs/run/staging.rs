//! Copies of files into the instance before the program, and out of it afterwards.
//!
//! A file that `UNISONO_MATCH` redirects has its absolute path as its name. What the program finds
//! in its working directory is copied in from there, and out as if that were the root.

use super::program::REPORT;
use crate::arguments::Run;
use client::{CopyPlan, EntryKind, Instance, Place, Protection, Session, instance_name};
use globset::{GlobBuilder, GlobMatcher};
use interface::{ExitCode, UserError};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Directory of the instance that is never copied out.
const OWN: &str = ".unisono";

/// Files of the instance that are the program's.
#[derive(Default)]
pub(super) struct Files {
    pub(super) names: Vec<String>,
    pub(super) bytes: u64,
    /// Number of those that are mirrored.
    pub(super) mirrored: usize,
    /// Number of those that have parity.
    pub(super) with_parity: usize,
}

impl Files {
    /// Lists them after a program. One that ended early has closed no file, and the catalogue knows
    /// their sizes only then: servers are asked for each.
    ///
    /// # Errors
    /// Errors of the servers.
    pub(super) fn after(instance: &Instance, ended_early: bool) -> Result<Self, UserError> {
        let listed = Self::list(instance)?;
        if !ended_early {
            return Ok(listed);
        }
        let session = Session::new(instance.clone());
        let size = |name: &String| match session.look_at(name)?.kind {
            EntryKind::File(record) => Ok(record.bytes),
            EntryKind::Directory(_) | EntryKind::Special(_) => Ok(0),
        };
        let sizes = listed.names.iter().map(size).collect::<Result<Vec<u64>, UserError>>()?;
        Ok(Self { bytes: sizes.iter().sum(), ..listed })
    }

    /// Lists them.
    ///
    /// # Errors
    /// Errors of the servers.
    pub(super) fn list(instance: &Instance) -> Result<Self, UserError> {
        let mut files = Self::default();
        for entry in Session::new(instance.clone()).walk("")? {
            if let EntryKind::File(record) = &entry.kind
                && !is_own(&entry.name)
            {
                files.bytes += record.bytes;
                files.mirrored += usize::from(record.protection == Protection::Mirror);
                let has_parity = record.protection.rows(&record.stripe).is_some();
                files.with_parity += usize::from(has_parity);
                files.names.push(entry.name);
            }
        }
        Ok(files)
    }
}

/// Name in the instance of the working directory, in which the program starts, and which names of
/// redirected files begin with. Empty when it cannot be known.
pub(super) fn working_directory() -> String {
    let path = std::env::current_dir().and_then(|here| here.canonicalize());
    path.ok().and_then(|path| path.to_str().map(instance_name)).unwrap_or_default()
}

/// A name as it is from the working directory, if that is above it.
pub(super) fn from_here<'a>(name: &'a str, here: &str) -> &'a str {
    let inside = name.strip_prefix(here).and_then(|rest| rest.strip_prefix('/'));
    inside.filter(|_| !here.is_empty()).unwrap_or(name)
}

/// True for the command's own directory and everything in it.
fn is_own(name: &str) -> bool {
    name == OWN || name.starts_with(&format!("{OWN}/"))
}

/// Copy of the files out of the instance at the end.
pub(super) struct CopyOut {
    pub(super) target: Target,
    pub(super) left_out: LeftOut,
}

impl CopyOut {
    /// Copy that the arguments say.
    ///
    /// # Errors
    /// Fails when a pattern of the files that are left out is wrong.
    pub(super) fn of(arguments: &Run) -> Result<Self, UserError> {
        let left_out = LeftOut::of(&arguments.no_stage_out_of)?;
        Ok(Self { target: Target::of(arguments), left_out })
    }
}

/// Target of the copy out: the user's, or a new directory in the current one.
pub(super) enum Target {
    /// With `overwrite`, files of the same names are replaced.
    Directory {
        path: PathBuf,
        overwrite: bool,
    },
    New,
    Nowhere,
}

impl Target {
    /// Target that the arguments say.
    pub(super) fn of(arguments: &Run) -> Self {
        match &arguments.stage_out {
            Some(path) => Self::Directory { path: path.clone(), overwrite: arguments.overwrite },
            None if arguments.discard || !arguments.data.is_empty() => Self::Nowhere,
            None => Self::New,
        }
    }

    /// Proves that files can be written there, before anything is computed, and that those which
    /// the arguments name are not there. Returns the directory in which they will be.
    ///
    /// # Errors
    /// Fails when no file can be made there, or one would be replaced.
    pub(super) fn prepare(
        &self,
        arguments: &Run,
        left_out: &LeftOut,
    ) -> Result<Option<PathBuf>, UserError> {
        let directory = match self {
            Self::Directory { path, overwrite } => {
                if !overwrite {
                    let names = named(arguments).filter(|name| !left_out.has(name));
                    let there = names.map(|name| path.join(name)).filter(|path| path.is_file());
                    refuse_replacing(ExitCode::Usage, &there.collect::<Vec<_>>())?;
                }
                path.clone()
            }
            Self::New => PathBuf::from("."),
            Self::Nowhere => return Ok(None),
        };
        let made = std::fs::create_dir_all(&directory)
            .and_then(|()| tempfile::tempfile_in(&directory).map(drop));
        made.map_err(|error| {
            UserError::usage(
                format!("cannot stage out to {}", directory.display()),
                error.to_string(),
                "name a directory that you may write to with --stage-out, or use --discard",
            )
        })?;
        Ok(Some(directory))
    }

    /// Directory for the copies, made if it must be new.
    fn directory(&self) -> Result<PathBuf, UserError> {
        match self {
            Self::Directory { path, .. } => Ok(path.clone()),
            Self::New | Self::Nowhere => {
                let here = std::env::current_dir();
                let made = here.and_then(|here| {
                    tempfile::Builder::new().prefix("unisono-run-").tempdir_in(here)
                });
                made.map(tempfile::TempDir::keep).map_err(|error| {
                    let what = "cannot make a directory for the files of the run";
                    let help = "name one that you may write to with --stage-out";
                    UserError::new(ExitCode::Failed, what, error.to_string(), help)
                })
            }
        }
    }
}

/// Names of files that the arguments of a run have in them: of the instance, and to be staged in.
fn named(arguments: &Run) -> impl Iterator<Item = String> {
    let words = arguments.program.iter().map(|word| word.to_string_lossy());
    let of_program = words.filter_map(|word| {
        let (_, name) = word.split_once("unisono://")?;
        let name =
            name.split([' ', ',', ';', '"', '\'']).next()?.trim_start_matches('/').to_owned();
        (!name.is_empty()).then_some(name)
    });
    let staged_in = arguments.stage_in.iter().filter_map(|path| path.file_name());
    of_program.chain(staged_in.map(|name| name.to_string_lossy().into_owned()))
}

/// Refuses to replace files.
fn refuse_replacing(code: ExitCode, there: &[PathBuf]) -> Result<(), UserError> {
    let Some(first) = there.first() else { return Ok(()) };
    let more =
        if there.len() > 1 { format!(" and {} more", there.len() - 1) } else { String::new() };
    Err(UserError::new(
        code,
        "staging out would replace files",
        format!("{}{more} is there already", first.display()),
        "name another directory with --stage-out, or add --overwrite",
    ))
}

/// Result of a copy out.
pub(super) struct StagedOut {
    pub(super) directory: PathBuf,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// Patterns of `--no-stage-out-of`, for names in the instance and from the working directory.
pub(super) struct LeftOut {
    patterns: Vec<GlobMatcher>,
    here: String,
}

impl LeftOut {
    /// Reads the patterns.
    ///
    /// # Errors
    /// Fails when one is not a pattern.
    pub(super) fn of(patterns: &[String]) -> Result<Self, UserError> {
        let matcher = |pattern: &String| {
            matcher(pattern).map_err(|error| {
                UserError::usage(
                    format!("{pattern:?} is not a pattern"),
                    error.kind().to_string(),
                    "write a pattern such as '*.tmp' or 'scratch/*'",
                )
            })
        };
        let patterns = patterns.iter().map(matcher).collect::<Result<_, _>>()?;
        Ok(Self { patterns, here: working_directory() })
    }

    /// True if a file is not to be copied.
    pub(super) fn has(&self, name: &str) -> bool {
        let from_here = from_here(name, &self.here);
        self.patterns.iter().any(|it| it.is_match(name) || it.is_match(from_here))
    }
}

/// A pattern for whole paths: * also matches slashes.
fn matcher(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher())
}

/// Patterns of `UNISONO_MATCH`, by which programs open local names in the instance.
struct Redirected(Vec<GlobMatcher>);

impl Redirected {
    fn of_environment() -> Self {
        let list = std::env::var("UNISONO_MATCH").unwrap_or_default();
        let patterns = list.split(',').filter(|pattern| !pattern.is_empty());
        Self(patterns.filter_map(|pattern| matcher(pattern).ok()).collect())
    }

    /// Name in the instance by which a program finds this local file, if it is redirected.
    fn name_of(&self, path: &Path) -> Option<String> {
        let absolute = std::path::absolute(path).ok()?;
        let resolved = path.canonicalize().ok()?;
        let spellings = [path, &absolute, &resolved];
        let is_redirected = self.0.iter().any(|it| spellings.iter().any(|path| it.is_match(path)));
        is_redirected.then(|| resolved.to_str().map(instance_name))?
    }
}

/// Makes the report directory, and copies what is to be staged in. Returns files and bytes.
///
/// # Errors
/// Errors of the servers, and of local files.
pub(super) fn stage_in(instance: &Instance, paths: &[PathBuf]) -> Result<(u64, u64), UserError> {
    let session = Session::new(instance.clone());
    session.make_directory(REPORT, true)?;
    let sources: Vec<Place> = paths.iter().map(|path| Place::Local(path.clone())).collect();
    if sources.is_empty() {
        return Ok((0, 0));
    }
    let plan = CopyPlan::new(&session, &sources, &Place::Instance(String::new()), true, None)?;
    let redirected = Redirected::of_environment();
    let plan = plan.named(|path| redirected.name_of(path));
    let copied = session.copy(&plan, &|_| ())?;
    Ok((copied.files, copied.bytes))
}

/// Copies all files of the program out. Each appears under its name when it is whole, and is
/// compared with its checksums.
///
/// # Errors
/// Errors of the servers, and of local files. Files that were complete stay.
pub(super) fn stage_out(
    instance: &Instance,
    target: &Target,
    left_out: &LeftOut,
) -> Result<StagedOut, UserError> {
    let (session, start) = (Session::new(instance.clone()), Instant::now());
    let directory = target.directory()?;
    let root = [Place::Instance(String::new())];
    let plan = CopyPlan::new(&session, &root, &Place::Local(directory.clone()), true, None)?;
    let plan = plan.without(|name| is_own(name) || left_out.has(name)).raised(&left_out.here);
    if matches!(target, Target::Directory { overwrite: false, .. }) {
        let there = targets(&plan).filter(|path| path.symlink_metadata().is_ok());
        let there: Vec<PathBuf> = there.cloned().collect();
        refuse_replacing(ExitCode::Failed, &there)?;
    }
    let copied = session.copy(&plan, &|_| ())?;
    sync(&plan)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(StagedOut { directory, files: copied.files, bytes: copied.bytes, seconds })
}

/// Paths of the copies.
fn targets(plan: &CopyPlan) -> impl Iterator<Item = &PathBuf> {
    plan.files().iter().filter(|file| file.link.is_none()).filter_map(|file| match &file.to {
        Place::Local(path) => Some(path),
        Place::Instance(_) => None,
    })
}

/// Waits until the copies are on stable storage: the originals vanish next.
fn sync(plan: &CopyPlan) -> Result<(), UserError> {
    for path in targets(plan).filter(|path| path.is_file()) {
        let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
        synced.map_err(|error| {
            UserError::new(
                ExitCode::Failed,
                format!("cannot store {}", path.display()),
                error.to_string(),
                "check the disk of that directory",
            )
        })?;
    }
    Ok(())
}
