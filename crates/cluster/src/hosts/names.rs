//! Names of hosts, and how many there can be.

/// The most hosts of one instance, and the most servers.
pub(super) const HOSTS_MAX: usize = 4096;

/// Whether this can be the name or the number of a host, and nothing that a launcher or a shell
/// would take for something else.
pub(super) fn is_host_name(word: &str) -> bool {
    let may_be = |letter: char| letter.is_ascii_alphanumeric() || "._:%@-".contains(letter);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(may_be)
}

/// Each host once, in the order of their first mention.
pub(super) fn each_once(hosts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    hosts.into_iter().filter(|host| seen.insert(host.clone())).collect()
}
