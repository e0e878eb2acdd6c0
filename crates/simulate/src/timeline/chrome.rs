//! A trace in the Chrome trace-event format, written while the simulation runs.
//!
//! The format: "Trace Event Format", Google, 2016, the JSON object form. Processes are groups of
//! tracks; a thread is a track. Timestamps are microseconds with the nanoseconds as fraction.
//!
//! Invariants:
//! - [`ChromeTrace::end`] completes the output to valid JSON.
//! - No event names a track that was not introduced.
//! - Memory grows with the number of tracks, not with the number of events.

use crate::scenario::Scenario;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use units::Instant;
use world_simulated::{Activity, Link, Mark, Phase, Recorder, Slice, Track, What};

/// Events of one trace. Perfetto and Chrome show about this many with ease; they take some 150 MB.
pub(super) const EVENTS_MAX: u64 = 1_000_000;

/// Number of events in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceSummary {
    /// Events that were written.
    pub events: u64,
    /// Events that were left out because the trace is full.
    pub events_left_out: u64,
}

/// Lines of one track that are shown together. Further lines of the track are shown at the end.
const LINES_MAX: u64 = 64;

/// Groups of tracks.
const CLIENTS: u32 = 1;
const SERVERS: u32 = 2;
const DISKS: u32 = 3;
const RANKS: u32 = 4;

/// A trace that is being written to a file.
pub(super) struct ChromeTrace<W: Write> {
    out: BufWriter<W>,
    /// Ranks of a program, whose tracks come first.
    ranks: u32,
    clients: u32,
    servers: u32,
    disks_per_server: u32,
    tracks: Vec<Lane>,
    /// Lines of each track, as indices into `tracks`. A track that does several things at once has
    /// several.
    lanes: BTreeMap<Track, Vec<usize>>,
    arrows: u64,
    events: u64,
    events_max: u64,
    events_left_out: u64,
    failed: Option<io::Error>,
}

/// A line of the picture.
#[derive(Clone, Copy)]
struct Lane {
    process: u32,
    thread: u32,
    /// End of the latest of its slices.
    until: Instant,
}

impl<W: Write> ChromeTrace<W> {
    /// Begins a trace of `scenario` with at most `events_max` events besides the names of tracks.
    pub(super) fn begin(out: W, scenario: &Scenario, events_max: u64) -> Self {
        let about = json!({
            "simulated": format!("{} by {}", scenario.pattern, scenario.strategy),
            "record_bytes": scenario.record_bytes,
            "file_bytes": scenario.file_bytes,
            "machine": scenario.machine.to_string(),
            "layout": scenario.layout.to_string(),
            "seed": scenario.seed,
        });
        Self::begin_about(out, scenario, 0, about, events_max)
    }

    /// Begins a trace of a program with this many ranks on the machine of `scenario`.
    pub(super) fn begin_program(out: W, scenario: &Scenario, ranks: u32, events_max: u64) -> Self {
        let about = json!({
            "simulated": format!("a program of {ranks} ranks by {}", scenario.strategy),
            "machine": scenario.machine.to_string(),
            "layout": scenario.layout.to_string(),
            "seed": scenario.seed,
        });
        Self::begin_about(out, scenario, ranks, about, events_max)
    }

    fn begin_about(out: W, scenario: &Scenario, ranks: u32, about: Value, events_max: u64) -> Self {
        let mut trace = Self {
            out: BufWriter::new(out),
            ranks,
            clients: scenario.clients,
            servers: scenario.servers,
            disks_per_server: scenario.disks_per_server,
            tracks: Vec::new(),
            lanes: BTreeMap::new(),
            arrows: 0,
            events: 0,
            events_max,
            events_left_out: 0,
            failed: None,
        };
        let head = format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[");
        trace.write(&head);
        let groups =
            [(RANKS, "ranks"), (CLIENTS, "clients"), (SERVERS, "servers"), (DISKS, "disks")];
        let groups = groups.into_iter().filter(|(process, _)| *process != RANKS || ranks > 0);
        for (order, (process, name)) in (0..).zip(groups) {
            let separator = if order == 0 { "\n" } else { ",\n" };
            trace.name(separator, "process_name", (process, 0), json!({ "name": name }));
            let order = json!({ "sort_index": order + u32::from(ranks == 0) });
            trace.name(",\n", "process_sort_index", (process, 0), order);
        }
        trace
    }

    /// Completes the JSON. Returns the number of events, or the first error of a write.
    pub(super) fn end(&mut self) -> io::Result<TraceSummary> {
        if self.events_left_out > 0 {
            let name = format!(
                "cut: this trace has {} events, and {} more were left out",
                self.events, self.events_left_out
            );
            let at = self.tracks.iter().map(|lane| lane.until).max().unwrap_or(Instant::START);
            let (name, at) = (json!(name), microseconds(at));
            self.write(&format!(
                ",\n{{\"ph\":\"i\",\"s\":\"g\",\"pid\":{CLIENTS},\"tid\":0,\"ts\":{at},\
                 \"name\":{name}}}"
            ));
        }
        self.write("\n]}\n");
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }?;
        Ok(TraceSummary { events: self.events, events_left_out: self.events_left_out })
    }

