//! The disk models that users choose by name.

use super::mechanical::{hp_c2200a, hp97560};
use super::spec::DiskDeclaration;
use super::{analytic, ideal, nvme_p5510, page_cache, ssd};

/// Declarations of the disk models, in the order in which users see them.
pub const DISKS: &[DiskDeclaration] = &[
    hp97560::DISK,
    hp_c2200a::DISK,
    ssd::DISK,
    nvme_p5510::DISK,
    page_cache::DISK,
    analytic::DISK,
    ideal::DISK,
];

#[cfg(test)]
mod tests {
    //! Proves: each name belongs to one disk, each disk keeps the contract of its interface, and
    //! its default parameters are permitted.
    use super::*;
    use crate::models::ParameterValues;
    use crate::models::disk::contract;
    use std::collections::BTreeSet;

    #[test]
    fn declared_disks_keep_the_contract() {
        let mut names = BTreeSet::new();
        for disk in DISKS {
            let name = disk.info.name;
            assert!(names.insert(name), "{name} is there twice");
            let kind = (disk.make)(&ParameterValues::DEFAULTS);
            let kind = kind.expect("the defaults fit one another");
            assert_eq!(contract::check(&*kind), Ok(()), "{name}");
            for parameter in disk.parameters {
                let set = ParameterValues::default().set(parameter, parameter.default);
                assert_eq!(set, Ok(()), "{name}");
                assert!(parameter.meaning.ends_with('.'), "{name}: {}", parameter.name);
            }
        }
    }
}
