//! Choice of the hosts and the launcher. The user's options come first, then the job's hosts, then
//! this machine.

use super::address::is_this_host;
use super::allocation::Allocation;
use super::hostfile::{self, Slots};
use super::launcher::{Launcher, is_on_path};
use super::placement::{Placement, placements};
use interface::UserError;
use std::path::{Path, PathBuf};

/// Options of the user about hosts and launchers.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchRequest<'a> {
    /// File that names the hosts.
    pub hostfile: Option<&'a Path>,
    /// `auto`, `local`, or a launcher with its options.
    pub launcher: Option<&'a str>,
    /// Default launcher, used if there are other hosts and no launcher is named.
    pub usual_launcher: Option<&'a str>,
    /// True if another option of the user requires servers on this machine.
    pub is_here: bool,
}

/// Chosen target, and the reason for the choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchPlan {
    /// Chosen target.
    pub target: Target,
    /// Reason for the choice, unless the user's options make it plain.
    pub why: Option<String>,
}

/// Machines on which servers run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// This machine.
    Here,
    /// These hosts.
    Hosts(HostPlan),
}

/// Hosts and their launcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlan {
    /// Launcher that starts programs on the hosts.
    pub launcher: Launcher,
    hosts: Vec<Slots>,
}

impl HostPlan {
    /// Names of the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|one| one.host.as_str())
    }

    /// Placements of the servers: `per_host` on each host if given, or `total` in all, or the
    /// number that each host has.
    ///
    /// # Errors
    /// Fails when there are too many, or the servers of a host cannot share `data`.
    pub fn placements(
        &self,
        total: Option<u32>,
        per_host: Option<u32>,
        data: &[PathBuf],
    ) -> Result<Vec<Placement>, UserError> {
        let mut hosts = self.hosts.clone();
        for host in &mut hosts {
            host.servers = per_host.unwrap_or(host.servers);
        }
        placements(&hosts, total, data)
    }
}

impl LaunchPlan {
    /// Chooses the target from the user's request and from the job in the environment.
    ///
    /// # Errors
    /// Fails when the hosts cannot be known, or there are none.
    pub fn make(request: &LaunchRequest<'_>) -> Result<Self, UserError> {
        // A variable that is not UTF-8 names no host.
        Self::of(request, |name| std::env::var(name).ok())
    }

    fn of(
        request: &LaunchRequest<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UserError> {
        let said = request.launcher.filter(|word| *word != "auto");
        match (request.hostfile, said) {
            (Some(file), Some("local")) => Err(UserError::usage(
                "cannot start servers here and on other hosts",
                format!(
                    "--launcher local means this machine, and {} names other hosts",
                    file.display()
                ),
                "leave out --launcher local or --hostfile",
            )),
            (Some(file), _) => Self::of_file(file, said.or(request.usual_launcher), variable),
            (None, Some("local")) => Ok(Self::here(None)),
            (None, None) if request.is_here => Ok(Self::here(None)),
            (None, _) => Self::of_job(said, request.usual_launcher, variable),
        }
    }

    fn of_file(
        file: &Path,
        launcher: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UserError> {
        let hosts = hostfile::read(file)?;
        let is_slurm = variable("SLURM_JOB_ID").is_some();
        let (usual, because) = match is_slurm {
            true => ("srun", ", because this is a Slurm job"),
            false => ("ssh", ", because this is not a Slurm job"),
        };
        let because = if launcher.is_none() { because } else { "" };
        let launcher = Launcher::parse(launcher.unwrap_or(usual))?;
        let why = format!(
            "{} names {}: {launcher} starts servers there{because}",
            file.display(),
            count(hosts.len())
        );
        Ok(Self { target: Target::Hosts(HostPlan { launcher, hosts }), why: Some(why) })
    }

    fn of_job(
        said: Option<&str>,
        usual: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UserError> {
        let Some(job) = Allocation::find(&variable)? else {
            return match said {
                None => Ok(Self::here(None)),
                Some(launcher) => Err(UserError::usage(
                    format!("there are no hosts for {launcher:?} to start servers on"),
                    "there is no --hostfile, and this is not a job of a batch system",
                    "name a file with one host per line: --hostfile FILE",
                )),
            };
        };
        let name = &job.name;
        // A batch system may have a name of its own for this host.
        let is_here = |host: &String| {
            is_this_host(host) || variable("SLURMD_NODENAME").as_ref() == Some(host)
        };
        if said.is_none() && matches!(&job.hosts[..], [only] if is_here(only)) {
            let why = format!("{name} has only this host: servers are started here");
            return Ok(Self::here(Some(why)));
        }
        let by_job = match () {
            () if job.is_slurm => "srun",
            () if is_on_path("mpiexec") => "mpiexec",
            () => "ssh",
        };
        let launcher = Launcher::parse(said.or(usual).unwrap_or(by_job))?;
        let why = format!(
            "{name} has {}: {launcher} starts servers there (only here with --launcher local)",
            count(job.hosts.len())
        );
        let hosts = job.hosts.into_iter().map(|host| Slots { host, servers: 1 }).collect();
        Ok(Self { target: Target::Hosts(HostPlan { launcher, hosts }), why: Some(why) })
    }

    fn here(why: Option<String>) -> Self {
        Self { target: Target::Here, why }
    }
}

fn count(hosts: usize) -> String {
    if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") }
}

#[cfg(test)]
mod tests {
    //! Proves: what is said wins over what the job has, a job of this host alone changes nothing,
    //! and every choice that was not said is explained.
    use super::*;

    const JOB: [(&str, &str); 2] = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-3]")];
    const HERE: [(&str, &str); 2] = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "127.0.0.1")];

