//! Scrubbing of files: all that servers have of them is read, verified, compared with copies, and
//! repaired.

use crate::files::walk;
use crate::session::Session;
use filesystem::Fault;
use futures_util::stream::{self, StreamExt};
use interface::UserError;
use wire::{FileRecord, Scrubbed};

/// Files that are scrubbed at the same time.
const FILES_AT_ONCE: usize = 8;

/// Outcome for one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScrubbedFile {
    /// Name of the file.
    pub name: String,
    /// What was found.
    pub found: Scrubbed,
}

impl Session {
    /// Scrubs a file, or all files below a directory. Returns the outcome for each, by name.
    ///
    /// # Errors
    /// Fails when a server cannot be reached, or cannot read for another cause than damage.
    pub fn scrub(&self, name: &str) -> Result<Vec<ScrubbedFile>, UserError> {
        self.with_onlooker("cannot scrub", async |client| {
            let entries = walk(client, name).await?;
            let files = entries.into_iter().filter_map(|entry| entry.into_file().ok());
            let scrub = async |record: FileRecord| {
                let found = client.scrub(&record).await?;
                Ok::<_, Fault>(ScrubbedFile { name: record.name, found })
            };
            let all = stream::iter(files.map(scrub)).buffered(FILES_AT_ONCE);
            all.collect::<Vec<_>>().await.into_iter().collect()
        })
    }
}
