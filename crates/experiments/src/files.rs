//! A folder that takes the results: one CSV file for each experiment, and a report for readers.

use crate::compare::{Comparison, TrialResult};
use crate::html;
use launch::{Availability, ExitCode, LaunchError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The report's name in the folder.
const REPORT: &str = "report.html";

/// The columns of a CSV file, one line for each trial of each case. Throughputs are in 2^20 bytes a
/// second; `mib_s` is the trial's, `mean_mib_s` that of all trials of the case. Processor time
/// is the trial's, where the experiment is about it.
const COLUMNS: [&str; 17] = [
    "experiment",
    "machine",
    "layout",
    "pattern",
    "record_bytes",
    "varied",
    "value",
    "method",
    "seed",
    "seconds",
    "mib_s",
    "mean_mib_s",
    "published_mib_s",
    "digest",
    "cpu_available_percent",
    "published_cpu_available_percent",
    "cpu_usable_with_barriers_percent",
];

/// A folder in which files can be made.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, made if there is none. That files can be made in it is tried out now,
    /// before anybody has waited for results.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn prepare(path: &Path) -> Result<Self, LaunchError> {
        let folder = Self { path: path.to_owned() };
        std::fs::create_dir_all(path).map_err(|error| folder.refuse(&error))?;
        folder.temporary()?;
        Ok(folder)
    }

    /// Writes `<experiment>.csv` for each experiment, and `report.html` about all of them. A file
    /// is there in full or not at all. Returns the paths.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, comparisons: &[Comparison]) -> Result<Vec<PathBuf>, LaunchError> {
        let mut paths = Vec::new();
        for comparison in comparisons {
            let table = table(comparison).map_err(|error| self.refuse(&error))?;
            paths.push(self.put(&format!("{}.csv", comparison.name), &table)?);
        }
        paths.push(self.put(REPORT, html::report(comparisons).as_bytes())?);
        Ok(paths)
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<PathBuf, LaunchError> {
        let mut file = self.temporary()?;
        file.write_all(contents).map_err(|error| self.refuse(&error))?;
        let path = self.path.join(name);
        file.persist(&path).map_err(|error| self.refuse(&error.error))?;
        Ok(path)
    }

    /// A file in the folder that readers may read and that is removed unless it is given a name.
    fn temporary(&self) -> Result<NamedTempFile, LaunchError> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The user's mask takes away what it always does.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(&self.path).map_err(|error| self.refuse(&error))
    }

    fn refuse(&self, error: &std::io::Error) -> LaunchError {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ExitCode::NoSpace,
            _ => ExitCode::Failed,
        };
        LaunchError::new(
            code,
            format!("cannot write results to {}", self.path.display()),
            error.to_string(),
            "choose another folder with --out, or see to its permissions and space",
        )
    }
}

/// The CSV file of an experiment.
fn table(comparison: &Comparison) -> Result<Vec<u8>, std::io::Error> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let percent = |trial: &TrialResult, of: fn(Availability) -> f64| {
        trial.availability.map(|left| of(left).to_string())
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for row in &comparison.rows {
        for cell in &row.cells {
            let Some(simulated) = &cell.simulated else { continue };
            for trial in &simulated.trials {
                let fields: [String; COLUMNS.len()] = [
                    comparison.name.to_owned(),
                    comparison.machine.clone(),
                    row.layout.clone(),
                    row.pattern.clone(),
                    optional(row.record_bytes.map(|bytes| bytes.to_string())),
                    comparison.axis.head().to_owned(),
                    optional(row.value.map(|value| value.to_string())),
                    cell.method.to_string(),
                    trial.seed.to_string(),
                    trial.seconds.to_string(),
                    trial.mib_s.to_string(),
                    simulated.sample.mean.to_string(),
                    optional(cell.published.map(|value| value.to_string())),
                    trial.digest.clone(),
                    optional(percent(trial, |left| left.cpu_available_percent)),
                    optional(cell.published_available_percent.map(|value| value.to_string())),
                    optional(percent(trial, |left| left.cpu_usable_with_barriers_percent)),
                ];
                writer.write_record(&fields)?;
            }
        }
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    //! Proves: files hold every trial, are there in full, and a folder that cannot be written is
    //! refused before anything is run.
    use super::*;
    use crate::compare::tests::comparison;

    #[test]
    fn every_trial_has_a_line() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::prepare(&place.path().join("new/folder")).unwrap();
        let paths = folder.write(&[comparison()]).unwrap();
        let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["made-up.csv", "report.html"]);
        let left = std::fs::read_dir(place.path().join("new/folder")).unwrap().count();
        assert_eq!(left, 2, "nothing else is left behind");
        let mut reader = csv::Reader::from_path(&paths[0]).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 6);
        let expected = "made-up,none,contiguous,rc,8192,,,caching,1,1.1111111111111112,9,9,10,\
                        00000000000000ff,,,";
        assert_eq!(rows[2].iter().collect::<Vec<_>>().join(","), expected);
    }

    #[test]
    fn a_file_is_no_folder() {
        let file = NamedTempFile::new().unwrap();
        let error = Folder::prepare(file.path()).unwrap_err();
        assert_eq!(error.code, ExitCode::Failed);
        assert!(error.error.contains(&file.path().display().to_string()), "{error}");
    }
}
