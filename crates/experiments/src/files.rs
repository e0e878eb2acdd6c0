//! Result folder: the rows of each experiment in two formats, and a report for readers.

use crate::compare::Comparison;
use crate::html;
use crate::parquet_file::parquet;
use crate::rows::csv;
use interface::{ExitCode, UserError, WholeFile, is_no_space};
use std::io::Write;
use std::path::{Path, PathBuf};

/// File name of the report.
const REPORT: &str = "report.html";

/// Folder in which files can be created.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder at `path`, and creates it if necessary. Tests now that files can be created
    /// in it, before the long run.
    ///
    /// # Errors
    /// If the folder cannot be created or written.
    pub fn prepare(path: &Path) -> Result<Self, UserError> {
        let folder = Self { path: path.to_owned() };
        std::fs::create_dir_all(path).map_err(|error| folder.refuse(&error))?;
        WholeFile::create(&path.join(REPORT)).map_err(|error| folder.refuse(&error))?;
        Ok(folder)
    }

    /// Writes `<experiment>.csv` and `<experiment>.parquet`, with the same rows, for each
    /// experiment, and `report.html` about all of them. Writes are atomic: a file exists completely
    /// or not at all. Returns the paths.
    ///
    /// # Errors
    /// If a file cannot be written.
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
        let code = if is_no_space(error) { ExitCode::NoSpace } else { ExitCode::Failed };
        UserError::new(
            code,
            format!("cannot write results to {}", self.path.display()),
            error.to_string(),
            "choose another folder with --out, or check its permissions and free space",
        )
    }
}

#[cfg(test)]
mod tests {
    //! Proves: files hold every trial and appear atomically, and a folder that cannot be written is
    //! refused before anything runs.
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
