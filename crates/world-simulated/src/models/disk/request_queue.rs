//! The order of the requests that wait for a disk.
//!
//! Invariants:
//!
//! - A request never overtakes an earlier one for some of the same sectors, whether that waits or
//!   is being served. So reads and writes take effect in the order of the calls.
//! - Ties go to the earlier arrival.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Order in which a disk serves waiting requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueKind {
    /// First come, first served.
    #[default]
    Fcfs,
    /// Cyclical scan: upwards by address from the end of the latest request, then again from the
    /// lowest. "New disk requests were placed into a per-disk priority queue, based on their
    /// disk-sector address, using the Cyclical Scan algorithm, and withdrawn from the queue by the
    /// disk thread when it completed the previous request" (D. Kotz, ACM TOCS 15(1), 1997).
    Cscan,
    /// Cyclical scan by position in the file instead of address. In a contiguous layout both are
    /// the same order.
    CscanOfFile,
}

/// Requests for one disk, each with a ticket; later arrivals have higher tickets.
#[derive(Clone, Debug)]
pub struct RequestQueue {
    kind: QueueKind,
    requests: BTreeMap<u64, Request>,
    /// Requests that may be next: position in the scan (0 for FCFS), then ticket.
    order: BTreeSet<(u64, u64)>,
    /// End of the request that was taken last, as a position in the scan.
    head: u64,
}

#[derive(Clone, Debug)]
struct Request {
    sectors: Range<u64>,
    /// Range of the request in the scan.
    scanned: Range<u64>,
    /// True while the request waits for an earlier one that overlaps it.
    is_held: bool,
}

impl RequestQueue {
    /// Creates an empty queue with its head at sector 0.
    pub fn new(kind: QueueKind) -> Self {
        Self { kind, requests: BTreeMap::new(), order: BTreeSet::new(), head: 0 }
    }

    /// Adds a request for `sectors`, which is also its range in scans.
    ///
    /// # Panics
    /// Panics when its ticket is not higher than all before.
    pub fn push(&mut self, ticket: u64, sectors: Range<u64>) {
        let scanned = sectors.clone();
        self.push_at(ticket, sectors, scanned);
    }

    /// Adds a request for `sectors`, with the range `scanned` in scans.
    ///
    /// # Panics
    /// Panics when its ticket is not higher than all before.
    pub fn push_at(&mut self, ticket: u64, sectors: Range<u64>, scanned: Range<u64>) {
        let latest = self.requests.last_key_value();
        assert!(
            latest.is_none_or(|(before, _)| *before < ticket),
            "later requests must have higher tickets"
        );
        let is_held = self.requests.values().any(|before| overlap(&before.sectors, &sectors));
        if !is_held {
            self.order.insert((self.key(&scanned), ticket));
        }
        self.requests.insert(ticket, Request { sectors, scanned, is_held });
    }

    /// Takes the next request. It counts as being served until [`finish`](Self::finish).
    pub fn take_next(&mut self) -> Option<u64> {
        let ahead = self.order.range((self.head, 0)..).next();
        let next = *ahead.or_else(|| self.order.first())?;
        self.order.remove(&next);
        let (_, ticket) = next;
        if self.kind != QueueKind::Fcfs {
            self.head = self.requests.get(&ticket).map_or(0, |request| request.scanned.end);
        }
        Some(ticket)
    }

    /// Removes a request that has been served or cancelled.
    pub fn finish(&mut self, ticket: u64) {
        let Some(ended) = self.requests.remove(&ticket) else { return };
        let Request { sectors, scanned, .. } = ended;
        self.order.remove(&(self.key(&scanned), ticket));
        let held = self.requests.range(ticket..).filter(|(_, request)| request.is_held);
        let held = held.filter(|(_, request)| overlap(&request.sectors, &sectors));
        let freed = held.filter(|(later, request)| {
            let mut before = self.requests.range(..*later);
            !before.any(|(_, before)| overlap(&before.sectors, &request.sectors))
        });
        let freed: Vec<u64> = freed.map(|(freed, _)| *freed).collect();
        for freed in freed {
            let Some(request) = self.requests.get_mut(&freed) else { continue };
            request.is_held = false;
            let scanned = request.scanned.clone();
            self.order.insert((self.key(&scanned), freed));
        }
    }

