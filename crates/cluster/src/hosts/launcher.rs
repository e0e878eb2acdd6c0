//! Launchers: programs that start other programs on other hosts, and the arguments of each.

use super::names::HOSTS_MAX;
use client::absolute;
use interface::UserError;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// A program that starts programs on other hosts, with the user's options.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Launcher {
    /// Name or path of the launcher, then the options that come before all others.
    words: Vec<String>,
}

/// Syntax of a launcher's arguments, chosen by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// `ssh OPTIONS HOST WORDS`; a shell on the host interprets the words.
    Ssh,
    /// `srun OPTIONS --nodelist=HOST WORDS`.
    Srun,
    /// `mpiexec OPTIONS -host HOST WORDS`.
    Mpiexec,
    /// `PROGRAM HOST WORDS`.
    Other,
}

impl Launcher {
    /// Parses a name or path with options, separated by spaces.
    ///
    /// # Errors
    /// Fails when the text is empty.
    pub(super) fn parse(text: &str) -> Result<Self, UserError> {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let Some(program) = words.first_mut() else {
            return Err(UserError::usage(
                "the launcher has no name",
                "the value of --launcher is empty",
                "use --launcher auto, local, ssh, srun, mpiexec, or a program and its options",
            ));
        };
        if program.contains('/') {
            // The launcher runs in another working directory.
            *program = absolute(Path::new(&program)).display().to_string();
        }
        Ok(Self { words })
    }

    /// Command line that runs `command` on `host`.
    pub(super) fn words(&self, host: &str, command: &[String]) -> Vec<String> {
        let own: Vec<String> = match self.form() {
            // ssh uses the first value of an option: the user's come before these.
            Form::Ssh => [
                "-T",
                "-oBatchMode=yes",
                "-oConnectTimeout=20",
                "-oServerAliveInterval=15",
                "-oServerAliveCountMax=8",
                host,
            ]
            .map(str::to_owned)
            .into(),
            Form::Srun => vec![
                "--nodes=1".to_owned(),
                "--ntasks=1".to_owned(),
                "--overlap".to_owned(),
                "--cpu-bind=none".to_owned(),
                format!("--nodelist={host}"),
            ],
            Form::Mpiexec => ["-n", "1", "-host", host].map(str::to_owned).into(),
            Form::Other => vec![host.to_owned()],
        };
        let quoted = command.iter().map(|word| match self.form() {
            Form::Ssh => quoted(word),
            _ => word.clone(),
        });
        self.words.iter().cloned().chain(own).chain(quoted).collect()
    }

    /// The process that runs `command` on `host`, not yet started.
    pub(super) fn command(&self, host: &str, command: &[String]) -> Command {
        let words = self.words(host, command);
        let mut process = Command::new(&words[0]);
        process.args(&words[1..]);
        process
    }

    fn form(&self) -> Form {
        match Path::new(&self.words[0]).file_name().and_then(|name| name.to_str()) {
            Some("ssh") => Form::Ssh,
            Some("srun") => Form::Srun,
            Some(name) if name.starts_with("mpiexec") || name.starts_with("mpirun") => {
                Form::Mpiexec
            }
            _ => Form::Other,
        }
    }
}

impl std::fmt::Display for Launcher {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.words.join(" "))
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-=:+,@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// True if `PATH` has a program of this name.
pub(super) fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).take(HOSTS_MAX).any(|directory| directory.join(name).is_file())
}

#[cfg(test)]
mod tests {
    //! Proves: each launcher is told the host and the command in its own words.
    use super::*;

    fn words(launcher: &str) -> String {
        let command = ["/a b/unisono", "serve-told", "--id", "0"].map(str::to_owned);
        let launcher = Launcher::parse(launcher).expect("it has a word");
        launcher.words("node1", &command).join("|")
    }

    #[test]
    fn each_has_its_words() {
        assert_eq!(
            words("srun"),
            "srun|--nodes=1|--ntasks=1|--overlap|--cpu-bind=none|--nodelist=node1|/a b/unisono|\
             serve-told|--id|0"
        );
        assert_eq!(
            words("/opt/mpi/bin/mpiexec.hydra -x"),
            "/opt/mpi/bin/mpiexec.hydra|-x|-n|1|-host|node1|/a b/unisono|serve-told|--id|0"
        );
        assert_eq!(words("/x/run -v"), "/x/run|-v|node1|/a b/unisono|serve-told|--id|0");
        let ssh = words("ssh  -p 2222");
        assert!(ssh.starts_with("ssh|-p|2222|-T|-oBatchMode=yes|"), "{ssh}");
        assert!(ssh.ends_with("|node1|'/a b/unisono'|serve-told|--id|0"), "{ssh}");
        assert!(words("./run").starts_with('/'));
        assert!(Launcher::parse("  ").is_err());
    }

    #[test]
    fn shells_see_words() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(
            (quoted(""), quoted("$x"), quoted("a/b-c")),
            ("''".into(), "'$x'".into(), "a/b-c".into())
        );
    }
}
