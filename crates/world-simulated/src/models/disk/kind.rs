//! The kinds of simulated disks, and the construction of their models.
//!
//! To add a disk model: write its file with its specification, its [`ModelInfo`] and its
//! constructor. Implement [`DiskModel`], then add a variant to [`DiskKind`], an arm to
//! [`DiskKind::build`] and, for a disk with a name, a line to [`DiskKind::named`].

use super::analytic::{self, AnalyticDisk, AnalyticSpec};
use super::disk_model::DiskModel;
use super::ideal::{self, IdealDisk};
use super::mechanical::{Drive, HP_97560_INFO, HP_C2200A_INFO, MechanicalDisk};
use super::ssd::{self, Ssd, SsdSpec};
use crate::models::ModelInfo;
use crate::models::bus::BusSpec;
use std::sync::Arc;
use units::Duration;

/// A kind of disk, with all that its model needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// The HP 97560 of the papers, on a SCSI bus.
    Hp97560,
    /// The HP C2200A, on an HP-IB bus.
    HpC2200a,
    /// A mechanical disk that its user describes.
    Mechanical(Arc<Drive>),
    /// A solid-state disk on a link of its own.
    Ssd(SsdSpec),
    /// A disk that is a formula, on no bus.
    Analytic(AnalyticSpec),
    /// A disk with a latency and a rate, on no bus, of any capacity.
    Ideal {
        /// Time before the first byte.
        latency: Duration,
        /// Rate from then on.
        bytes_per_second: u64,
    },
}

impl DiskKind {
    /// Returns the disks that have a name, with names and help texts from the files of the models.
    pub fn named() -> [(ModelInfo, Self); 5] {
        let (latency, bytes_per_second) = (Duration::ZERO, ideal::HP97560_BYTES_PER_SECOND);
        [
            (HP_97560_INFO, Self::Hp97560),
            (HP_C2200A_INFO, Self::HpC2200a),
            (ssd::INFO, Self::Ssd(SsdSpec::NVME)),
            (analytic::INFO, Self::Analytic(AnalyticSpec::HP97560)),
            (ideal::INFO, Self::Ideal { latency, bytes_per_second }),
        ]
    }

    /// Bus that all disks of a node share; `None` where each disk has a link of its own.
    pub fn bus(&self) -> Option<BusSpec> {
        self.drive().map(|drive| drive.spec().bus)
    }

    /// Bytes of a mechanical disk's buffer.
    pub fn buffer_bytes(&self) -> Option<u64> {
        self.drive().map(|drive| drive.spec().buffer_bytes)
    }

    /// Returns this kind with its drive built, if it has one. All disks built from the result share
    /// that drive.
    pub(crate) fn with_drive(&self) -> Self {
        self.drive().map_or_else(|| self.clone(), Self::Mechanical)
    }

    /// Builds a disk at rest. `angle` is the rotation of the medium at the start, in nanoseconds;
    /// whole revolutions do not count. Disks without a medium that turns ignore it.
    pub fn build(&self, angle: u64) -> Box<dyn DiskModel> {
        if let Some(drive) = self.drive() {
            let angle = Duration::from_ns(angle % drive.revolution().as_ns());
            return Box::new(MechanicalDisk::new(drive, angle));
        }
        match *self {
            Self::Hp97560 | Self::HpC2200a | Self::Mechanical(_) => {
                unreachable!("a mechanical disk has a drive")
            }
            Self::Ssd(spec) => Box::new(Ssd::new(spec)),
            Self::Analytic(spec) => Box::new(AnalyticDisk::new(spec)),
            Self::Ideal { latency, bytes_per_second } => {
                Box::new(IdealDisk::new(latency, bytes_per_second))
            }
        }
    }

    fn drive(&self) -> Option<Arc<Drive>> {
        match self {
            Self::Hp97560 => Some(Drive::hp97560()),
            Self::HpC2200a => Some(Drive::hp_c2200a()),
            Self::Mechanical(drive) => Some(Arc::clone(drive)),
            Self::Ssd(_) | Self::Analytic(_) | Self::Ideal { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each name belongs to one disk, and each named disk can be built.
    use super::*;

    #[test]
    fn named_disks_have_distinct_names_and_can_be_built() {
        let mut names = DiskKind::named().map(|(info, kind)| {
            assert!(kind.build(0).shape().capacity_sectors > 0, "{}", info.name);
            info.name
        });
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
    }
}
