//! Hints of the environment.
//!
//! `UNISONO_HINTS` is a list of pieces between commas, semicolons or line ends. A piece is
//! `KEY=VALUE`, or several between colons (`KEY=VALUE:KEY=VALUE`), and holds for all files. With
//! `PATTERN:` in front it holds for the files whose names match; `*` also matches slashes. That is
//! the form of `MPICH_MPIIO_HINTS` of Cray's MPI:
//! `*.h5:unisono_method=two-phase:unisono_sync=true`.

use super::table::METHOD;
use crate::names::{SCHEME, instance_name};
use globset::GlobBuilder;

/// Most characters of `UNISONO_HINTS` that are read.
const LENGTH_MAX: usize = 1 << 16;

/// A key, with its value or the reason for which there is none.
pub(super) type Setting = (String, Result<String, String>);

/// True when a rejected hint is an error.
pub(super) fn is_strict(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let word = variable("UNISONO_STRICT").unwrap_or_default().to_ascii_lowercase();
    !matches!(word.as_str(), "" | "0" | "false" | "no" | "off")
}

/// Hints that the environment has for the file `name`, in the order in which they are set: each
/// key, with its value or the reason for which there is none.
pub fn hints_of_environment(name: &str) -> Vec<(String, Result<String, String>)> {
    settings(name, &|variable| std::env::var(variable).ok())
}

/// Settings for the file `name`, in the order in which they are made.
pub(super) fn settings(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Vec<Setting> {
    let list = variable("UNISONO_HINTS").unwrap_or_default();
    let mut settings = Vec::new();
    if list.len() > LENGTH_MAX {
        let why = format!("more than {LENGTH_MAX} characters");
        settings.push(("UNISONO_HINTS".to_owned(), Err(why)));
    } else {
        let name = instance_name(name);
        for piece in list.split([',', ';', '\n']).map(str::trim).filter(|piece| !piece.is_empty()) {
            add_piece(&name, piece, &mut settings);
        }
    }
    if let Some(method) = variable("UNISONO_METHOD").filter(|word| !word.is_empty()) {
        settings.push((METHOD.to_owned(), Ok(method)));
    }
    settings
}

/// Adds the settings of one piece, if it holds for the file.
fn add_piece(name: &str, piece: &str, settings: &mut Vec<Setting>) {
    let (pattern, rest) = split_pattern(piece);
    if let Some(pattern) = pattern {
        match GlobBuilder::new(pattern).literal_separator(false).build() {
            Ok(glob) if glob.compile_matcher().is_match(name) => {}
            Ok(_) => return,
            Err(error) => {
                return settings.push((piece.to_owned(), Err(error.kind().to_string())));
            }
        }
    }
    let first = settings.len();
    for word in rest.split(':') {
        match (word.split_once('='), settings[first..].last_mut()) {
            (Some((key, value)), _) => settings.push((key.to_owned(), Ok(value.to_owned()))),
            // A colon inside a value, as in cb_config_list=*:1.
            (None, Some((_, Ok(value)))) => *value = format!("{value}:{word}"),
            (None, _) => settings.push((word.to_owned(), Err("not KEY=VALUE".to_owned()))),
        }
    }
}

/// Pattern of a piece, if it has one, and its settings.
fn split_pattern(piece: &str) -> (Option<&str>, &str) {
    let piece = piece.strip_prefix(SCHEME).unwrap_or(piece);
    match piece.split_once(':') {
        Some((pattern, rest)) if !pattern.contains('=') => (Some(pattern), rest),
        _ => (None, piece),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: lists with and without patterns are read as documented, and what is not a hint is
    //! reported.
    use super::*;

    fn read(list: &str, name: &str) -> String {
        let variable = |wanted: &str| (wanted == "UNISONO_HINTS").then(|| list.to_owned());
        let shown = |(key, value): Setting| match value {
            Ok(value) => format!("{key}={value}"),
            Err(why) => format!("{key}({why})"),
        };
        settings(name, &variable).into_iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pieces_hold_for_the_files_that_match() {
        for (list, name, expected) in [
            ("a=1,b=2", "x", "a=1 b=2"),
            ("a=1; b=2\nc=3", "x", "a=1 b=2 c=3"),
            ("*.h5:a=1:b=2,*.dat:a=3", "runs/7/x.h5", "a=1 b=2"),
            ("*.h5:a=1:b=2,*.dat:a=3", "unisono://x.dat", "a=3"),
            ("unisono://x*:a=1", "unisono://x.dat", "a=1"),
            ("*.h5:a=1,b=2", "x", "b=2"),
            ("cb_config_list=*:1", "x", "cb_config_list=*:1"),
            ("a", "x", "a(not KEY=VALUE)"),
            ("[:a=1", "x", "[:a=1(unclosed character class; missing ']')"),
            ("", "x", ""),
        ] {
            assert_eq!(read(list, name), expected, "{list} for {name}");
        }
    }
}
