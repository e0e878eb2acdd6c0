//! A trace of a disk: its requests, their arrival times and their service times.

/// A trace in the order of arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Trace {
    pub(super) requests: Vec<TraceRequest>,
    /// Records that are not requests, or belong to another unit.
    pub(super) records_skipped: usize,
    /// Unit in which `TraceRequest::place` counts, such as "byte".
    pub(super) place_unit: &'static str,
}

/// One request of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TraceRequest {
    /// Arrival at the disk's driver, from the start of the trace.
    pub(super) arrival_us: u64,
    pub(super) reads: bool,
    /// First sector.
    pub(super) lbn: u64,
    /// Number of sectors, at least one.
    pub(super) sectors: u64,
    /// From the moment at which the disk was given the request until it reported completion.
    pub(super) service_us: u64,
    /// Position in the trace file, in the trace's `place_unit`.
    pub(super) place: u64,
}

/// Most sectors of one request: far beyond what any driver asks for.
pub(super) const REQUEST_SECTORS_MAX: u64 = 1 << 20;
/// The latest arrival: 2^32 seconds, which SRT cannot exceed.
pub(super) const ARRIVAL_US_MAX: u64 = 1_000_000 << 32;
/// The longest service time: 2^32 microseconds, which SRT cannot exceed.
pub(super) const SERVICE_US_MAX: u64 = 1 << 32;

impl Trace {
    /// Returns the position of a request in its file, with the unit.
    pub(super) fn place(&self, request: &TraceRequest) -> String {
        format!("{} {}", self.place_unit, request.place)
    }
}
