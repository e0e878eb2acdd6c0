//! The hints of one file: those in force, and those rejected.

use super::environment;
use super::table::{
    BLOCK_SIZE, DISK_ORDER, HINTS, Hint, HintSite, METHOD, NODE_GROUP_SIZE, PROTECTION,
    STRIPING_FACTOR, STRIPING_UNIT, SYNC,
};
use super::value::{Value, check_unit};
use crate::library::collective_options::CollectiveOptions;
use filesystem::collective::Strategy;
use interface::UserError;
use policy::{DiskOrder, Protection};
use std::collections::BTreeMap;

/// Most rejected hints that are kept; later ones are only counted.
const REJECTED_MAX: usize = 64;

/// The hints of one file.
#[derive(Clone, Debug)]
pub struct Hints {
    servers: Option<u32>,
    is_strict: bool,
    method: &'static str,
    order: DiskOrder,
    sync: bool,
    node_group_size: u32,
    block_bytes: Option<u64>,
    protection: Option<Protection>,
    /// Accepted values of hints that choose nothing.
    accepted: BTreeMap<&'static str, String>,
    /// Key, value and reason, in the order of setting.
    rejected: Vec<(String, String, String)>,
    further_rejected: usize,
}

/// Result of setting a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In force, with this value.
    InForce(String),
    /// Rejected, for this reason.
    Rejected(String),
}

impl Hints {
    /// The default for an instance of `servers` servers; `None` when no instance is known. Hints
    /// are not strict.
    pub fn new(servers: Option<u32>) -> Self {
        Self {
            servers,
            is_strict: false,
            method: "auto",
            order: DiskOrder::Sorted,
            sync: false,
            node_group_size: 0,
            block_bytes: None,
            protection: None,
            accepted: BTreeMap::new(),
            rejected: Vec::new(),
            further_rejected: 0,
        }
    }

    /// The default, then what `UNISONO_HINTS` and `UNISONO_METHOD` say for the file `name`.
    /// `UNISONO_STRICT` decides whether a rejected hint is an error.
    ///
    /// # Errors
    /// A hint of the environment is rejected, and hints are strict.
    pub fn from_environment(servers: Option<u32>, name: &str) -> Result<Self, UserError> {
        Self::from_variables(servers, name, |variable| std::env::var(variable).ok())
    }