    /// Writes `text`, unless an earlier write failed. [`Self::end`] returns the first error.
    fn write(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }

    fn name(&mut self, separator: &str, what: &str, (pid, tid): (u32, u32), arguments: Value) {
        let event = json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": arguments });
        self.write(&format!("{separator}{event}"));
    }

    /// True if `count` more events may be written; counts them in any case.
    fn takes(&mut self, count: u64) -> bool {
        // Once cut, a trace takes no more events: an arrow might lead to a slice that was left out.
        let takes = self.events_left_out == 0 && self.events + count <= self.events_max;
        let counted = if takes { &mut self.events } else { &mut self.events_left_out };
        *counted += count;
        takes
    }

    /// Returns the line for a slice: the first free one. Only slices of disks that carry out
    /// several commands at once overlap.
    fn lane(&mut self, slice: &Slice<'_>) -> usize {
        let lanes = self.lanes.get(&slice.track).map_or(&[][..], Vec::as_slice);
        let number = lanes.len();
        let free = lanes.iter().copied().find(|lane| self.tracks[*lane].until <= slice.from);
        let lane = free.unwrap_or_else(|| self.add_lane(slice.track, number));
        self.tracks[lane].until = slice.until;
        lane
    }

    /// Introduces line number `number` of a track.
    fn add_lane(&mut self, track: Track, number: usize) -> usize {
        let lane = self.tracks.len();
        let (process, name, sort_index) = self.describe(track);
        let thread = self.thread(process, sort_index, number, lane);
        self.tracks.push(Lane { process, thread, until: Instant::START });
        self.lanes.entry(track).or_default().push(lane);
        let name = match number {
            0 => name,
            _ => format!("{name}, {} at once", number + 1),
        };
        self.name(",\n", "thread_name", (process, thread), json!({ "name": name }));
        let order = json!({ "sort_index": sort_index });
        self.name(",\n", "thread_sort_index", (process, thread), order);
        lane
    }

    /// Returns the thread number of a line. A number is not used twice, because some viewers ignore
    /// processes. Numbers ascend in the order of display, because some viewers have no other order.
    fn thread(&self, process: u32, sort_index: u64, number: usize, lane: usize) -> u32 {
        let clients = 1 + u64::from(self.ranks);
        let servers = clients + 1 + u64::from(self.clients);
        let disks = servers + u64::from(self.servers);
        let threads = u64::from(self.servers * self.disks_per_server) * 3 * LINES_MAX;
        let thread = match process {
            RANKS => 1 + sort_index,
            CLIENTS => clients + sort_index,
            SERVERS => servers + sort_index,
            _ if number as u64 >= LINES_MAX => disks + threads + lane as u64,
            _ => disks + sort_index * LINES_MAX + number as u64,
        };
        u32::try_from(thread).unwrap_or(u32::MAX)
    }

    /// Returns the group of a track, its name, and its position in the group.
    fn describe(&self, track: Track) -> (u32, String, u64) {
        match track {
            Track::Transfer => (CLIENTS, "the transfer".to_owned(), 0),
            Track::Rank(rank) => (RANKS, format!("rank {rank}"), u64::from(rank)),
            Track::Processor(node) if node < self.servers => {
                (SERVERS, format!("server {node}"), u64::from(node))
            }
            Track::Processor(node) => {
                let client = node - self.servers;
                (CLIENTS, format!("client {client}"), u64::from(client) + 1)
            }
            Track::Bus(disk) => {
                let server = disk / self.disks_per_server;
                (DISKS, format!("bus of server {server}"), u64::from(disk) * 3)
            }
            Track::Commands(disk) => {
                (DISKS, format!("disk {disk}: commands"), u64::from(disk) * 3 + 1)
            }
            Track::Mechanism(disk) => {
                (DISKS, format!("disk {disk}: arm and medium"), u64::from(disk) * 3 + 2)
            }
        }
    }

    /// Writes a slice that lasts from `from` to `until`.
    fn span(&mut self, lane: Lane, from: Instant, until: Instant, name: &str, arguments: &Value) {
        let Lane { process, thread, .. } = lane;
        let length = until.as_ns() - from.as_ns();
        let (ts, dur) = (microseconds(from), microseconds(Instant::from_ns(length)));
        let name = json!(name);
        self.write(&format!(
            ",\n{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{ts},\"dur\":{dur},\
             \"name\":{name},\"args\":{arguments}}}"
        ));
    }

    /// Writes one end of an arrow.
    fn end_of_arrow(&mut self, end: &str, link: Link, track: u32, at: Instant) {
        let Lane { process, thread, .. } = self.tracks[track as usize];
        let (id, ts) = (self.arrows, microseconds(at));
        let name = match link {
            Link::Message => "message",
            Link::Get => "memget",
            Link::Request => "request to disk command",
            Link::Answer => "disk command to answer",
        };
        self.write(&format!(
            ",\n{{{end},\"id\":{id},\"cat\":\"flow\",\"name\":\"{name}\",\"pid\":{process},\
             \"tid\":{thread},\"ts\":{ts}}}"
        ));
    }
}

