//! The hosts that a batch system has given to the job in which this process runs.

use super::names::{HOSTS_MAX, each_once, is_host_name};
use super::nodelist;
use interface::UserError;
use std::path::Path;

/// Hosts that belong to a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Allocation {
    /// Description of the job for messages.
    pub(super) name: String,
    /// Hosts of the job, each once. The batch system's count of processors is not a number of
    /// servers.
    pub(super) hosts: Vec<String>,
    /// True if the job is one of Slurm.
    pub(super) is_slurm: bool,
}

/// Variables that name a file with the hosts of a job. The first word of each line is a host.
const FILES: [&str; 4] = ["PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "OAR_NODEFILE", "PE_HOSTFILE"];

/// Variable that lists hosts, separated by spaces.
const LIST: &str = "LSB_HOSTS";

impl Allocation {
    /// Finds the job that `variable` describes, if there is one.
    ///
    /// # Errors
    /// Fails when there is a job and its hosts cannot be determined.
    pub(super) fn find(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, UserError> {
        if let (Some(job), Some(list)) = (variable("SLURM_JOB_ID"), variable("SLURM_JOB_NODELIST"))
        {
            let hosts = nodelist::expand(&list);
            let hosts = hosts.map_err(|cause| unknown("SLURM_JOB_NODELIST", &cause))?;
            return Ok(Some(Self { name: format!("Slurm job {job}"), hosts, is_slurm: true }));
        }
        let file = FILES.iter().find_map(|name| Some((*name, variable(name)?)));
        let (name, text) = match (file, variable(LIST)) {
            (Some((name, path)), _) => {
                let text = std::fs::read_to_string(Path::new(&path));
                (name, text.map_err(|error| unknown(name, &format!("{path}: {error}")))?)
            }
            (None, Some(list)) => (LIST, list.split_whitespace().collect::<Vec<_>>().join("\n")),
            (None, None) => return Ok(None),
        };
        let first_words = text.lines().filter_map(|line| line.split_whitespace().next());
        let hosts = each_once(first_words.map(str::to_owned));
        if let Some(host) = hosts.iter().find(|host| !is_host_name(host)) {
            return Err(unknown(name, &format!("{host:?} is not a host name")));
        }
        if hosts.is_empty() || hosts.len() > HOSTS_MAX {
            return Err(unknown(name, &format!("there are {} hosts", hosts.len())));
        }
        Ok(Some(Self { name: format!("the list of {name}"), hosts, is_slurm: false }))
    }
}

fn unknown(variable: &str, cause: &str) -> UserError {
    UserError::usage(
        format!("cannot read the hosts of this job from {variable}"),
        cause,
        "name them with --hostfile FILE, or start servers only on this machine with --launcher \
         local",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: each batch system's list is found, each host once; a broken list is an error.
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<Allocation>, UserError> {
        let value = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned())
        };
        Allocation::find(value)
    }

    #[test]
    fn lists_are_found() {
        assert_eq!(find(&[("SLURM_JOB_ID", "7")]), Ok(None), "a job without hosts is none");
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-2]"), ("LSB_HOSTS", "x")];
        let found = find(&slurm).expect("a list").expect("a job");
        assert_eq!((found.name.as_str(), found.is_slurm), ("Slurm job 7", true));
        assert_eq!(found.hosts, ["n1", "n2"]);
        let lsf = find(&[("LSB_HOSTS", "b a b")]).expect("a list").expect("a job");
        assert_eq!((lsf.hosts, lsf.is_slurm), (vec!["b".to_owned(), "a".to_owned()], false));
        let directory = tempfile::tempdir().expect("a test must have room");
        let path = directory.path().join("nodes");
        std::fs::write(&path, "n2 4 all.q\nn1 4 all.q\n\nn2 4\n").expect("a test must have room");
        for name in FILES {
            let path = path.to_str().expect("a path in UTF-8");
            let found = find(&[(name, path)]).expect("a list").expect("a job");
            assert_eq!(found.hosts, ["n2", "n1"]);
            assert!(found.name.contains(name));
        }
    }

    #[test]
    fn broken_lists_are_errors() {
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-")];
        assert!(find(&slurm).expect_err("no list").error.contains("SLURM_JOB_NODELIST"));
        assert!(find(&[("PBS_NODEFILE", "/nowhere")]).is_err());
        assert!(find(&[("LSB_HOSTS", "a -b")]).is_err());
        assert!(find(&[("LSB_HOSTS", "")]).is_err());
    }
}
