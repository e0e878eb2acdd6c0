//! Lists of processor cores, as words.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Largest number of a core: that of the kernel's fixed sets of cores (CPU_SETSIZE of sched.h).
const CORE_MAX: u32 = 1023;

/// Processor cores in the order in which they were named: at least one, and each once. As a word,
/// `0-3,8`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CoreList(Vec<u32>);

impl CoreList {
    /// Returns the list of these cores.
    ///
    /// # Errors
    /// Fails when there is none, one is named twice, or a number is too large.
    pub fn new(cores: Vec<u32>) -> Result<Self, String> {
        if cores.is_empty() {
            return Err("the list is empty; write cores like 0-3,8".to_owned());
        }
        if let Some(core) = cores.iter().find(|core| **core > CORE_MAX) {
            return Err(format!("core {core} is too large: the largest number is {CORE_MAX}"));
        }
        let is_again = |(index, core): &(usize, &u32)| cores[..*index].contains(core);
        match cores.iter().enumerate().find(is_again) {
            Some((_, core)) => Err(format!("core {core} is named twice")),
            None => Ok(Self(cores)),
        }
    }

    /// Numbers of the cores.
    pub fn cores(&self) -> &[u32] {
        &self.0
    }

    /// Returns the cores of this list that are not in another one; `None` if there is none.
    pub fn without(&self, other: &Self) -> Option<Self> {
        let left = self.0.iter().copied().filter(|core| !other.0.contains(core));
        Self::new(left.collect()).ok()
    }

    /// Returns the part of process `index` of `processes` that share the list: its own contiguous
    /// part, or core `index` modulo the number of cores if there are more processes than cores.
    pub fn part(&self, index: u32, processes: u32) -> Self {
        let (index, processes) = (index as usize, processes as usize);
        assert!(index < processes, "a process is one of those that share a list of cores");
        let cores = self.0.len();
        if cores < processes {
            return Self(vec![self.0[index % cores]]);
        }
        let bound = |index: usize| index * cores / processes;
        Self(self.0[bound(index)..bound(index + 1)].to_vec())
    }
}

impl FromStr for CoreList {
    type Err = String;

    /// Parses numbers and ranges, separated by commas.
    fn from_str(word: &str) -> Result<Self, String> {
        let mut cores = Vec::new();
        for part in word.split(',').filter(|_| !word.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |word: &str| {
                let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
                let core = word.parse::<u32>().ok().filter(|_| is_number);
                core.ok_or_else(|| format!("{part:?} is no core; write cores like 0-3,8"))
            };
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part} is reversed; write {last}-{first}"));
            }
            if last > CORE_MAX {
                return Err(format!("{part} is too large: the largest number is {CORE_MAX}"));
            }
            cores.extend(first..=last);
        }
        Self::new(cores)
    }
}

impl TryFrom<String> for CoreList {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        word.parse()
    }
}

impl From<CoreList> for String {
    fn from(cores: CoreList) -> Self {
        cores.to_string()
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.chunk_by(|one, next| one + 1 == *next);
        for (index, range) in ranges.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match range {
                [first, .., last] => write!(out, "{comma}{first}-{last}")?,
                _ => write!(out, "{comma}{}", range[0])?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Proves: lists are read and written in one form, nonsense is refused, and processes that
    //! share a list have parts that cover it.
    use super::*;

    fn list(word: &str) -> CoreList {
        word.parse().unwrap()
    }

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(list("0-3,8").cores(), [0, 1, 2, 3, 8]);
        for word in ["0", "0-3,8", "8,0-3", "1,3,5", "1023", "0-1023"] {
            assert_eq!(list(word).to_string(), word);
            assert_eq!(CoreList::try_from(String::from(list(word))), Ok(list(word)));
        }
        assert_eq!(list("0,1,2").to_string(), "0-2");
        assert_eq!(list("5-5").to_string(), "5");
    }

    #[test]
    fn nonsense_is_refused() {
        for (word, cause) in [
            ("", "empty"),
            ("3-1", "3-1 is reversed; write 1-3"),
            ("0-3,2", "core 2 is named twice"),
            ("1,,2", "\"\" is no core"),
            ("x", "\"x\" is no core"),
            ("-1", "\"-1\" is no core"),
            ("+1", "\"+1\" is no core"),
            ("1-", "\"1-\" is no core"),
            ("1-2-3", "\"1-2-3\" is no core"),
            ("1024", "the largest number is 1023"),
            ("0-4294967295", "the largest number is 1023"),
            ("99999999999", "is no core"),
        ] {
            let refused = word.parse::<CoreList>().unwrap_err();
            assert!(refused.contains(cause), "{word:?}: {refused}");
        }
    }

    #[test]
    fn processes_share_a_list() {
        let parts = |word: &str, processes: u32| -> Vec<String> {
            (0..processes).map(|index| list(word).part(index, processes).to_string()).collect()
        };
        assert_eq!(parts("0-3", 2), ["0-1", "2-3"]);
        assert_eq!(parts("0-4", 3), ["0", "1-2", "3-4"]);
        assert_eq!(parts("8,0-3", 1), ["8,0-3"]);
        assert_eq!(parts("4,6", 5), ["4", "6", "4", "6", "4"]);
        for (cores, processes) in (1..20).flat_map(|cores| (1..20).map(move |all| (cores, all))) {
            let all = list(&format!("0-{cores}"));
            let mut used: Vec<u32> = (0..processes)
                .flat_map(|index| all.part(index, processes).cores().to_owned())
                .collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, all.cores(), "{cores} cores, {processes} processes");
        }
    }

    #[test]
    fn what_is_left_is_a_list() {
        assert_eq!(list("0-7").without(&list("2-3,9")), Some(list("0-1,4-7")));
        assert_eq!(list("0-1").without(&list("0-3")), None);
    }
}
