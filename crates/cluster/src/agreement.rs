//! Check that the directories that the servers of a start have found belong together: by their
//! labels, and by the last generation that each of them records.
//!
//! The complete generation of the catalogue is that of the instance. A disk with an earlier one is
//! an older copy, and one without has lost what it had. Without this check, what they lack would
//! be read as zeros, or as old bytes.
//!
//! *Invariant:* a start that was interrupted leaves places that agree.

use crate::control::{Found, Permission};
use crate::generations::{FoundDisk, Step};
use crate::labels::{FoundLabel, common_set};
use crate::lost_data::LostData;
use crate::server::CATALOGUE;
use client::LostDisk;
use interface::{ExitCode, UserError};
use std::path::{Path, PathBuf};
use world_real::{Generation, Generations, RECORDS_FILE};

/// Permits each server to go on with the directories that it has found, if they belong together.
/// `named` holds the name of each directory and its label; `lost_data` says what happens to those
/// that are lost.
///
/// # Errors
/// Fails when they do not belong together, and, if lost ones are refused, when one of them is lost.
pub(crate) fn permissions(
    found: &[Found],
    named: Vec<(String, Option<FoundLabel>)>,
    lost_data: LostData,
) -> Result<Vec<Permission>, UserError> {
    let disks = found.iter().flat_map(|server| &server.disks);
    let is_new = |label: &Option<FoundLabel>| label.as_ref().is_none_or(|it| it.is_provisional);
    let is_there = |((_, label), disk): &((String, Option<FoundLabel>), &FoundDisk)| {
        disk.absent.is_none() && !(lost_data.refills() && is_new(label))
    };
    let there = named.into_iter().zip(disks).filter(is_there);
    let set = common_set(&there.map(|(named, _)| named).collect::<Vec<_>>())?;
    refuse_lost_catalogue(found, lost_data.is_degraded())?;
    let Agreement { step, number, lost, .. } = Agreement::of(found, lost_data)?;
    let permission = |lost| Permission { set: set.clone(), step, generation: number, lost };
    Ok(lost.into_iter().map(permission).collect())
}

/// Data directories that are lost.
pub(crate) fn lost_disks(permissions: &[Permission]) -> Vec<LostDisk> {
    let of_server = |(server, permission): (u32, &Permission)| {
        let lost = (0..).zip(permission.lost.clone());
        let lost =
            lost.filter_map(move |(disk, cause)| Some(LostDisk { server, disk, cause: cause? }));
        lost.collect::<Vec<_>>()
    };
    (0..).zip(permissions).flat_map(of_server).collect()
}

/// Refuses a new catalogue beside data of files, or where nothing may be changed. File numbers
/// would be used again, and the old data would be taken for that of new files.
fn refuse_lost_catalogue(found: &[Found], degraded: bool) -> Result<(), UserError> {
    if degraded && let Some(first) = found.first().filter(|first| !first.has_catalogue) {
        return Err(no_catalogue(first.data.first().map_or("".as_ref(), |it| it)));
    }
    let with_data = found.iter().position(|one| one.has_objects);
    match (found.first(), with_data) {
        (Some(Found { data, has_catalogue: false, .. }), Some(id)) => {
            Err(lost_catalogue(&format!("server {id}"), data.first().map_or("".as_ref(), |it| it)))
        }
        _ => Ok(()),
    }
}

/// Generations at a start: the new one, and the directories that are lost.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Agreement {
    /// `None` if no directory gets a new generation.
    pub(crate) step: Option<Step>,
    /// Number of the generation from this start on.
    pub(crate) number: u32,
    /// The last complete generation.
    pub(crate) agreed: Option<Generation>,
    /// Cause of the loss of each directory of each server that is lost.
    pub(crate) lost: Vec<Vec<Option<String>>>,
}

impl Agreement {
    /// Finds out which directories of one server belong to the last start of an instance with this
    /// catalogue, whose generation stays.
    pub(crate) fn of_one(
        found: Found,
        catalogue: Option<Generations>,
        lost_data: LostData,
    ) -> Result<Self, UserError> {
        let has_catalogue = catalogue.is_some();
        let catalogue = catalogue.unwrap_or_default();
        Self::of(&[Found { catalogue, has_catalogue, has_room: false, ..found }], lost_data)
    }

