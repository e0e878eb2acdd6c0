//! Names of an instance as users write them.

use std::path::PathBuf;
pub use wire::{SCHEME, instance_name};

/// Start of a word that names something in an instance.
const SCHEME_WORD: &str = "unisono:";

/// One end of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Path of a local file or directory.
    Local(PathBuf),
    /// Name in an instance.
    Instance(String),
}

impl Place {
    /// Parses a word of a command line: `unisono://NAME`, also with fewer slashes, is in the
    /// instance, anything else is local.
    pub fn of_word(word: &str) -> Self {
        match word.starts_with(SCHEME_WORD) {
            true => Self::Instance(instance_name(word)),
            false => Self::Local(PathBuf::from(word)),
        }
    }

    /// The place of `part` in this directory.
    pub fn join(&self, part: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.join(part)),
            Self::Instance(name) => Self::Instance(join(name, part)),
        }
    }

    /// Path of this place from a directory above it, which is "" for itself.
    pub(crate) fn path_below(&self, directory: &Self) -> Option<String> {
        match (self, directory) {
            (Self::Local(path), Self::Local(above)) => {
                Some(path.strip_prefix(above).ok()?.to_string_lossy().into_owned())
            }
            (Self::Instance(name), Self::Instance(above)) if above.is_empty() => Some(name.clone()),
            (Self::Instance(name), Self::Instance(above)) => {
                let rest = name.strip_prefix(above.as_str())?;
                if rest.is_empty() {
                    return Some(String::new());
                }
                rest.strip_prefix('/').map(str::to_owned)
            }
            (Self::Local(_), Self::Instance(_)) | (Self::Instance(_), Self::Local(_)) => None,
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

/// The name of `part` in a directory of an instance.
pub(crate) fn join(directory: &str, part: &str) -> String {
    if directory.is_empty() { part.to_owned() } else { format!("{directory}/{part}") }
}

#[cfg(test)]
mod tests {
    //! Proves: words of a command line are places here or in the instance.
    use super::*;

    #[test]
    fn the_scheme_tells_names_of_the_instance_from_paths() {
        for word in ["unisono://a/b", "unisono:///a/b/", "unisono:a/c/../b", "unisono:./a//b"] {
            assert_eq!(Place::of_word(word), Place::Instance("a/b".to_owned()), "{word}");
        }
        for word in ["a/b", "./unisono:a", "/unisono:/a", "UNISONO://a", ""] {
            assert_eq!(Place::of_word(word), Place::Local(PathBuf::from(word)), "{word}");
        }
        assert_eq!(Place::of_word("unisono:///a/b").to_string(), "unisono://a/b");
        assert_eq!(Place::of_word("a/b").last_part().as_deref(), Some("b"));
        assert_eq!(Place::of_word("unisono://").last_part(), None);
    }
}
