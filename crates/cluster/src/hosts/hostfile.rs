//! Host files, which name one host a line, as MPI's launchers use them.
//!
//! ```text
//! # the two with the fast disks
//! node1 slots=2
//! node2:2
//! node3
//! ```

use super::names::{HOSTS_MAX, is_host_name};
use interface::UserError;
use std::io::Read;
use std::path::Path;

/// Maximum size of a host file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Words of MPI's launchers that do not concern servers.
const UNUSED: [&str; 2] = ["max_slots", "max-slots"];

/// A host and its number of servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slots {
    pub(super) host: String,
    pub(super) servers: u32,
}

/// Reads the hosts of a file. A host that is named again gets the servers of all its lines.
///
/// # Errors
/// Fails when the file cannot be read or a line makes no sense; the line is named.
pub(super) fn read(path: &Path) -> Result<Vec<Slots>, UserError> {
    let mut text = String::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| {
        UserError::usage(
            format!("cannot read the hosts of {}", path.display()),
            error.to_string(),
            "name a file with one host per line, such as `node1` or `node1 slots=2`",
        )
    })?;
    parse(&text).map_err(|Wrong { line, cause }| {
        UserError::usage(
            format!("cannot read the hosts of {}, line {line}", path.display()),
            cause,
            "write one host per line: HOST, HOST slots=N or HOST:N; # begins a comment",
        )
    })
}

/// Error of a line.
#[derive(Debug)]
struct Wrong {
    line: usize,
    cause: String,
}

fn parse(text: &str) -> Result<Vec<Slots>, Wrong> {
    let mut hosts: Vec<Slots> = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        let words = words.split('#').next().unwrap_or_default();
        let wrong = |cause| Wrong { line, cause };
        let Some(named) = parse_line(words).map_err(wrong)? else { continue };
        match hosts.iter_mut().find(|other| other.host == named.host) {
            Some(other) => other.servers = other.servers.saturating_add(named.servers),
            None => hosts.push(named),
        }
        if hosts.len() > HOSTS_MAX {
            return Err(wrong(format!("there are more than {HOSTS_MAX} hosts")));
        }
    }
    match hosts.is_empty() {
        false => Ok(hosts),
        true => Err(Wrong { line: 1, cause: "the file names no host".to_owned() }),
    }
}

fn parse_line(line: &str) -> Result<Option<Slots>, String> {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return Ok(None) };
    // An IPv6 address has more than one colon.
    let (host, mut servers) = match first.split_once(':') {
        Some((host, number)) if !number.contains(':') => (host, Some(count(first, number)?)),
        _ => (first, None),
    };
    if !is_host_name(host) {
        return Err(format!("{host:?} is not a host name"));
    }
    for word in words {
        match word.split_once('=') {
            Some(("slots", number)) if servers.is_none() => servers = Some(count(word, number)?),
            Some(("slots", _)) => {
                return Err(format!(
                    "{word:?} gives the number of servers a \
                                                      second time"
                ));
            }
            Some((unused, number)) if UNUSED.contains(&unused) => drop(count(word, number)?),
            _ => return Err(format!("{word:?} is not slots=N")),
        }
    }
    Ok(Some(Slots { host: host.to_owned(), servers: servers.unwrap_or(1) }))
}

fn count(word: &str, number: &str) -> Result<u32, String> {
    match number.parse() {
        Ok(count) if (1..=HOSTS_MAX as u32).contains(&count) => Ok(count),
        _ => Err(format!("{word:?} does not have a number from 1 to {HOSTS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: every form of MPI's host files is understood, and each mistake named with its line.
    use super::*;

    fn hosts(text: &str) -> Vec<(String, u32)> {
        let hosts = parse(text).unwrap_or_else(|wrong| panic!("{text:?}: {wrong:?}"));
        hosts.into_iter().map(|one| (one.host, one.servers)).collect()
    }

    #[test]
    fn every_form_is_understood() {
        let text = "# all\n\nnode1\n  node2 slots=2 # two\nnode3:4\nme@node4 slots=1 max_slots=9\n\
                    ::1\n10.0.0.7\r\nnode1\nnode2:3\n";
        let expected = [("node1", 2), ("node2", 5), ("node3", 4), ("me@node4", 1)];
        let numbers = [("::1", 1), ("10.0.0.7", 1)];
        let expected = expected.into_iter().chain(numbers).map(|(host, n)| (host.to_owned(), n));
        assert_eq!(hosts(text), expected.collect::<Vec<_>>());
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        for (text, line, named) in [
            ("", 1, "no host"),
            ("# nothing\n\n", 1, "no host"),
            ("a\nb slots=x", 2, "slots=x"),
            ("a\n\nb slots=0", 3, "slots=0"),
            ("a slots=4097", 1, "4097"),
            ("a:0", 1, "a:0"),
            ("a: 2", 1, "a:"),
            ("a:2 slots=2", 1, "a second time"),
            ("a slots", 1, "slots"),
            ("a b", 1, "\"b\""),
            ("a cores=2", 1, "cores=2"),
            ("-oProxyCommand=x", 1, "-oProxyCommand=x"),
            ("a;b", 1, "a;b"),
            ("a$(b)", 1, "a$(b)"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert_eq!(wrong.line, line, "{text:?}");
            assert!(wrong.cause.contains(named), "{text:?}: {}", wrong.cause);
        }
        let many: String = (0..=HOSTS_MAX).map(|host| format!("h{host}\n")).collect();
        assert_eq!(parse(&many).expect_err("too many").line, HOSTS_MAX + 1);
    }
}
