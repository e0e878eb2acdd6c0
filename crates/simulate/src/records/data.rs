//! Contents of the records, and what is wanted of them.

use super::case::{RecordCase, RecordDelivery};
use policy::{Comparison, Constant, Expression, FieldAt, Node, Number, NumberKind, RecordGrid};
use std::ops::Range;
use units::SplitMix64;

/// Returns the bytes of all records: a random number for the condition, one for the client, and
/// zeros.
pub(super) fn contents(case: &RecordCase, seed: u64) -> Vec<u8> {
    let record_bytes = case.record_bytes as usize;
    let mut bytes = vec![0; case.scenario.file_bytes as usize];
    let mut numbers = SplitMix64::new(seed);
    for record in bytes.chunks_exact_mut(record_bytes) {
        record[..8].copy_from_slice(&numbers.next_u64().to_le_bytes());
        record[8..16].copy_from_slice(&numbers.next_u64().to_le_bytes());
    }
    bytes
}

/// The records of the file.
pub(super) fn grid(case: &RecordCase) -> RecordGrid {
    RecordGrid { start: 0, record_bytes: case.record_bytes, count: case.records() }
}

/// Records that match have a number below this one.
fn limit(case: &RecordCase) -> u64 {
    (u128::from(u64::MAX) * u128::from(case.matching_of_1000) / 1_000) as u64
}

fn field(offset: u32) -> Node {
    Node::Field(FieldAt { offset, number: Number { kind: NumberKind::U64, is_big_endian: false } })
}

/// Condition for a record to match.
pub(super) fn condition(case: &RecordCase) -> Expression {
    if case.matching_of_1000 == 1_000 {
        return Expression::always();
    }
    let (how, with) = (Comparison::Less, Constant::Unsigned(limit(case)));
    Expression { nodes: vec![field(0), Node::CompareConstant { of: 0, how, with }] }
}

/// Client that wants a record.
pub(super) fn key(case: &RecordCase) -> Expression {
    let by = u64::from(case.scenario.clients);
    Expression { nodes: vec![field(8), Node::Modulo { of: 0, by }] }
}

/// Records of the part of a client, of those that clients read.
pub(super) fn part_of(case: &RecordCase, rank: u32) -> Range<u64> {
    let (all, clients) = (case.records(), u64::from(case.scenario.clients));
    let start = |rank: u64| (u128::from(all) * u128::from(rank) / u128::from(clients)) as u64;
    start(rank.into())..start(u64::from(rank) + 1)
}

/// Returns the number of records among these that match and that each client wants; all that match
/// are for the client `rank`, unless records have owners.
pub(super) fn wanted(case: &RecordCase, rank: u32, records: &[u8]) -> Vec<u64> {
    let clients = case.scenario.clients;
    let mut wanted = vec![0; clients as usize];
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    for record in records.chunks_exact(case.record_bytes as usize) {
        let matches = case.matching_of_1000 == 1_000 || number(&record[..8]) < limit(case);
        let owner = match case.delivery {
            _ if !matches => continue,
            RecordDelivery::ClientsExchange | RecordDelivery::ServersDeliver => {
                (number(&record[8..16]) % u64::from(clients)) as usize
            }
            RecordDelivery::ClientsLook | RecordDelivery::ServersLook => rank as usize,
        };
        wanted[owner] += 1;
    }
    wanted
}
