//! Names of hosts, and their maximum number.

/// Maximum number of hosts of one instance, and of servers.
pub(super) const HOSTS_MAX: usize = 4096;

/// True if the word can be the name or address of a host. Rejects words that a launcher or a shell
/// could take for something else.
pub(super) fn is_host_name(word: &str) -> bool {
    let may_be = |letter: char| letter.is_ascii_alphanumeric() || "._:%@-".contains(letter);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(may_be)
}

/// Removes repeated hosts; keeps the order of their first mention.
pub(super) fn each_once(hosts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    hosts.into_iter().filter(|host| seen.insert(host.clone())).collect()
}