impl<W: Write> Recorder for ChromeTrace<W> {
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
        let (from, until) = (slice.from, slice.until);
        if !self.takes(1 + slice.phases.len() as u64) {
            return None;
        }
        let number = self.lane(slice);
        let lane = self.tracks[number];
        let (name, arguments) = self.words(slice);
        self.span(lane, from, until, &name, &arguments);
        let mut begun = from;
        for Phase { activity, until } in slice.phases {
            self.span(lane, begun, *until, activity_name(*activity), &json!({}));
            begun = *until;
        }
        Some(Mark { track: number as u32, from, until })
    }

    fn arrow(&mut self, link: Link, from: Mark, to: Mark) {
        if !self.takes(2) {
            return;
        }
        self.arrows += 1;
        // The arrow starts inside the slice, because its end may be the beginning of the next.
        let leaves = Instant::from_ns(from.until.as_ns().saturating_sub(1).max(from.from.as_ns()));
        self.end_of_arrow("\"ph\":\"s\"", link, from.track, leaves);
        self.end_of_arrow("\"ph\":\"f\",\"bp\":\"e\"", link, to.track, to.from.max(leaves));
    }
}

impl<W: Write> ChromeTrace<W> {
    /// Returns the name of a slice, and the details that a viewer shows when the slice is selected.
    fn words(&self, slice: &Slice<'_>) -> (String, Value) {
        let node = |number: u32| match number.checked_sub(self.servers) {
            Some(client) => format!("client {client}"),
            None => format!("server {number}"),
        };
        match &slice.what {
            What::Transfer => ("transfer".to_owned(), json!({})),
            What::Send { to, bytes } => {
                ("send message".to_owned(), json!({ "to": node(*to), "bytes": bytes }))
            }
            What::Receive { bytes } => ("receive message".to_owned(), json!({ "bytes": bytes })),
            What::Put { to, pieces, bytes } => {
                let arguments = json!({ "to": node(*to), "pieces": pieces, "bytes": bytes });
                ("memput".to_owned(), arguments)
            }
            What::Get { from, pieces, bytes } => {
                let arguments = json!({ "from": node(*from), "pieces": pieces, "bytes": bytes });
                ("memget".to_owned(), arguments)
            }
            What::GetAnswer { to, bytes } => {
                ("answer memget".to_owned(), json!({ "to": node(*to), "bytes": bytes }))
            }
            What::Compute => ("compute".to_owned(), json!({})),
            What::Call { name } => ((*name).to_owned(), json!({})),
            What::Bus { disk, bytes: None } => ("command".to_owned(), json!({ "disk": disk })),
            What::Bus { disk, bytes: Some(bytes) } => {
                ("burst".to_owned(), json!({ "disk": disk, "bytes": bytes }))
            }
            What::Command { reads, sectors, is_complete } => {
                let waits_for_medium = slice.phases.iter().any(|it| is_of_medium(it.activity));
                let name = match (reads, is_complete, waits_for_medium) {
                    (_, false, _) => "cancelled",
                    (true, true, true) => "read",
                    (true, true, false) => "read: hit in the buffer",
                    (false, true, true) => "write",
                    (false, true, false) => "write: into the buffer",
                };
                let arguments = json!({
                    "sectors": sectors.end - sectors.start,
                    "first sector": sectors.start,
                });
                (name.to_owned(), arguments)
            }
            What::Motion { activity, sectors } => {
                let arguments = json!({
                    "sectors": sectors.end - sectors.start,
                    "first sector": sectors.start,
                });
                (activity_name(*activity).to_owned(), arguments)
            }
        }
    }
}

/// True if a command with this activity needs the medium, and not only the buffer.
fn is_of_medium(activity: Activity) -> bool {
    use Activity::{ArmWait, HeadSwitch, Read, ReadAhead, Rotation, Seek, Work, Write};
    matches!(activity, ArmWait | HeadSwitch | Read | ReadAhead | Rotation | Seek | Work | Write)
}

fn activity_name(activity: Activity) -> &'static str {
    match activity {
        Activity::BusWait => "wait for the bus",
        Activity::BusCommand => "command on the bus",
        Activity::BusBurst => "burst on the bus",
        Activity::Overhead => "overhead",
        Activity::ArmWait => "wait for the arm",
        Activity::Seek => "seek",
        Activity::HeadSwitch => "head switch",
        Activity::Rotation => "rotational wait",
        Activity::Read => "read from the medium",
        Activity::ReadAhead => "read ahead",
        Activity::Write => "write to the medium",
        Activity::Work => "work",
    }
}

/// Formats an instant as microseconds, to the nanosecond.
fn microseconds(instant: Instant) -> String {
    format!("{}.{:03}", instant.as_ns() / 1_000, instant.as_ns() % 1_000)
}
