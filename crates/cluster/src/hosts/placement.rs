//! Placement of servers on hosts, with their directories there.

use super::hostfile::Slots;
use super::names::HOSTS_MAX;
use client::absolute;
use interface::UserError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Placement of one server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// Host of the server.
    pub host: String,
    /// Directories on the host, one for each disk. The server makes one of its own in each. Empty:
    /// the default of that host.
    pub data: Vec<PathBuf>,
}

/// Deals servers to hosts in rounds, so that servers with consecutive numbers are on different
/// hosts. Each host gets its own number of servers, or all hosts `total` together.
///
/// # Errors
/// Fails when there are too many, or the servers of a host cannot share its directories.
pub(super) fn placements(
    hosts: &[Slots],
    total: Option<u32>,
    directories: &[PathBuf],
) -> Result<Vec<Placement>, UserError> {
    let sum = hosts.iter().map(|host| u64::from(host.servers)).sum::<u64>();
    let wanted = total.map_or(sum, u64::from);
    if wanted == 0 || wanted > HOSTS_MAX as u64 {
        return Err(UserError::usage(
            "cannot start these servers",
            format!("the number of servers is {wanted}"),
            format!("start 1 to {HOSTS_MAX} servers; see --servers and --servers-per-host"),
        ));
    }
    let in_round = |round: u32| {
        let has_one = move |host: &&Slots| total.is_some() || host.servers > round;
        hosts.iter().filter(has_one).map(move |host| (host, round))
    };
    let dealt: Vec<_> = (0..).flat_map(in_round).take(wanted as usize).collect();
    let of_host = |host: &Slots| dealt.iter().filter(|(other, _)| *other == host).count();
    let placements = dealt.iter().map(|(host, turn)| {
        let data = share(directories, *turn as usize, of_host(host));
        let data = data.ok_or_else(|| {
            cannot_share(format!(
                "{} directories for {} servers of {}",
                directories.len(),
                of_host(host),
                host.host
            ))
        })?;
        Ok(Placement { host: host.host.clone(), data })
    });
    let placements = placements.collect::<Result<Vec<Placement>, UserError>>()?;
    match placements.iter().find(|placement| placement.data.len() != placements[0].data.len()) {
        None => Ok(placements),
        Some(other) => Err(cannot_share(format!(
            "a server of {} would have {} disks, and a server of {} would have {}",
            placements[0].host,
            placements[0].data.len(),
            other.host,
            other.data.len()
        ))),
    }
}

/// Directories of server `turn` of the `servers` of a host. Either every server has the same number
/// of directories, or every directory the same number of servers.
fn share(directories: &[PathBuf], turn: usize, servers: usize) -> Option<Vec<PathBuf>> {
    let number = directories.len();
    if number == 0 {
        return Some(Vec::new());
    }
    if number < servers {
        let shared = absolute(&directories[turn % number]);
        return servers.is_multiple_of(number).then(|| vec![shared]);
    }
    let own = directories.iter().skip(turn).step_by(servers).map(|path| absolute(path));
    number.is_multiple_of(servers).then(|| own.collect())
}

fn cannot_share(cause: String) -> UserError {
    UserError::usage(
        "cannot divide the data directories among the servers",
        cause,
        "give each server of a host the same number: repeat --data one or more times for each",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: servers go round the hosts, and each has directories of its own or shares one.
    use super::*;

    fn dealt(hosts: &[(&str, u32)], total: Option<u32>, data: &[&str]) -> Result<String, String> {
        let hosts: Vec<Slots> = hosts
            .iter()
            .map(|(host, servers)| Slots { host: (*host).to_owned(), servers: *servers })
            .collect();
        let data: Vec<PathBuf> = data.iter().map(PathBuf::from).collect();
        let show = |placement: Placement| {
            let data = placement.data.iter().map(|path| path.display().to_string());
            format!("{}{}", placement.host, data.collect::<Vec<_>>().join("+"))
        };
        let placements = placements(&hosts, total, &data).map_err(|error| error.cause)?;
        Ok(placements.into_iter().map(show).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn servers_go_round() {
        let hosts = [("a", 1), ("b", 3), ("c", 2)];
        assert_eq!(dealt(&hosts, None, &[]).as_deref(), Ok("a b c b c b"));
        assert_eq!(dealt(&hosts, Some(4), &[]).as_deref(), Ok("a b c a"));
        assert_eq!(dealt(&hosts, Some(2), &[]).as_deref(), Ok("a b"));
        assert!(dealt(&[("a", 4096), ("b", 1)], None, &[]).is_err());
        assert!(dealt(&hosts, Some(0), &[]).is_err());
    }

    #[test]
    fn directories_are_shared() {
        let two = [("a", 2), ("b", 2)];
        assert_eq!(dealt(&two, None, &["/x", "/y"]).as_deref(), Ok("a/x b/x a/y b/y"));
        assert_eq!(dealt(&two, None, &["/x"]).as_deref(), Ok("a/x b/x a/x b/x"));
        let one = [("a", 1), ("b", 1)];
        assert_eq!(dealt(&one, None, &["/x", "/y"]).as_deref(), Ok("a/x+/y b/x+/y"));
        let three = dealt(&two, None, &["/x", "/y", "/z"]);
        assert_eq!(three, Err("3 directories for 2 servers of a".to_owned()));
        let odd = dealt(&[("a", 3)], None, &["/x", "/y"]);
        assert_eq!(odd, Err("2 directories for 3 servers of a".to_owned()));
        let uneven = dealt(&[("a", 1), ("b", 2)], None, &["/x", "/y"]);
        assert!(uneven.is_err_and(|cause| cause.contains("2 disks")));
    }
}
