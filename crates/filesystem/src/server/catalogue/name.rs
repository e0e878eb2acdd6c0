//! Names: paths from the root. Clients, which may be anyone, write them.

use wire::{Fault, name_flaw};

/// Returns the parts of a name; none for the root. Refuses an invalid name.
pub(super) fn parts(name: &str) -> Result<impl Iterator<Item = &str>, Fault> {
    if let Some(cause) = name_flaw(name) {
        let shown = name.chars().take(40).collect();
        return Err(Fault::BadName { name: shown, cause: cause.to_owned() });
    }
    Ok(name.split('/').filter(|_| !name.is_empty()))
}

/// Returns the directory of a name and its last part; nothing for the root.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    match name.rsplit_once('/') {
        Some(split) => Some(split),
        None => Some(("", name)).filter(|_| !name.is_empty()),
    }
}

/// Returns the name of `part` in `directory`.
pub(super) fn join(directory: &str, part: &str) -> String {
    match directory {
        "" => part.to_owned(),
        _ => format!("{directory}/{part}"),
    }
}
