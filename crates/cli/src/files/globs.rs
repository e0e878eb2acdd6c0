//! Patterns for names in an instance: `*`, `?` and `[a-z]`, as a shell has them for local files.
//!
//! - A name that exists stands for itself, also with such characters in it.
//! - `*`, `?` and `[...]` match no `/`, and no dot at the beginning of a part.
//! - A backslash takes the meaning from the character after it.

use client::{EntryKind, Session, instance_name};
use globset::{GlobBuilder, GlobMatcher};
use interface::{ErrorKind, UserError};

/// Characters that make a pattern of a part of a name.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Names that words of a command line stand for, in their order. A word without wildcards stands
/// for its name, whether or not that exists.
///
/// # Errors
/// Fails when a pattern matches no name or makes no sense, and when the servers cannot be asked.
pub(crate) fn names(session: &Session, words: &[String]) -> Result<Vec<String>, UserError> {
    let mut names = Vec::new();
    for word in words {
        let matching = matching(session, word)?;
        if matching.is_empty() {
            return Err(UserError::of_kind(
                ErrorKind::NotFound,
                format!("cannot find {word:?}"),
                "no name matches the pattern",
                "`unisono ls` lists the files",
            ));
        }
        names.extend(matching);
    }
    Ok(names)
}

/// Names that a word stands for, sorted; none if it is a pattern that matches no name.
///
/// # Errors
/// As [`names`], but a pattern without a match is none.
pub(crate) fn matching(session: &Session, word: &str) -> Result<Vec<String>, UserError> {
    let name = instance_name(word);
    if !name.contains(WILDCARDS) || session.find(&name)?.is_some() {
        return Ok(vec![name]);
    }
    let mut found = vec![String::new()];
    for part in name.split('/') {
        let glob = part.contains(WILDCARDS).then(|| matcher(word, part)).transpose()?;
        let mut next = Vec::new();
        for directory in found {
            match &glob {
                None => next.push(below(&directory, part)),
                Some(glob) => next.extend(matches_in(session, &directory, part, glob)?),
            }
        }
        found = next;
    }
    let mut names = Vec::new();
    for name in found {
        // The parts behind the last pattern need not exist.
        if session.find(&name)?.is_some() {
            names.push(name);
        }
    }
    Ok(names)
}

/// Names in a directory that match. None if it is no directory.
fn matches_in(
    session: &Session,
    directory: &str,
    part: &str,
    glob: &GlobMatcher,
) -> Result<Vec<String>, UserError> {
    match session.find(directory)?.map(|entry| entry.kind) {
        Some(EntryKind::Directory(_)) => {}
        Some(EntryKind::File(_) | EntryKind::Special(_)) | None => return Ok(Vec::new()),
    }
    let listed = session.list(directory)?.into_iter().map(|entry| entry.name);
    Ok(listed
        .filter(|name| {
            let last = name.rsplit('/').next().unwrap_or(name);
            (!last.starts_with('.') || part.starts_with('.')) && glob.is_match(last)
        })
        .collect())
}

fn below(directory: &str, part: &str) -> String {
    if directory.is_empty() { part.to_owned() } else { format!("{directory}/{part}") }
}

fn matcher(word: &str, part: &str) -> Result<GlobMatcher, UserError> {
    let glob = GlobBuilder::new(part).literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|error| {
        UserError::usage(
            format!("{word:?} is not a pattern for names"),
            error.kind().to_string(),
            "write * for any characters, ? for one, [a-z] for one of several; a backslash takes \
             their meaning from them",
        )
    })?;
    Ok(glob.compile_matcher())
}
