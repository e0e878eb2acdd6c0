//! Replay of a trace on a disk model that does not share its bus.

use super::trace::TraceRequest;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Instant;
use world_simulated::models::bus::{Bus, BusSpec};
use world_simulated::models::disk_model::{Command, DiskModel, Step};
use world_simulated::models::request_queue::{QueueKind, RequestQueue};

/// Returns the service time of each request in microseconds, rounded. Requests are in the order of
/// arrival and on the disk.
pub(super) fn replay(
    requests: &[TraceRequest],
    mut model: Box<dyn DiskModel>,
    bus: Option<BusSpec>,
    kind: QueueKind,
) -> Vec<u64> {
    let mut bus = bus.map(Bus::new);
    let commands_max = model.commands_max().map_or(usize::MAX, |commands| commands as usize);
    let mut waiting = RequestQueue::new(kind);
    let mut services_us = vec![0; requests.len()];
    let mut under_way: BinaryHeap<Reverse<(Instant, u64)>> = BinaryHeap::new();
    let mut now = Instant::START;
    let mut arrived = 0;
    loop {
        while under_way.peek().is_some_and(|next| next.0.0 <= now) {
            let ended = under_way.pop();
            ended.into_iter().for_each(|Reverse((_, ticket))| waiting.finish(ticket));
        }
        while let Some(request) = requests.get(arrived).filter(|next| arrival(next) <= now) {
            waiting.push(arrived as u64, request.lbn..request.lbn + request.sectors);
            arrived += 1;
        }
        if under_way.len() < commands_max
            && let Some(ticket) = waiting.take_next()
        {
            let end = carry_out(&mut *model, bus.as_mut(), now, &requests[ticket as usize]);
            services_us[ticket as usize] = (end.since(now).as_ns() + 500) / 1_000;
            under_way.push(Reverse((end, ticket)));
            continue;
        }
        let next_end = under_way.peek().map(|next| next.0.0);
        let next_arrival = requests.get(arrived).map(arrival);
        now = match (next_end, next_arrival) {
            (Some(end), Some(arrival)) => end.min(arrival),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return services_us,
        };
    }
}

fn arrival(request: &TraceRequest) -> Instant {
    Instant::from_ns(request.arrival_us * 1_000)
}

/// Serves one request from its command to its report.
fn carry_out(
    model: &mut dyn DiskModel,
    mut bus: Option<&mut Bus>,
    now: Instant,
    request: &TraceRequest,
) -> Instant {
    let sectors = request.lbn..request.lbn + request.sectors;
    let command = Command { reads: request.reads, sectors };
    let mut at = bus.as_mut().map_or(now, |bus| bus.command(now));
    let step = model.begin(at, &command);
    let mut step = step.expect("a request was checked to be on the disk");
    loop {
        match step {
            Step::Complete(end) => return end,
            Step::Processor { length } => {
                at = at + length;
                step = model.moved(at);
            }
            Step::Burst { from, bytes } => {
                at = bus.as_mut().map_or(from, |bus| bus.transfer(from, bytes));
                step = model.moved(at);
            }
        }
    }
}
