//! Check of files against their checksums, without moving their data.

use super::verify::piece_bytes;
use crate::session::Session;
use interface::UserError;
use std::collections::VecDeque;

/// Blocks that servers check at the same time.
const BLOCKS_AT_ONCE: usize = 16;

impl Session {
    /// Has the servers read every block of the files `names` and compare it with its checksum.
    ///
    /// # Errors
    /// Fails with the first damaged block, which the error names.
    pub fn check_files<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), UserError> {
        let connection = self.connection()?;
        for name in names {
            let what = format!("cannot check {name:?}");
            let file = connection.open_file(name).map_err(|error| error.doing(&what))?;
            let size = file.size().map_err(|error| error.doing(&what))?;
            let mut blocks = 0..size.div_ceil(file.page_bytes());
            let mut asked = VecDeque::new();
            loop {
                while asked.len() < BLOCKS_AT_ONCE
                    && let Some(block) = blocks.next()
                {
                    asked.push_back(file.start_digests(block, piece_bytes(&file)));
                }
                let Some(held) = asked.pop_front() else { break };
                held.wait().map_err(|error| error.doing(&what))?;
            }
            file.close().map_err(|error| error.doing(&what))?;
        }
        Ok(())
    }
}
