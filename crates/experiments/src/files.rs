//! A folder that takes the results: the rows of each experiment in two forms, and a report for
//! readers.

use crate::compare::Comparison;
use crate::html;
use crate::parquet_file::parquet;
use crate::rows::csv;
use interface::{ExitCode, UserError, WholeFile};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The report's name in the folder.
const REPORT: &str = "report.html";

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
    pub fn prepare(path: &Path) -> Result<Self, UserError> {
        let folder = Self { path: path.to_owned() };
        std::fs::create_dir_all(path).map_err(|error| folder.refuse(&error))?;
        WholeFile::create(&path.join(REPORT)).map_err(|error| folder.refuse(&error))?;
        Ok(folder)
    }

    /// Writes `<experiment>.csv` and `<experiment>.parquet`, with the same rows, for each
    /// experiment, and `report.html` about all of them. A file is there in full or not at all.
    /// Returns the paths.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, comparisons: &[Comparison]) -> Result<Vec<PathBuf>, UserError> {
        let mut paths = Vec::new();
        for comparison in comparisons {
            for (form, table) in [("csv", csv(comparison)), ("parquet", parquet(comparison))] {
                let table = table.map_err(|error| self.refuse(&error))?;
                paths.push(self.put(&format!("{}.{form}", comparison.name), &table)?);
            }
        }
        paths.push(self.put(REPORT, html::report(comparisons).as_bytes())?);
        Ok(paths)
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<PathBuf, UserError> {
        let path = self.path.join(name);
        let put = || {
            let file = WholeFile::create(&path)?;
            file.writer()?.write_all(contents)?;
            file.finish()
        };
        put().map_err(|error| self.refuse(&error))?;
        Ok(path)
    }

    fn refuse(&self, error: &std::io::Error) -> UserError {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ExitCode::NoSpace,
            _ => ExitCode::Failed,
        };
        UserError::new(
            code,
            format!("cannot write results to {}", self.path.display()),
            error.to_string(),
            "choose another folder with --out, or see to its permissions and space",
        )
    }
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
        assert_eq!(names, ["made-up.csv", "made-up.parquet", "report.html"]);
        let left = std::fs::read_dir(place.path().join("new/folder")).unwrap().count();
        assert_eq!(left, 3, "nothing else is left behind");
        let mut reader = csv::Reader::from_path(&paths[0]).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 6);
        let expected = "made-up,none,contiguous,rc,8192,,,caching,1,1.1111111111111112,9,9,10,\
                        00000000000000ff,,,";
        assert_eq!(rows[2].iter().collect::<Vec<_>>().join(","), expected);
    }

    #[test]
    fn a_file_is_no_folder() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Folder::prepare(file.path()).unwrap_err();
        assert_eq!(error.code, ExitCode::Failed);
        assert!(error.error.contains(&file.path().display().to_string()), "{error}");
    }
}
