//! The name of a simulated disk.

use super::file::mechanism_of_file;
use interface::{UserError, nearest};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use units::Duration;
use world_simulated::DiskKind;
use world_simulated::models::analytic::AnalyticSpec;
use world_simulated::models::ssd::SsdSpec;

/// A disk that can be simulated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskName {
    /// The HP 97560 of the papers on disk-directed I/O, on SCSI.
    Hp97560,
    /// The HP C2200A, on HP-IB: HP published traces of it.
    HpC2200a,
    /// A solid-state disk of about 2020, in round figures.
    Nvme,
    /// The HP 97560 as a formula: overhead, seek, mean rotation, transfer.
    Analytic,
    /// A latency of zero and the rate of the HP 97560.
    Ideal,
    /// A disk that this file describes.
    File(PathBuf),
}

/// The rate of an ideal disk: that of the HP 97560 over many tracks, 2.11 MB/s (TOCS 1997,
/// Table I).
const IDEAL_BYTES_PER_SECOND: u64 = 2_212_495;

impl DiskName {
    const NAMED: [(&str, Self); 5] = [
        ("hp97560", Self::Hp97560),
        ("hp-c2200a", Self::HpC2200a),
        ("nvme", Self::Nvme),
        ("analytic", Self::Analytic),
        ("ideal", Self::Ideal),
    ];

    /// Every name.
    pub const WORDS: &[&str] = &["hp97560", "hp-c2200a", "nvme", "analytic", "ideal"];

    /// Returns the model of this name; a file is read at this call.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or describes no disk.
    pub fn mechanism(&self) -> Result<DiskKind, UserError> {
        Ok(match self {
            Self::Hp97560 => DiskKind::Hp97560,
            Self::HpC2200a => DiskKind::HpC2200a,
            Self::Nvme => DiskKind::Ssd(SsdSpec::NVME),
            Self::Analytic => DiskKind::Analytic(AnalyticSpec::HP97560),
            Self::Ideal => DiskKind::Ideal {
                latency: Duration::ZERO,
                bytes_per_second: IDEAL_BYTES_PER_SECOND,
            },
            Self::File(path) => mechanism_of_file(path)?,
        })
    }
}

impl FromStr for DiskName {
    type Err = UserError;

    /// Parses a name. A word that looks like a path, or ends in `.toml`, is a file.
    fn from_str(word: &str) -> Result<Self, UserError> {
        if let Some((_, disk)) = Self::NAMED.iter().find(|(name, _)| *name == word) {
            return Ok(disk.clone());
        }
        if word.contains('/') || word.ends_with(".toml") {
            return Ok(Self::File(PathBuf::from(word)));
        }
        Err(UserError::usage(
            format!("there is no disk {word:?}"),
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
            Self::File(path) => path.display().fmt(out),
            _ => {
                let named = Self::NAMED.iter().find(|(_, disk)| disk == self);
                out.pad(named.map_or("", |(name, _)| name))
            }
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
        assert_eq!(DiskName::NAMED.map(|(name, _)| name), DiskName::WORDS);
        for (name, disk) in DiskName::NAMED {
            assert_eq!(name.parse(), Ok(disk.clone()));
            assert_eq!(disk.to_string(), name);
            assert!(disk.mechanism().is_ok());
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
    }
}