    fn choose(
        request: LaunchRequest<'_>,
        job: &[(&str, &str)],
    ) -> Result<(String, String), UserError> {
        let value = |wanted: &str| {
            job.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        let LaunchPlan { target, why } = LaunchPlan::of(&request, value)?;
        let shown = match target {
            Target::Here => "here".to_owned(),
            Target::Hosts(plan) => {
                format!("{}: {}", plan.launcher, plan.hosts().collect::<Vec<_>>().join(" "))
            }
        };
        Ok((shown, why.unwrap_or_default()))
    }

    #[test]
    fn without_a_job_servers_run_here() {
        let nothing = LaunchRequest::default();
        assert_eq!(choose(nothing, &[]), Ok(("here".to_owned(), String::new())));
        let srun = LaunchRequest { launcher: Some("srun"), ..nothing };
        assert!(choose(srun, &[]).is_err(), "there are no hosts");
        let usual = LaunchRequest { usual_launcher: Some("ssh -x"), ..nothing };
        assert_eq!(choose(usual, &[]), Ok(("here".to_owned(), String::new())));
        assert_eq!(choose(usual, &HERE).expect("a list").0, "here");
        assert_eq!(choose(usual, &JOB).expect("a list").0, "ssh -x: n1 n2 n3");
        let both = LaunchRequest { launcher: Some("srun"), ..usual };
        assert_eq!(choose(both, &JOB).expect("a list").0, "srun: n1 n2 n3");
    }

    #[test]
    fn a_job_has_hosts() {
        let nothing = LaunchRequest::default();
        let (target, why) = choose(nothing, &JOB).expect("a list");
        assert_eq!(target, "srun: n1 n2 n3");
        assert!(why.contains("Slurm job 7 has 3 hosts") && why.contains("srun"), "{why}");
        let (target, why) = choose(nothing, &HERE).expect("a list");
        assert_eq!(target, "here");
        assert!(why.contains("Slurm job 7 has only this host"), "{why}");
        let only = |here| [HERE[0], ("SLURM_JOB_NODELIST", "n1"), ("SLURMD_NODENAME", here)];
        assert_eq!(choose(nothing, &only("n1")).expect("a list").0, "here");
        assert_eq!(choose(nothing, &only("n2")).expect("a list").0, "srun: n1");
        let said = |launcher| LaunchRequest { launcher: Some(launcher), ..nothing };
        assert_eq!(choose(said("local"), &JOB), Ok(("here".to_owned(), String::new())));
        assert_eq!(choose(said("ssh -x"), &JOB).expect("a list").0, "ssh -x: n1 n2 n3");
        assert_eq!(choose(said("srun"), &HERE).expect("a list").0, "srun: 127.0.0.1");
        let tcp = LaunchRequest { is_here: true, ..nothing };
        assert_eq!(choose(tcp, &JOB), Ok(("here".to_owned(), String::new())));
    }

    #[test]
    fn a_file_wins_over_a_job() {
        let file = tempfile::NamedTempFile::new().expect("a test must have room");
        std::fs::write(file.path(), "a\nb\n").expect("a test must have room");
        let request = LaunchRequest { hostfile: Some(file.path()), ..LaunchRequest::default() };
        let (target, why) = choose(request, &[]).expect("a file");
        assert_eq!(target, "ssh: a b");
        assert!(why.contains("names 2 hosts"), "{why}");
        assert_eq!(choose(request, &JOB).expect("a file").0, "srun: a b");
        let local = LaunchRequest { launcher: Some("local"), ..request };
        assert!(choose(local, &[]).is_err());
    }
}
