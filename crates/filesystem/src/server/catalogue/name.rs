//! Names: paths from the root, as a client, which may be anyone, writes them.

use wire::Fault;

/// The longest name, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 1024;

/// The longest part of a name, in bytes.
const PART_BYTES_MAX: usize = 255;

/// The parts of a name; none for the root. Refuses what cannot be a name.
pub(super) fn parts(name: &str) -> Result<impl Iterator<Item = &str>, Fault> {
    let wrong = |cause: &str| {
        let shown = name.chars().take(40).collect();
        Err(Fault::BadName { name: shown, cause: cause.to_owned() })
    };
    if name.len() > NAME_BYTES_MAX {
        return wrong("it has more than 1024 bytes");
    }
    if name.chars().any(char::is_control) {
        return wrong("it holds a control character");
    }
    let parts = || name.split('/').filter(|_| !name.is_empty());
    for part in parts() {
        match part {
            "" => return wrong("a part of it is empty"),
            "." | ".." => return wrong("a part of it is . or .."),
            long if long.len() > PART_BYTES_MAX => {
                return wrong("a part of it has more than 255 bytes");
            }
            _ => {}
        }
    }
    Ok(parts())
}

/// The directory of a name and its last part; nothing for the root.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    match name.rsplit_once('/') {
        Some(split) => Some(split),
        None => Some(("", name)).filter(|_| !name.is_empty()),
    }
}

/// The name of `part` in `directory`.
pub(super) fn join(directory: &str, part: &str) -> String {
    match directory {
        "" => part.to_owned(),
        _ => format!("{directory}/{part}"),
    }
}
