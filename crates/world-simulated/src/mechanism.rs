//! What moves the data of a disk: a name for each model, and how its parts are put together.

use crate::models::analytic::{AnalyticDisk, AnalyticSpec};
use crate::models::bus::BusSpec;
use crate::models::disk_model::DiskModel;
use crate::models::ideal::IdealDisk;
use crate::models::mechanical::{Drive, MechanicalDisk};
use crate::models::ssd::{Ssd, SsdSpec};
use std::sync::Arc;
use units::Duration;

/// What moves the data of a disk. A new model needs a word here and two lines below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
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
    /// A disk that knows only a latency and a rate, on no bus, of any capacity.
    Ideal {
        /// Time before the first byte.
        latency: Duration,
        /// Rate from then on.
        bytes_per_second: u64,
    },
}

impl Mechanism {
    /// The bus on which all disks of a node are; none where each has a way of its own.
    pub fn bus(&self) -> Option<BusSpec> {
        self.drive().map(|drive| drive.spec().bus)
    }

    /// Bytes of a mechanical disk's buffer.
    pub fn buffer_bytes(&self) -> Option<u64> {
        self.drive().map(|drive| drive.spec().buffer_bytes)
    }

    /// A disk at rest. Where it turns, `angle` says how far it has turned, in nanoseconds; whole
    /// revolutions do not count.
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
