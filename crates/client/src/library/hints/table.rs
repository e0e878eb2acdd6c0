//! The table of hints.

use interface::nearest;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Hint {
    /// Key.
    pub name: &'static str,
    /// Form of its values.
    pub form: Form,
    /// Calls that it changes.
    pub site: HintSite,
    /// Explanation in one line. For [`HintSite::Nowhere`]: the reason.
    pub line: &'static str,
}

/// Form of the values of a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number, at least 0.
    Number,
    /// A size in bytes, such as 1048576 or 1MiB.
    Size,
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
}

impl Form {
    /// Word for the form in lists.
    pub fn word(self) -> String {
        match self {
            Self::Choice(words) => words.join("|"),
            Self::Number => "number".to_owned(),
            Self::Size => "size".to_owned(),
            Self::Bool => "true|false".to_owned(),
            Self::Text => "text".to_owned(),
        }
    }
}

/// Calls that a hint changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintSite {
    /// Collective reads and writes.
    Collectives,
    /// The creation of a file.
    NewFiles,
    /// All reads and writes.
    Transfers,
    /// None: such a hint is rejected.
    Nowhere,
}

impl HintSite {
    /// Word for the site in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Collectives => "collectives",
            Self::NewFiles => "new files",
            Self::Transfers => "transfers",
            Self::Nowhere => "no effect",
        }
    }
}

/// Own hints.
pub(super) const METHOD: &str = "unisono_method";
pub(super) const DISK_ORDER: &str = "unisono_disk_order";
pub(super) const BLOCK_SIZE: &str = "unisono_block_size";
pub(super) const PROTECTION: &str = "unisono_protection";
pub(super) const SYNC: &str = "unisono_sync";
pub(super) const NODE_GROUP_SIZE: &str = "unisono_node_group_size";
/// Hints of the MPI standard with an effect.
pub(super) const STRIPING_UNIT: &str = "striping_unit";
pub(super) const STRIPING_FACTOR: &str = "striping_factor";

const METHODS: Form = Form::Choice(&[
    "auto",
    "disk-directed",
    "ddio",
    "two-phase",
    "independent",
    "global-barrier",
    "node-grouping",
]);
const ORDERS: Form = Form::Choice(&["sorted", "as-asked", "staggered"]);
const SWITCH: Form = Form::Choice(&["enable", "disable", "automatic"]);

use Form::{Bool, Number, Size, Text};
use HintSite::{Collectives, NewFiles, Nowhere, Transfers};

/// Every known hint, those with an effect first.
pub const HINTS: &[Hint] = &[
    row(METHOD, METHODS, Collectives, "transfer method; auto, ddio: disk-directed"),
    row(DISK_ORDER, ORDERS, Collectives, "order in which servers use their disks"),
    row(NODE_GROUP_SIZE, Number, Collectives, "members at a time; 0: one for each disk"),
    row(SYNC, Bool, Collectives, "collective writes end on stable storage"),
    row(BLOCK_SIZE, Size, NewFiles, "unit of striping of a new file"),
    row(PROTECTION, Text, NewFiles, "none, mirror, parity or parity:BLOCKS"),
    row(STRIPING_UNIT, Size, NewFiles, "the same as unisono_block_size"),
    row(STRIPING_FACTOR, Number, NewFiles, "number of servers: all of the instance"),
    row("romio_cb_write", SWITCH, Collectives, "collective writes are directed by servers"),
    row("romio_cb_read", SWITCH, Collectives, "collective reads are directed by servers"),
    row("romio_ds_write", SWITCH, Transfers, "data sieving, which servers never need"),
    row("romio_ds_read", SWITCH, Transfers, "data sieving, which servers never need"),
    row("unisono_timeout", Number, Nowhere, "UNISONO_TIMEOUT sets it for the whole process"),
    // The MPI standard, section "Reserved File Hints".
    row("access_style", Text, Nowhere, "servers order each request themselves"),
    row("collective_buffering", Bool, Nowhere, "unisono_method chooses how collectives work"),
    row("cb_block_size", Size, Nowhere, NO_BUFFERS),
    row("cb_buffer_size", Size, Nowhere, NO_BUFFERS),
    row("cb_nodes", Number, Nowhere, NO_AGGREGATORS),
    row("chunked", Text, Nowhere, NO_CHUNKS),
    row("chunked_item", Text, Nowhere, NO_CHUNKS),
    row("chunked_size", Text, Nowhere, NO_CHUNKS),
    row("filename", Text, Nowhere, "the name is that of the open call"),
    row("file_perm", Text, Nowhere, "an instance belongs to one user"),
    row("io_node_list", Text, Nowhere, "files are striped over all servers"),
    row("nb_proc", Number, Nowhere, "servers learn the number of processes by themselves"),
    row("num_io_nodes", Number, Nowhere, "the number of servers is that of the instance"),
    // ROMIO.
    row("cb_config_list", Text, Nowhere, NO_AGGREGATORS),
    row("romio_aggregator_list", Text, Nowhere, NO_AGGREGATORS),
    row("ind_rd_buffer_size", Size, Nowhere, NO_SIEVING),
    row("ind_wr_buffer_size", Size, Nowhere, NO_SIEVING),
    row("romio_cb_pfr", SWITCH, Nowhere, NO_DOMAINS),
    row("romio_cb_fr_types", Text, Nowhere, NO_DOMAINS),
    row("romio_cb_fr_alignment", Size, Nowhere, NO_DOMAINS),
    row("romio_min_fdomain_size", Size, Nowhere, NO_DOMAINS),
    row("romio_cb_ds_threshold", Number, Nowhere, NO_SIEVING),
    row("romio_cb_alltoall", SWITCH, Nowhere, "processes exchange no data"),
    row("romio_no_indep_rw", Bool, Nowhere, "every process is connected to the servers"),
    row("romio_synchronized_flush", SWITCH, Nowhere, "MPI_File_sync flushes every server"),
    row("romio_visibility_immediate", Bool, Nowhere, "writes are visible at once"),
    row("romio_filesystem_type", Text, Nowhere, "the name of the file chooses the file system"),
    row("romio_tunegather", Bool, Nowhere, NO_DOMAINS),
    row("romio_tuneblocking", Bool, Nowhere, NO_DOMAINS),
    row("romio_write_aggmethod", Number, Nowhere, NO_AGGREGATORS),
    row("romio_read_aggmethod", Number, Nowhere, NO_AGGREGATORS),
    row("romio_onesided_no_rmw", Bool, Nowhere, NO_AGGREGATORS),
    row("romio_onesided_always_rmw", Bool, Nowhere, NO_AGGREGATORS),
    row("romio_onesided_inform_rmw", Bool, Nowhere, NO_AGGREGATORS),
    row("start_iodevice", Number, Nowhere, "files are striped over all servers"),
    row("direct_read", Bool, Nowhere, NO_DIRECT),
    row("direct_write", Bool, Nowhere, NO_DIRECT),
];

