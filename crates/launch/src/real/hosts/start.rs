//! Starting an instance on hosts, as the command that asks for it sees it.

use super::launcher::Launcher;
use super::seat::Seat;
use super::talk::{KeeperAnswer, KeeperOrder, hear, line};
use crate::error::{ExitCode, LaunchError};
use crate::real::process::cannot_start;
use crate::real::{Direct, Instance, InstanceFile, Program};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;

/// How the servers on hosts are to work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostOptions {
    /// Room of each server's block cache, in bytes.
    pub cache_bytes: u64,
    /// How much of it may be dirty, in hundredths.
    pub dirty_percent: u32,
    /// Which disks move their data past the page cache.
    pub direct: Direct,
    /// Whether servers may run as root.
    pub allow_root: bool,
    /// Seconds that each server may take to begin, and again to serve.
    pub patience_s: u32,
    /// Where the hosts have this program, if not where it is here.
    pub remote_program: Option<PathBuf>,
}

impl Instance {
    /// Starts a server at each seat, by launchers that stay as long as the servers do.
    ///
    /// # Errors
    /// When one does not begin: then all that did have been ended.
    pub fn start_on_hosts(
        &self,
        program: &Program,
        launcher: &Launcher,
        seats: Vec<Seat>,
        options: HostOptions,
    ) -> Result<InstanceFile, LaunchError> {
        let _starting = self.begin_start()?;
        self.make_ready()?;
        self.forget();
        let log_path = self.directory().join("keeper.log");
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path);
        let log = log.map_err(|error| self.cannot_write(&log_path, &error))?;
        let directory = self.directory().display().to_string();
        let mut command = program.command(&["keep".to_owned(), "--instance".to_owned(), directory]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).current_dir("/");
        let mut keeper = command.spawn().map_err(|error| cannot_start(&command, &error))?;
        let order = KeeperOrder {
            launcher: launcher.clone(),
            program: options.remote_program.clone().unwrap_or_else(|| program.path.clone()),
            seats,
            options,
        };
        if let Some(input) = &mut keeper.stdin {
            // Should it not listen, it does not answer.
            let _ = input.write_all(line(&order).as_bytes());
        }
        let answer = keeper.stdout.take().map(|output| hear(&mut BufReader::new(output)));
        match answer {
            Some(Ok(KeeperAnswer::Running(file))) => Ok(file),
            Some(Ok(KeeperAnswer::Failed(failure))) => Err(failure.into()),
            Some(Err(_)) | None => Err(LaunchError::new(
                ExitCode::Failed,
                "the keeper of the launchers has ended",
                "it did not say why",
                format!("look at {}", log_path.display()),
            )),
        }
    }
}
