//! Studies of selection and distribution at the servers, which D. Kotz proposed: "Disk-directed I/O
//! for MIMD Multiprocessors", ACM TOCS 15(1), 1997, section 8.

use super::claims::ClaimResult;
use super::record_study::{RecordDefinition, RecordRowDefinition, RecordStudyRow};
use simulate::{Machine, MachineName, RecordCase, RecordDelivery, Scenario};

const SOURCE: &str = "D. Kotz, Disk-directed I/O for MIMD Multiprocessors, ACM TOCS 15(1), 1997, \
    section 8";
const NOTE: &str = "The paper has no figures of these. Records have 64 bytes. Each node has a link \
    of its own to the network. The machine of 1994 is that of TOCS 1997 with contiguous files and \
    caches of 64 KiB at its 8 servers, the cluster has 4 servers with an NVMe device each and \
    caches of 4 MiB; one host has 2 servers and 2 cores, and the file in its caches.";

const DISKS: &str = "1994, 200 MB/s";
const ETHERNET: &str = "1994, 10 Mbit/s";
const CLUSTER: &str = "cluster, 100 Gbit/s";
const GIGABIT: &str = "cluster, 1 Gbit/s";
const HOST: &str = "one host";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Bytes of a record.
const RECORD_BYTES: u32 = 64;

/// Records of a thousand that match, from all to few.
const MATCHING: [u32; 4] = [1_000, 500, 100, 10];

/// Returns every study of records.
pub(super) fn studies() -> [RecordDefinition; 2] {
    [select(), deliver()]
}

/// Machine by its name in the rows.
fn scenario(machine: &str, clients: u32) -> Scenario {
    let of = |name, servers, block_bytes, file_bytes| Scenario {
        machine: Machine::of(name),
        clients,
        servers,
        block_bytes,
        file_bytes,
        ..Scenario::default()
    };
    let mut scenario = match machine {
        DISKS | ETHERNET => of(MachineName::Tocs97, 8, 8 * KIB, 4 * MIB),
        HOST => of(MachineName::ThisMachine, 2, MIB, 64 * MIB),
        _ => of(MachineName::Cluster, 4, MIB, 64 * MIB),
    };
    scenario.machine.cache_bytes = match machine {
        DISKS | ETHERNET => 64 * KIB,
        HOST => 256 * MIB,
        _ => 4 * MIB,
    };
    match machine {
        ETHERNET => scenario.machine.network.bytes_per_second = 1_250_000,
        GIGABIT => scenario.machine.network.bytes_per_second = 125_000_000,
        _ => {}
    }
    scenario
}

fn row(
    machine: &'static str,
    (clients, matching_of_1000): (u32, u32),
    deliveries: [RecordDelivery; 2],
) -> RecordRowDefinition {
    let case = |delivery| RecordCase {
        scenario: scenario(machine, clients),
        record_bytes: RECORD_BYTES,
        matching_of_1000,
        delivery,
    };
    RecordRowDefinition { machine, cases: deliveries.map(case).into() }
}

fn select() -> RecordDefinition {
    let deliveries = [RecordDelivery::ClientsLook, RecordDelivery::ServersLook];
    let machines = [(DISKS, 8), (ETHERNET, 8), (CLUSTER, 8), (GIGABIT, 8), (HOST, 2)];
    let rows = machines.into_iter().flat_map(|(machine, clients)| {
        MATCHING.map(|matching| row(machine, (clients, matching), deliveries))
    });
    RecordDefinition {
        name: "records-select",
        title: "Records that match: clients read all and look, or servers look",
        source: SOURCE,
        note: NOTE,
        columns: deliveries.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
        claims: select_claims,
    }
}

/// "Undesired records would never be sent", "saving network bandwidth" and memory of the clients.
fn select_claims(rows: &[RecordStudyRow]) -> Vec<ClaimResult> {
    let slow = |row: &RecordStudyRow| [ETHERNET, GIGABIT].contains(&row.machine);
    let with_more = |row: &RecordStudyRow| {
        let mut others = rows.iter().filter(|other| other.machine == row.machine);
        others.rfind(|other| other.matching_of_1000 > row.matching_of_1000)
    };
    vec![
        ClaimResult::check("bytes: servers look <= share that matches + 0.05", rows, |row| {
            (row.machine != HOST).then(|| row.bytes_left() <= row.matching() + 0.05)
        }),
        ClaimResult::check(
            "time on slow networks: gain above that with more records that match",
            rows,
            |row| {
                let more = with_more(row).filter(|_| slow(row))?;
                Some(row.gain() > 1.2 * more.gain())
            },
        ),
        ClaimResult::check(
            "time at 1 Gbit/s: gain >= 0.8 / share that matches, from 0.1 on",
            rows,
            |row| {
                let is_meant = row.machine == GIGABIT && row.matching() >= 0.1;
                is_meant.then(|| row.gain() >= 0.8 / row.matching())
            },
        ),
        ClaimResult::check("time where disks are the limit: no gain, within 5 %", rows, |row| {
            (row.machine == DISKS).then(|| (row.gain() - 1.0).abs() < 0.05)
        }),
        ClaimResult::check("time on one host: gain < 0.5 / share that matches", rows, |row| {
            let is_meant = row.machine == HOST && row.matching() <= 0.1;
            is_meant.then(|| row.gain() < 0.5 / row.matching())
        }),
    ]
}

fn deliver() -> RecordDefinition {
    let deliveries = [RecordDelivery::ClientsExchange, RecordDelivery::ServersDeliver];
    let machines = [DISKS, ETHERNET, CLUSTER, GIGABIT];
    let rows = machines
        .into_iter()
        .flat_map(|machine| [4, 8, 16].map(|clients| row(machine, (clients, 1_000), deliveries)));
    RecordDefinition {
        name: "records-deliver",
        title: "Records to the clients they name: clients read and exchange, or servers deliver",
        source: SOURCE,
        note: NOTE,
        columns: deliveries.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
        claims: deliver_claims,
    }
}

/// Servers that deliver each record to its client are "halving the total network traffic".
fn deliver_claims(rows: &[RecordStudyRow]) -> Vec<ClaimResult> {
    let slow = |row: &RecordStudyRow| [ETHERNET, GIGABIT].contains(&row.machine);
    vec![
        ClaimResult::check("bytes: servers deliver 0.5 to 0.6 x clients exchange", rows, |row| {
            Some((0.5..0.6).contains(&row.bytes_left()))
        }),
        ClaimResult::check(
            "time on slow networks: servers deliver < clients exchange",
            rows,
            |row| slow(row).then(|| row.gain() > 1.0),
        ),
        // The links of more clients carry their exchange in less time.
        ClaimResult::check(
            "time on slow networks, to 8 clients: servers deliver < 0.8 x that",
            rows,
            |row| (slow(row) && row.clients <= 8).then(|| row.gain() > 1.0 / 0.8),
        ),
        ClaimResult::check("time where disks are the limit: within 5 %", rows, |row| {
            (row.machine == DISKS).then(|| (row.gain() - 1.0).abs() < 0.05)
        }),
    ]
}

#[cfg(test)]
mod tests {
    //! Proves: the claims of the paper hold in the studies, each in at least one row.
    use super::*;

    #[test]
    fn the_claims_hold() {
        for definition in studies() {
            let study = definition.run(1, &|_| {}).unwrap();
            assert!(study.claims.iter().all(ClaimResult::holds), "{}", study.text());
        }
    }
}
