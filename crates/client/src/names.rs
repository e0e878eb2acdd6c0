//! Names of an instance as users write them.

use interface::UserError;
use std::path::PathBuf;

/// Prefix of names in an instance.
pub const SCHEME: &str = "unisono://";

/// One end of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Path of a local file or directory.
    Local(PathBuf),
    /// Name in an instance.
    Instance(String),
}

impl Place {
    /// Parses a word of a command line: `unisono://NAME` is in the instance, anything else is
    /// local.
    ///
    /// # Errors
    /// Fails when it begins as if it were in the instance.
    pub fn of_word(word: &str) -> Result<Self, UserError> {
        match (word.strip_prefix(SCHEME), word.strip_prefix(SCHEME.trim_end_matches('/'))) {
            (Some(name), _) => Ok(Self::Instance(plain(name))),
            (None, None) => Ok(Self::Local(PathBuf::from(word))),
            (None, Some(name)) => Err(UserError::usage(
                format!("{word:?} is neither a local path nor a name in the instance"),
                format!("names in the instance begin with {SCHEME}"),
                format!("write {SCHEME}{}; a local file is ./{word}", plain(name)),
            )),
        }
    }

    /// The place of `part` in this directory.
    pub fn join(&self, part: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.join(part)),
            Self::Instance(name) => Self::Instance(join(name, part)),
        }
    }

    /// Parent directory. The root of an instance has none.
    pub(crate) fn directory(&self) -> Option<Self> {
        match self {
            Self::Local(path) => path.parent().map(|parent| Self::Local(parent.to_owned())),
            Self::Instance(name) => {
                name.rsplit_once('/').map(|(parent, _)| Self::Instance(parent.to_owned()))
            }
        }
    }

    /// Last part of the name, if it has one.
    pub fn last_part(&self) -> Option<String> {
        match self {
            Self::Local(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Self::Instance(name) => {
                name.rsplit('/').next().filter(|part| !part.is_empty()).map(str::to_owned)
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(path) => write!(out, "{}", path.display()),
            Self::Instance(name) => write!(out, "{SCHEME}{name}"),
        }
    }
}

/// Normalises a name of an instance. The scheme is optional; slashes at the beginning or the end,
/// and doubled ones, are removed.
pub fn instance_name(word: &str) -> String {
    plain(word.strip_prefix(SCHEME).unwrap_or(word))
}

fn plain(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// The name of `part` in a directory of an instance.
pub(crate) fn join(directory: &str, part: &str) -> String {
    if directory.is_empty() { part.to_owned() } else { format!("{directory}/{part}") }
}

#[cfg(test)]
mod tests {
    //! Proves: every way to write a name means the same one.
    use super::*;

    #[test]
    fn names_may_be_written_as_urls_or_paths() {
        for word in ["a/b", "/a/b", "a//b/", "unisono://a/b", "unisono:///a/b/"] {
            assert_eq!(instance_name(word), "a/b", "{word}");
        }
        assert_eq!((instance_name("/"), instance_name("unisono://")), ("".into(), "".into()));
        let place = |word: &str| Place::of_word(word).expect("it is a place");
        assert_eq!(place("unisono:///a/b").to_string(), "unisono://a/b");
        assert_eq!(place("a/b").last_part().as_deref(), Some("b"));
        assert_eq!(place("unisono://").last_part(), None);
    }
}
