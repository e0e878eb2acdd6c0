//! Arguments of transfers: patterns, records, strategies.

use clap::Args;
use interface::parse_size as size;

/// Transfers to run; shared by `bench` and `sim`. Lists are crossed.
#[derive(Args, Debug)]
pub(crate) struct Cases {
    /// Patterns, named as in the papers, separated by commas (default: wbc,rbc).
    #[arg(long, value_delimiter = ',', conflicts_with = "distribution")]
    pub(crate) pattern: Vec<String>,
    /// Distribution instead of a pattern: for each dimension one of none, block, cyclic or
    /// cyclic(k); or all.
    #[arg(long, value_name = "WORDS")]
    pub(crate) distribution: Option<String>,
    /// With --distribution: write instead of read.
    #[arg(long, requires = "distribution", conflicts_with = "pattern")]
    pub(crate) write: bool,
    /// Record sizes, separated by commas (default: 8KiB).
    #[arg(long, value_name = "SIZE", value_parser = size, value_delimiter = ',')]
    pub(crate) record: Vec<u64>,
    /// Strategies, separated by commas: caching, two-phase, disk-directed, or all of these three
    /// (the default). noncollective is disk-directed without a collective. With global-barrier,
    /// each client makes its own requests after a barrier; with node-grouping, groups of clients do
    /// so in turn.
    #[arg(long, value_delimiter = ',')]
    pub(crate) strategy: Vec<String>,
    /// Clients of a group (node-grouping): those that make requests at the same time. 0 means one
    /// for each disk, but at least two groups (default: 0).
    #[arg(long, value_name = "CLIENTS")]
    pub(crate) node_group_size: Option<u32>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Cases {
    /// Patterns of the command: those named, or one from a distribution.
    pub(crate) fn patterns(&self) -> Vec<String> {
        match &self.distribution {
            Some(words) => {
                let direction = if self.write { "w" } else { "r" };
                vec![format!("{direction}:{words}")]
            }
            None => self.pattern.clone(),
        }
    }

    /// Strategies of the command; `all`, or no name, means each of them.
    pub(crate) fn strategies(&self) -> Vec<String> {
        let named = &self.strategy;
        let expand = |name: &String| match name.as_str() {
            "all" => interface::strategy_names(),
            _ => vec![name.clone()],
        };
        if named.is_empty() {
            interface::strategy_names()
        } else {
            named.iter().flat_map(expand).collect()
        }
    }
}