    fn key(&self, scanned: &Range<u64>) -> u64 {
        match self.kind {
            QueueKind::Fcfs => 0,
            QueueKind::Cscan | QueueKind::CscanOfFile => scanned.start,
        }
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(kind: QueueKind, first_sectors: &[u64]) -> RequestQueue {
        let mut queue = RequestQueue::new(kind);
        for (ticket, &first) in first_sectors.iter().enumerate() {
            queue.push(ticket as u64, first..first + 16);
        }
        queue
    }

    #[test]
    fn a_scan_of_the_file_knows_no_addresses() {
        // Requests whose positions in the file are in the reverse order of their sectors.
        let queue = |kind| {
            let mut queue = RequestQueue::new(kind);
            for (ticket, (first, scanned)) in [(10, 300), (200, 100), (100, 200)].iter().enumerate()
            {
                queue.push_at(ticket as u64, *first..first + 16, *scanned..scanned + 16);
            }
            queue
        };
        assert_eq!(drain(queue(QueueKind::CscanOfFile)), [1, 2, 0]);
        assert_eq!(drain(queue(QueueKind::Fcfs)), [0, 1, 2]);
    }

    /// Serves one request at a time until none waits.
    fn drain(mut queue: RequestQueue) -> Vec<u64> {
        let next = || {
            let ticket = queue.take_next()?;
            queue.finish(ticket);
            Some(ticket)
        };
        let served = std::iter::from_fn(next).collect();
        assert!(queue.requests.is_empty() && queue.order.is_empty());
        served
    }

    /// Proves that the order of arrival is kept, whatever the addresses.
    #[test]
    fn first_come_first_served() {
        assert_eq!(drain(queue(QueueKind::Fcfs, &[500, 20, 20, 900, 0, 25])), [0, 1, 2, 3, 4, 5]);
    }

    /// Proves that addresses ascend from the head, then again from the lowest, and that equal
    /// addresses keep the order of arrival, a sweep each.
    #[test]
    fn cscan_sweeps_upwards() {
        assert_eq!(drain(queue(QueueKind::Cscan, &[500, 20, 900, 0, 300])), [3, 1, 4, 0, 2]);
        let mut waiting = queue(QueueKind::Cscan, &[500]);
        assert_eq!(waiting.take_next(), Some(0));
        waiting.finish(0);
        for (ticket, first) in [(1, 20), (2, 516), (3, 600), (4, 516), (5, 500)] {
            waiting.push(ticket, first..first + 16);
        }
        // 516 is where the head is. After one request there, the other is behind it.
        assert_eq!(drain(waiting), [2, 3, 1, 5, 4]);
        assert_eq!(drain(queue(QueueKind::Cscan, &[40, 40, 40])), [0, 1, 2]);
    }

    /// Proves that no request starves: with a stream of requests to one place, another place is
    /// served next.
    #[test]
    fn requests_to_one_place_do_not_starve_another() {
        let mut waiting = queue(QueueKind::Cscan, &[100, 700]);
        assert_eq!(waiting.take_next(), Some(0));
        waiting.push(2, 100..116);
        waiting.finish(0);
        assert_eq!(waiting.take_next(), Some(1));
        waiting.push(3, 700..716);
        waiting.finish(1);
        assert_eq!(waiting.take_next(), Some(2));
    }

    /// Proves that requests for some of the same sectors keep their order, both while they wait and
    /// while earlier ones are being served, for any number of requests in service.
    #[test]
    fn an_overlapping_request_never_overtakes_an_earlier_one() {
        for kind in [QueueKind::Fcfs, QueueKind::Cscan] {
            let mut waiting = RequestQueue::new(kind);
            for (ticket, sectors) in [(0, 50..60), (1, 40..51), (2, 45..46), (3, 70..71)] {
                waiting.push(ticket, sectors);
            }
            assert_eq!([waiting.take_next(), waiting.take_next()], [Some(0), Some(3)]);
            assert_eq!(waiting.take_next(), None, "1 waits for 0, and 2 for 1");
            waiting.finish(0);
            assert_eq!([waiting.take_next(), waiting.take_next()], [Some(1), None]);
            waiting.finish(1);
            assert_eq!(waiting.take_next(), Some(2));
        }
    }

    /// Proves that a cancelled request does not affect others, and releases those that waited for
    /// it.
    #[test]
    fn removed_requests_are_gone() {
        for kind in [QueueKind::Fcfs, QueueKind::Cscan] {
            let mut waiting = queue(kind, &[10, 30, 50, 70, 75]);
            waiting.finish(1);
            waiting.finish(3);
            waiting.finish(9);
            assert_eq!(drain(waiting), [0, 2, 4]);
        }
    }

    /// Proves by comparison with a plain search that the order is that of cyclical scan, for
    /// requests that come and go at random.
    #[test]
    fn cscan_equals_a_search() {
        let mut state = 7_u64;
        let mut dice = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        let mut tested = RequestQueue::new(QueueKind::Cscan);
        let (mut plain, mut head): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
        for ticket in 0..5_000 {
            match dice(4) {
                0 | 1 => {
                    let first = dice(40) * 4;
                    tested.push(ticket, first..first + 4);
                    plain.push((first, ticket));
                }
                2 if !plain.is_empty() => {
                    let (_, gone) = plain.remove(dice(plain.len() as u64) as usize);
                    tested.finish(gone);
                }
                _ => {
                    let rank = |(first, ticket): &(u64, u64)| (*first < head, *first, *ticket);
                    let next = plain.iter().copied().min_by_key(rank);
                    assert_eq!(tested.take_next(), next.map(|(_, ticket)| ticket));
                    if let Some(taken) = next {
                        tested.finish(taken.1);
                        plain.retain(|waiting| *waiting != taken);
                        head = taken.0 + 4;
                    }
                }
            }
        }
    }
}
