//! A trace of a disk: what was asked of it, when, and how long each request took.

/// A trace in the order of arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Trace {
    pub(super) requests: Vec<TraceRequest>,
    /// Records that are no requests, or of another unit.
    pub(super) records_skipped: usize,
    /// What the places of requests count.
    pub(super) place_unit: &'static str,
}

/// One request of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TraceRequest {
    /// When it came to the disk's driver, from the start of the trace.
    pub(super) arrival_us: u64,
    pub(super) reads: bool,
    /// Its first sector.
    pub(super) lbn: u64,
    /// How many sectors, one at least.
    pub(super) sectors: u64,
    /// From when the disk was given it until the disk reported it complete.
    pub(super) service_us: u64,
    /// Where in the file it stands.
    pub(super) place: u64,
}

/// Most sectors of one request: far beyond what any driver asks for.
pub(super) const REQUEST_SECTORS_MAX: u64 = 1 << 20;
/// The latest arrival: 2^32 seconds, which SRT cannot exceed.
pub(super) const ARRIVAL_US_MAX: u64 = 1_000_000 << 32;
/// The longest service time: 2^32 microseconds, which SRT cannot exceed.
pub(super) const SERVICE_US_MAX: u64 = 1 << 32;

impl Trace {
    /// Where a request stands in its file.
    pub(super) fn place(&self, request: &TraceRequest) -> String {
        format!("{} {}", self.place_unit, request.place)
    }
}