    /// [`Hints::from_environment`] with the variables of `variable`.
    pub(super) fn from_variables(
        servers: Option<u32>,
        name: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UserError> {
        let is_strict = environment::is_strict(&variable);
        let mut hints = Self { is_strict, ..Self::new(servers) };
        for (key, value) in environment::settings(name, &variable) {
            match value {
                Ok(value) => hints.set(&key, &value)?,
                Err(why) => hints.reject(&key, "", why)?,
            };
        }
        Ok(hints)
    }

    /// Sets a hint. A rejected one changes nothing in force.
    ///
    /// # Errors
    /// The hint is rejected, and hints are strict.
    pub fn set(&mut self, key: &str, value: &str) -> Result<Verdict, UserError> {
        let (key, value) = (key.trim(), value.trim());
        match self.accept(key, value) {
            Ok(shown) => {
                // A later value that is right replaces an earlier one that was not.
                self.rejected.retain(|(known, _, _)| known != key);
                Ok(Verdict::InForce(shown))
            }
            Err(why) => self.reject(key, value, why),
        }
    }

    /// Checks a hint and puts it in force. Returns the value as it is shown.
    fn accept(&mut self, key: &str, value: &str) -> Result<String, String> {
        let row = Hint::of_key(key)?;
        let parsed = Value::parse(row.form, value)?;
        if row.site == HintSite::Nowhere {
            return Err(format!("no effect: {}", row.line));
        }
        match (row.name, &parsed) {
            (METHOD, Value::Word(word)) => {
                self.method = if *word == "ddio" { "disk-directed" } else { *word };
                return Ok(self.method.to_owned());
            }
            (DISK_ORDER, Value::Word(word)) => self.order = word.parse()?,
            (SYNC, Value::Bool(sync)) => self.sync = *sync,
            (NODE_GROUP_SIZE, Value::Number(size)) => {
                let too_many = |_| format!("at most {}", u32::MAX);
                self.node_group_size = u32::try_from(*size).map_err(too_many)?;
            }
            (BLOCK_SIZE | STRIPING_UNIT, Value::Size(bytes)) => {
                check_unit(*bytes)?;
                self.block_bytes = Some(*bytes);
            }
            (PROTECTION, Value::Text(word)) => self.protection = Some(self.checked(word)?),
            (STRIPING_FACTOR, Value::Number(number)) => self.check_factor(*number)?,
            ("romio_cb_write" | "romio_cb_read", Value::Word("disable")) => {
                return Err(
                    "servers direct collective transfers; unisono_method=independent turns \
                            that off"
                        .to_owned(),
                );
            }
            ("romio_ds_write" | "romio_ds_read", Value::Word("enable")) => {
                return Err("no effect: servers take requests with holes as they are".to_owned());
            }
            (name, parsed) => drop(self.accepted.insert(name, parsed.shown())),
        }
        Ok(parsed.shown())
    }

    fn checked(&self, word: &str) -> Result<Protection, String> {
        let protection: Protection = word.parse().map_err(|unknown| format!("{unknown}"))?;
        let possible = protection.validate_on(self.servers.unwrap_or(u32::MAX));
        possible.map(|()| protection).map_err(|error| error.to_string())
    }

    fn check_factor(&self, number: u64) -> Result<(), String> {
        match self.servers {
            Some(servers) if u64::from(servers) != number => {
                Err(format!("files are striped over all {servers} servers of the instance"))
            }
            _ => Ok(()),
        }
    }

    fn reject(&mut self, key: &str, value: &str, why: String) -> Result<Verdict, UserError> {
        if self.is_strict {
            let word = if value.is_empty() { key.to_owned() } else { format!("{key}={value}") };
            return Err(UserError::usage(
                format!("the hint {word} was rejected"),
                why,
                "correct or remove it, or unset UNISONO_STRICT; `unisono hints` lists all hints",
            ));
        }
        self.rejected.retain(|(known, _, _)| known != key);
        if self.rejected.len() < REJECTED_MAX {
            self.rejected.push((key.to_owned(), value.to_owned(), why.clone()));
        } else {
            self.further_rejected += 1;
        }
        Ok(Verdict::Rejected(why))
    }

    /// Hints in force, by key in the order of the table.
    pub fn in_force(&self) -> Vec<(&'static str, String)> {
        let value = |row: &Hint| match row.name {
            METHOD => Some(self.method.to_owned()),
            DISK_ORDER => Some(self.order.to_string()),
            SYNC => Some(self.sync.to_string()),
            NODE_GROUP_SIZE => (self.node_group_size > 0).then(|| self.node_group_size.to_string()),
            BLOCK_SIZE | STRIPING_UNIT => self.block_bytes.map(|bytes| bytes.to_string()),
            PROTECTION => self.protection.map(|protection| protection.to_string()),
            STRIPING_FACTOR => self.servers.map(|servers| servers.to_string()),
            name => self.accepted.get(name).cloned(),
        };
        HINTS.iter().filter_map(|row| Some((row.name, value(row)?))).collect()
    }

    /// Rejected hints in one line, each with its reason: `cb_node(unknown; did you mean cb_nodes?)
    /// cb_buffer_size=banana(not a size)`. `None` when there are none.
    pub fn rejected(&self) -> Option<String> {
        let one = |(key, value, why): &(String, String, String)| {
            // The value tells nothing about a key that is not used.
            let is_value = Hint::of_key(key).is_ok() && !why.starts_with("no effect");
            if is_value { format!("{key}={value}({why})") } else { format!("{key}({why})") }
        };
        let mut words: Vec<String> = self.rejected.iter().map(one).collect();
        if self.further_rejected > 0 {
            words.push(format!("and {} further", self.further_rejected));
        }
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// Number of servers of the instance, if it is known.
    pub fn servers(&self) -> Option<u32> {
        self.servers
    }

    /// Options of collective calls. Independent transfers are so also for callers that use these
    /// options only.
    pub fn collective_options(&self) -> CollectiveOptions {
        let strategy = match self.method {
            "two-phase" => Strategy::TwoPhase,
            "independent" => Strategy::Noncollective,
            "global-barrier" => Strategy::GlobalBarrier,
            "node-grouping" => Strategy::NodeGrouping,
            _ => Strategy::DiskDirected,
        };
        let (order, node_group_size, sync) = (self.order, self.node_group_size, self.sync);
        let default = CollectiveOptions::default();
        CollectiveOptions { strategy, order, node_group_size, sync, ..default }
    }

    /// Unit of striping of a new file, in bytes, if a hint says it.
    pub fn block_bytes(&self) -> Option<u64> {
        self.block_bytes
    }

    /// Protection of a new file, if a hint says it.
    pub fn protection(&self) -> Option<Protection> {
        self.protection
    }

    /// True when each process transfers its part by itself in collective calls.
    pub fn is_independent(&self) -> bool {
        self.method == "independent"
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each form of hint, right and wrong, has its verdict, and nothing that was set
    //! vanishes.
    use super::*;

    /// Key, value, and the value in force or, after `!`, the reason for the rejection.
    const CASES: &[(&str, &str, &str)] = &[
        ("unisono_method", "ddio", "disk-directed"),
        ("unisono_method", "disk-directed", "disk-directed"),
        ("unisono_method", "two-phase", "two-phase"),
        ("unisono_method", " independent ", "independent"),
        ("unisono_method", "auto", "auto"),
        ("unisono_method", "global-barrier", "global-barrier"),
        ("unisono_method", "node-grouping", "node-grouping"),
        (
            "unisono_method",
            "fast",
            "!not one of auto, disk-directed, ddio, two-phase, independent, global-barrier, \
             node-grouping",
        ),
        ("unisono_node_group_size", "8", "8"),
        ("unisono_node_group_size", "4294967296", "!at most 4294967295"),
        ("unisono_node_group_size", "-1", "!not a number"),
        ("unisono_disk_order", "as-asked", "as-asked"),
        ("unisono_disk_order", "staggered", "staggered"),
        ("unisono_disk_order", "random", "!not one of sorted, as-asked, staggered"),
        ("unisono_block_size", "64KiB", "65536"),
        ("unisono_block_size", "0", "!at least 1 byte"),
        ("unisono_block_size", "2GiB", "!at most 1GiB"),
        ("striping_unit", "1048576", "1048576"),
        ("striping_unit", "much", "!not a size"),
        ("striping_factor", "2", "2"),
        ("striping_factor", "8", "!files are striped over all 2 servers of the instance"),
        ("striping_factor", "two", "!not a number"),
        ("unisono_sync", "TRUE", "true"),
        ("unisono_sync", "perhaps", "!not true or false"),
        ("unisono_timeout", "10", "!no effect: UNISONO_TIMEOUT sets it for the whole process"),
        ("romio_cb_write", "enable", "enable"),
        ("romio_cb_read", "automatic", "automatic"),
        (
            "romio_cb_write",
            "disable",
            "!servers direct collective transfers; unisono_method=independent turns that off",
        ),
        ("romio_ds_write", "disable", "disable"),
        ("romio_ds_read", "enable", "!no effect: servers take requests with holes as they are"),
        ("cb_nodes", "4", "!no effect: servers collect the data, no process does"),
        ("cb_nodes", "-4", "!not a number"),
        ("cb_buffer_size", "banana", "!not a size"),
        ("cb_node", "4", "!unknown; did you mean cb_nodes?"),
        ("striping_facter", "8", "!unknown; did you mean striping_factor?"),
        ("xyzzy", "1", "!unknown"),
        ("romio_lustre_co_ratio", "1", "!of another file system"),
        ("panfs_layout_type", "2", "!of another file system"),
        ("nc_header_align_size", "512", "!of PnetCDF, which uses it itself"),
    ];

    #[test]
    fn each_hint_has_its_verdict() {
        for (key, value, expected) in CASES {
            let mut hints = Hints::new(Some(2));
            let verdict = hints.set(key, value).expect("hints are not strict");
            match expected.strip_prefix('!') {
                Some(why) => {
                    assert_eq!(verdict, Verdict::Rejected(why.to_owned()), "{key}={value}");
                    let rejected = hints.rejected().expect("it was rejected");
                    assert!(rejected.starts_with(key) && rejected.contains(why), "{rejected}");
                }
                None => {
                    assert_eq!(verdict, Verdict::InForce((*expected).to_owned()), "{key}={value}");
                    assert_eq!(hints.rejected(), None);
                    let shown = (*key, (*expected).to_owned());
                    assert!(hints.in_force().contains(&shown), "{key}={value}");
                }
            }
        }
    }

    #[test]
    fn rejected_hints_are_one_line_and_right_ones_replace_them() {
        let mut hints = Hints::new(Some(2));
        for (key, value) in
            [("cb_node", "4"), ("cb_buffer_size", "banana"), ("unisono_sync", "maybe")]
        {
            hints.set(key, value).expect("hints are not strict");
        }
        hints.set("unisono_sync", "1").expect("hints are not strict");
        let expected = "cb_node(unknown; did you mean cb_nodes?) cb_buffer_size=banana(not a size)";
        assert_eq!(hints.rejected().as_deref(), Some(expected));
        for number in 0..100 {
            hints.set(&format!("{number}"), "x").expect("hints are not strict");
        }
        assert!(hints.rejected().is_some_and(|line| line.ends_with(" and 38 further")));
    }

    #[test]
    fn a_rejected_value_leaves_the_former_in_force() {
        let mut hints = Hints::new(Some(2));
        hints.set("unisono_method", "two-phase").expect("hints are not strict");
        hints.set("unisono_method", "slow").expect("hints are not strict");
        assert_eq!(hints.collective_options().strategy, Strategy::TwoPhase);
        assert!(hints.rejected().is_some_and(|line| line.starts_with("unisono_method=slow(")));
    }

    #[test]
    fn the_last_source_wins_and_strict_hints_fail() {
        let variables = |strict: &'static str| {
            move |name: &str| match name {
                "UNISONO_HINTS" => Some("unisono_sync=true;*.h5:unisono_method=two-phase".into()),
                "UNISONO_METHOD" => Some("independent".to_owned()),
                "UNISONO_STRICT" => Some(strict.to_owned()),
                _ => None,
            }
        };
        let of = |name| Hints::from_variables(Some(2), name, variables("0")).expect("not strict");
        assert!(of("a.h5").is_independent() && of("a.h5").collective_options().sync);
        let mut hints = of("a.dat");
        hints.set("unisono_method", "ddio").expect("not strict");
        assert_eq!(hints.collective_options().strategy, Strategy::DiskDirected);
        let mut strict = Hints::from_variables(Some(2), "a", variables("1")).expect("right hints");
        let error = strict.set("cb_node", "4").expect_err("hints are strict");
        assert_eq!(error.error, "the hint cb_node=4 was rejected");
        assert_eq!(error.cause, "unknown; did you mean cb_nodes?");
    }

    #[test]
    fn keys_of_the_table_are_unique() {
        let mut names: Vec<&str> = HINTS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), HINTS.len());
    }
}