const NO_BUFFERS: &str = "servers have buffers of their own (start --cache)";
const NO_AGGREGATORS: &str = "servers collect the data, no process does";
const NO_SIEVING: &str = "servers take requests with holes as they are";
const NO_DOMAINS: &str = "servers divide the file by its stripes";
const NO_CHUNKS: &str = "files are striped as one sequence of bytes";
const NO_DIRECT: &str = "it is an option of servers (start --direct)";

/// Prefixes of keys that are meant for others, each with the reason for their rejection.
const FOREIGN: &[(&str, &str)] = &[
    ("romio_lustre_", OTHER_SYSTEM),
    ("romio_pvfs2_", OTHER_SYSTEM),
    ("romio_daos_", OTHER_SYSTEM),
    ("romio_gpfs_", OTHER_SYSTEM),
    ("romio_plfs_", OTHER_SYSTEM),
    ("romio_quobyte_", OTHER_SYSTEM),
    ("lustre_", OTHER_SYSTEM),
    ("panfs_", OTHER_SYSTEM),
    ("pvfs_", OTHER_SYSTEM),
    ("pvfs2_", OTHER_SYSTEM),
    ("cray_", OTHER_SYSTEM),
    ("bg_", OTHER_SYSTEM),
    ("bgl_", OTHER_SYSTEM),
    ("ibm_", OTHER_SYSTEM),
    ("IBM_", OTHER_SYSTEM),
    ("gpfsmpio_", OTHER_SYSTEM),
    ("daos_", OTHER_SYSTEM),
    ("beegfs_", OTHER_SYSTEM),
    ("nc_", "of PnetCDF, which uses it itself"),
    ("pnetcdf_", "of PnetCDF, which uses it itself"),
    ("nfmpi_", "of PnetCDF, which uses it itself"),
    ("mpi_", "of the MPI library, not of files"),
];

const OTHER_SYSTEM: &str = "of another file system";

const fn row(name: &'static str, form: Form, site: HintSite, line: &'static str) -> Hint {
    Hint { name, form, site, line }
}

impl Hint {
    /// Row of a key, or the reason for which there is none.
    pub(super) fn of_key(key: &str) -> Result<&'static Self, String> {
        if let Some(row) = HINTS.iter().find(|row| row.name == key) {
            return Ok(row);
        }
        if let Some((_, why)) = FOREIGN.iter().find(|(prefix, _)| key.starts_with(prefix)) {
            return Err((*why).to_owned());
        }
        match nearest(key, HINTS.iter().map(|row| row.name)) {
            Some(known) => Err(format!("unknown; did you mean {known}?")),
            None => Err("unknown".to_owned()),
        }
    }
}
