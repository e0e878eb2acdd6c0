//! `scrub`: reads all that servers have of files, and repairs what is damaged.

use crate::arguments::{InstanceOnly, MaybeNamed};
use crate::instances::servers::instance;
use crate::output::format::{plural, show_size};
use crate::output::present;
use client::{ScrubbedFile, Session, instance_name};
use interface::{ExitCode, UserError};
use serde_json::json;

/// Maximum number of damaged ranges that are listed.
const RANGES_MAX: usize = 20;

pub(crate) fn run(which: &InstanceOnly, arguments: &MaybeNamed) -> Result<(), UserError> {
    let name = instance_name(arguments.name.as_deref().unwrap_or(""));
    let files = Session::new(instance(which)).scrub(&name)?;
    let sum = |of: fn(&ScrubbedFile) -> u64| files.iter().map(of).sum::<u64>();
    let bytes = sum(|file| file.found.bytes);
    let (repaired, copies) =
        (sum(|file| file.found.repaired), sum(|file| file.found.repaired_copies));
    let behind = sum(|file| file.found.behind);
    let damaged = ranges(&files, false);
    let damaged_copies = ranges(&files, true);
    if which.json {
        let shown = |ranges: &[(&str, u64, u64)]| {
            let shown = ranges.iter().map(|(name, start, length)| {
                json!({ "name": name, "start": start, "end": start + length })
            });
            shown.collect::<Vec<_>>()
        };
        present::json(&json!({
            "schema": "unisono.scrub/1", "files": files.len(), "bytes": bytes,
            "repaired": repaired, "repaired_copies": copies, "bytes_behind": behind,
            "damaged": shown(&damaged), "damaged_copies": shown(&damaged_copies),
        }))?;
    } else {
        let (read, size) = (plural(files.len() as u64, "file"), show_size(bytes));
        let repaired = plural(repaired, "damaged range");
        let copies = plural(copies, "range");
        present::line(&format!(
            "{read}, {size}: {repaired} repaired, {copies} of copies written again"
        ))?;
        if behind > 0 {
            present::line(&format!("the copy of {} is behind", show_size(behind)))?;
        }
        let all = [("damaged", &damaged), ("damaged copy", &damaged_copies)];
        for (what, ranges) in all {
            present::lines(ranges.iter().take(RANGES_MAX).map(|(name, start, length)| {
                format!("  {name}: {what}: bytes {start} to {}", start + length)
            }))?;
        }
    }
    match damaged.len() + damaged_copies.len() {
        0 => Ok(()),
        count => Err(UserError::new(
            ExitCode::DataCheck,
            format!("files have {}", plural(count as u64, "damaged range")),
            "their bytes do not match their checksums, and there is no copy to repair them with",
            "write these files again; new files with a copy: unisono layout set / --protect mirror",
        )),
    }
}

/// Name, first byte and number of bytes of each damaged range of files, or of their copies.
fn ranges(files: &[ScrubbedFile], of_copies: bool) -> Vec<(&str, u64, u64)> {
    let mut all = Vec::new();
    for ScrubbedFile { name, found } in files {
        let ranges = if of_copies { &found.damaged_copies } else { &found.damaged };
        all.extend(ranges.iter().map(|(start, length)| (name.as_str(), *start, *length)));
    }
    all
}
