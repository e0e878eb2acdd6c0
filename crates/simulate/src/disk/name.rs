//! The name of a simulated disk.

use super::file::kind_of_file;
use crate::own_models::{CUSTOM, ModelName, OwnModels};
use interface::{UserError, nearest};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use world_simulated::models::ModelInfo;
use world_simulated::{DISKS, DiskDeclaration, DiskKind, ParameterValues};

/// A disk that can be simulated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskName {
    /// A built-in disk model.
    BuiltIn(&'static DiskDeclaration),
    /// A disk model that the program adds.
    Own(ModelName),
    /// A disk that this file describes.
    File(PathBuf),
}

impl DiskName {
    /// Names of the built-in disks.
    pub const WORDS: &[&str] = &{
        let mut words = [""; DISKS.len()];
        let mut index = 0;
        while index < words.len() {
            words[index] = DISKS[index].info.name;
            index += 1;
        }
        words
    };

    /// Help text: the disks with an explanation of each.
    pub(crate) fn help() -> String {
        let disks = ModelInfo::help_of(DISKS.iter().map(|disk| disk.info));
        format!(
            "Disk model of the machine: a name, or a file FILE.toml that describes a disk. The \
             path is relative to the current folder. The examples in docs/disks explain such \
             files. {disks}. {CUSTOM}NAME: a disk model that the program adds."
        )
    }

    /// Returns the disk of this name; a file is read at this call.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or describes no disk; or when the program does not have
    /// the disk model.
    pub(crate) fn kind(&self, own: &OwnModels) -> Result<DiskKind, UserError> {
        match self {
            Self::BuiltIn(disk) => {
                let made = (disk.make)(&ParameterValues::DEFAULTS);
                Ok(made.expect("the default parameters of a disk must fit one another"))
            }
            Self::Own(name) => own.disk(name),
            Self::File(path) => kind_of_file(path),
        }
    }
}

impl FromStr for DiskName {
    type Err = UserError;

    /// Parses a name. A word that looks like a path, or ends in `.toml`, is a file.
    fn from_str(word: &str) -> Result<Self, UserError> {
        let no_disk = |cause: String, help: String| {
            UserError::usage(format!("there is no disk {word:?}"), cause, help)
        };
        if let Some(disk) = DISKS.iter().find(|disk| disk.info.name == word) {
            return Ok(Self::BuiltIn(disk));
        }
        if word.contains('/') || word.ends_with(".toml") {
            return Ok(Self::File(PathBuf::from(word)));
        }
        if let Some(name) = word.strip_prefix(CUSTOM) {
            let help = "name a disk model that the program adds";
            return name.parse().map(Self::Own).map_err(|cause| no_disk(cause, help.to_owned()));
        }
        Err(no_disk(
            format!(
                "the disk models are {}; a file FILE.toml can describe another",
                Self::WORDS.join(", ")
            ),
            match nearest(word, Self::WORDS.iter().copied()) {
                Some(name) => format!("did you mean {name}?"),
                None => "choose a disk model, or describe a disk in a file".to_owned(),
            },
        ))
    }
}

impl fmt::Display for DiskName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(disk) => out.pad(disk.info.name),
            Self::Own(name) => out.pad(&format!("{CUSTOM}{name}")),
            Self::File(path) => path.display().fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every name is read as it is shown, that paths are files, and that a misspelt
    /// name is answered with the intended one.
    #[test]
    fn names() {
        for name in DiskName::WORDS {
            let disk: DiskName = name.parse().expect(name);
            assert_eq!(disk.to_string(), *name);
            assert!(disk.kind(&OwnModels::default()).is_ok());
            assert!(DiskName::help().contains(&format!("{name}: ")), "{name}");
        }
        for path in ["mine.toml", "./hp97560", "/etc/disk.toml"] {
            assert_eq!(path.parse(), Ok(DiskName::File(PathBuf::from(path))));
            assert_eq!(path.parse::<DiskName>().map(|disk| disk.to_string()), Ok(path.to_owned()));
        }
        for (slip, meant) in [
            ("hp97650", "hp97560"),
            ("HP97560", "hp97560"),
            ("c2200a", "hp-c2200a"),
            ("nvm", "nvme"),
            ("analytical", "analytic"),
        ] {
            let error = slip.parse::<DiskName>().expect_err(slip);
            assert_eq!(error.help, format!("did you mean {meant}?"));
        }
        let own: DiskName = "custom:tape".parse().expect("it is a name");
        assert_eq!(own.to_string(), "custom:tape");
        assert!("custom:Tape".parse::<DiskName>().is_err());
        let missing = own.kind(&OwnModels::default()).expect_err("the program has no such disk");
        assert!(missing.cause.contains("custom:tape"), "{missing}");
    }
}