    /// Finds out which directories belong to the last start.
    ///
    /// # Errors
    /// Fails when a directory is lost, if those are refused; if they are filled again, when one is
    /// not empty.
    pub(crate) fn of(found: &[Found], lost_data: LostData) -> Result<Self, UserError> {
        let disks = || found.iter().flat_map(|server| &server.disks);
        let catalogue = found.first().map_or_else(Generations::default, |first| first.catalogue);
        // A catalogue that is missing knows of no start. Data without a catalogue is refused
        // elsewhere.
        let is_new = found.first().is_none_or(|first| !first.has_catalogue);
        let agreed = agreed(catalogue, disks().map(|disk| disk.generations));
        let why = |disk: &FoundDisk| match (&disk.absent, is_new) {
            (Some(cause), _) => Some(cause.clone()),
            (None, true) => None,
            (None, false) => why_lost(disk.generations, agreed),
        };
        let of_server = |server: &Found| server.disks.iter().map(why).collect();
        let lost: Vec<Vec<Option<String>>> = found.iter().map(of_server).collect();
        match lost_data {
            LostData::Refuse => refuse_lost(found, &lost)?,
            LostData::Degraded => {}
            LostData::Refill { .. } => refuse_old_data(found, &lost)?,
        }
        let degraded = lost_data.is_degraded();
        let has_room = found.iter().all(|server| server.has_room);
        let next = (!degraded && has_room).then(|| next(catalogue, agreed)).transpose()?;
        Ok(Self {
            step: next.map(|next| Step { agreed, next }),
            number: next.or(agreed).map_or(0, |generation| generation.number),
            agreed,
            lost,
        })
    }
}

/// The last complete start, as far as the catalogue is concerned. Its server may have been killed
/// before it learned that the start was complete.
fn agreed(
    catalogue: Generations,
    disks: impl IntoIterator<Item = Generations>,
) -> Option<Generation> {
    let is_complete =
        |begun: &Generation| disks.into_iter().any(|disk| disk.complete.as_ref() == Some(begun));
    let later = catalogue.begun.filter(|begun| Some(*begun) != catalogue.complete);
    later.filter(is_complete).or(catalogue.complete)
}

/// Returns why a disk does not hold what it had at the end of the generation `agreed`; `None` if it
/// does.
fn why_lost(disk: Generations, agreed: Option<Generation>) -> Option<String> {
    match (agreed, disk.complete) {
        (None, None) => None,
        (Some(agreed), _) if [disk.complete, disk.begun].contains(&Some(agreed)) => None,
        (Some(_), None) => Some("it has lost what it held: it has no generation".to_owned()),
        (None, Some(disk)) => Some(format!(
            "it is of generation {}, and the catalogue has no generation",
            disk.number
        )),
        (Some(agreed), Some(disk)) if agreed.number == disk.number => {
            Some(format!("it is of another generation {} than the catalogue", disk.number))
        }
        (Some(agreed), Some(disk)) => Some(format!(
            "it is of generation {}, and the catalogue of generation {}",
            disk.number, agreed.number
        )),
    }
}

fn refuse_lost(found: &[Found], lost: &[Vec<Option<String>>]) -> Result<(), UserError> {
    let directories = found.iter().flat_map(|server| &server.data).zip(lost.iter().flatten());
    let lost: Vec<(&PathBuf, &String)> =
        directories.filter_map(|(path, cause)| Some((path, cause.as_ref()?))).collect();
    let Some((first, cause)) = lost.first() else { return Ok(()) };
    let (count, all) = (lost.len(), found.iter().map(|server| server.data.len()).sum::<usize>());
    let others = if count > 1 { format!("; {} others likewise", count - 1) } else { String::new() };
    Err(UserError::new(
        ExitCode::DataCheck,
        format!("cannot start: {count} of {all} data directories do not hold what they held last"),
        format!("{}: {cause}{others}", first.display()),
        "put back the directories as they were last; or have empty ones filled from copies: \
         unisono start --refill; or read what is left: unisono start --degraded",
    ))
}

/// Refuses directories in the places of lost ones that hold data.
fn refuse_old_data(found: &[Found], lost: &[Vec<Option<String>>]) -> Result<(), UserError> {
    let directories = found.iter().flat_map(|server| server.data.iter().zip(&server.disks));
    let mut old = directories.zip(lost.iter().flatten());
    let holds_data = |((_, disk), lost): &((&PathBuf, &FoundDisk), &Option<String>)| {
        lost.is_some() && disk.has_objects
    };
    let Some(((path, _), cause)) = old.find(holds_data) else { return Ok(()) };
    let cause = cause.as_deref().unwrap_or_default();
    Err(UserError::new(
        ExitCode::DataCheck,
        format!("cannot fill {} again", path.display()),
        format!("it holds data of files, but not what it held last: {cause}"),
        "move what is in that directory away, or name an empty one, and start with --refill again",
    ))
}

fn next(catalogue: Generations, agreed: Option<Generation>) -> Result<Generation, UserError> {
    let last = [catalogue.complete, catalogue.begun, agreed].into_iter().flatten();
    let number = last.map(|generation| generation.number).max().unwrap_or(0).saturating_add(1);
    let mut mark = [0; 8];
    getrandom::fill(&mut mark).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot number this start",
            error.to_string(),
            "the system must supply random numbers: check that /dev/urandom exists",
        )
    })?;
    // The log has no place for the largest number.
    Ok(Generation { number, mark: u64::from_le_bytes(mark) >> 1 })
}

