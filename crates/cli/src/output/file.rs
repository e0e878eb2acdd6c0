//! Result files that the user names.

use super::present;
use interface::{ExitCode, UserError, WholeFile};
use std::io::Write;
use std::path::Path;

/// A file that the user names. Its old content stays if the command fails.
pub(crate) struct OutputFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file: WholeFile,
}

impl<'a> OutputFile<'a> {
    pub(crate) fn create(path: &'a Path) -> Result<Self, UserError> {
        let file = WholeFile::create(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path, file })
    }

    pub(crate) fn write(self, text: &str) -> Result<(), UserError> {
        let written = self.file.writer().and_then(|mut out| out.write_all(text.as_bytes()));
        written.map_err(|error| cannot_write(self.path, &error))?;
        self.finish("")
    }

    pub(crate) fn finish(self, what: &str) -> Result<(), UserError> {
        let Self { path, file } = self;
        file.finish().map_err(|error| cannot_write(path, &error))?;
        present::note(&format!("wrote {}{what}", path.display()));
        Ok(())
    }
}

pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("cannot write {}", path.display()),
        error.to_string(),
        "name a file in an existing folder that you may write to",
    )
}