/// Error of a start that may not make the catalogue that is missing.
fn no_catalogue(first: &Path) -> UserError {
    let records = first.join(CATALOGUE).join(RECORDS_FILE);
    UserError::new(
        ExitCode::DataCheck,
        "cannot start with --degraded: there is no catalogue",
        format!("without {} no file can be found", records.display()),
        "make it again of the copy at another server: unisono doctor --rebuild-catalogue",
    )
}

/// Error of data without a catalogue in the directory where it belongs.
fn lost_catalogue(data: &str, first: &Path) -> UserError {
    let records = first.join(CATALOGUE).join(RECORDS_FILE);
    UserError::new(
        ExitCode::DataCheck,
        "cannot start: the catalogue is lost",
        format!("{data} holds data of files, but there is no catalogue in {}", records.display()),
        "make it again of the copy at another server: unisono doctor --rebuild-catalogue",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: wherever starts are interrupted, and however often, the directories agree; an older
    //! copy, an empty directory and one of another history agree with none.
    use super::*;

    /// Places of a made-up instance: the catalogue, then its disks.
    type Places = Vec<Generations>;

    fn agreement(places: &Places, lost_data: LostData) -> Result<Agreement, UserError> {
        let server = |disk: &Generations| Found {
            data: vec![PathBuf::from("/d")],
            labels: vec![None],
            disks: vec![FoundDisk { generations: *disk, absent: None, has_objects: true }],
            catalogue: places[0],
            has_catalogue: true,
            has_objects: true,
            has_room: true,
        };
        Agreement::of(&places[1..].iter().map(server).collect::<Vec<_>>(), lost_data)
    }

    /// Carries a start out until `steps` records are written; returns true if it completed.
    fn start(places: &mut Places, mut steps: usize) -> bool {
        let step = agreement(places, LostData::Refuse)
            .expect("the places agree")
            .step
            .expect("it has room");
        let mut note = |place: &mut Generations, generation: Generation, is_complete: bool| {
            if steps == 0 {
                return false;
            }
            steps -= 1;
            match is_complete {
                true => place.complete = Some(generation),
                false => place.begun = Some(generation),
            }
            true
        };
        // Places learn in any order; here from the last on.
        for place in places.iter_mut().rev() {
            if let Some(agreed) = step.agreed.filter(|agreed| place.complete != Some(*agreed))
                && !note(place, agreed, true)
            {
                return false;
            }
            if !note(place, step.next, false) {
                return false;
            }
        }
        places.iter_mut().rev().all(|place| note(place, step.next, true))
    }

    #[test]
    fn interrupted_starts_leave_places_that_agree() {
        for interruptions in (0..7_usize.pow(3)).map(|n| [n % 7, n / 7 % 7, n / 49]) {
            let mut places = vec![Generations::default(); 3];
            assert!(start(&mut places, usize::MAX));
            for steps in interruptions {
                start(&mut places, steps);
                assert!(
                    agreement(&places, LostData::Refuse).is_ok(),
                    "{interruptions:?}: {places:?}"
                );
            }
            assert!(start(&mut places, usize::MAX));
        }
    }

    #[test]
    fn places_of_other_starts_are_lost() {
        let mut places = vec![Generations::default(); 3];
        assert!(start(&mut places, usize::MAX));
        let older = places.clone();
        assert!(start(&mut places, usize::MAX));
        for (place, disk) in [(1, older[1]), (2, older[2]), (2, Generations::default())] {
            let mut mixed = places.clone();
            mixed[place] = disk;
            let refused = agreement(&mixed, LostData::Refuse).expect_err("a disk is lost");
            assert_eq!(refused.code, ExitCode::DataCheck);
            assert!(refused.help.contains("--degraded"), "{refused:?}");
            let refill = LostData::Refill { bytes_per_second: None };
            let refused = agreement(&mixed, refill).expect_err("it holds data");
            assert!(refused.cause.contains("not what it held last"), "{refused:?}");
            let found = agreement(&mixed, LostData::Degraded).expect("it may be degraded");
            let lost: Vec<bool> = found.lost.concat().iter().map(Option::is_some).collect();
            assert_eq!(lost, [place == 1, place == 2]);
            assert_eq!((found.step, found.number), (None, 2));
        }
        // The other way round: the catalogue is the older copy.
        let mixed = vec![older[0], places[1], places[2]];
        assert!(
            agreement(&mixed, LostData::Refuse)
                .is_err_and(|error| error.cause.contains("generation 2"))
        );
        // The same number of starts after all directories were put back.
        let mut again = older;
        assert!(start(&mut again, usize::MAX));
        let mixed = vec![again[0], again[1], places[2]];
        assert!(
            agreement(&mixed, LostData::Refuse)
                .is_err_and(|error| error.cause.contains("another generation"))
        );
    }
}
