//! Proves: a trace of a program passes; each contradiction is refused with the calls that do not
//! fit; equal communicators are told apart by the order of their making.

use super::{check, communicators, timing_share};
use crate::event::{
    Collective, Communicator, Direction, Event, FileNumber, Message, Operation, RankTrace,
    RequestNumber,
};
use interface::ErrorKind;

fn event(operation: Operation) -> Event {
    Event { computed_ns: 10, blocked_ns: 0, took_ns: 5, depends_on_timing: false, operation }
}

/// A rank of `ranks` with calls between MPI_Init and MPI_Finalize, a second communicator of all and
/// two files.
fn rank(ranks: u32, calls: &[Operation]) -> RankTrace {
    let all: Vec<u32> = (0..ranks).collect();
    let events = [Operation::Begin].into_iter().chain(calls.iter().cloned());
    RankTrace {
        events: events.chain([Operation::End]).map(event).collect(),
        communicators: vec![all.clone(), all],
        files: vec!["a".to_owned(), "b".to_owned()],
        ..RankTrace::default()
    }
}

fn message(communicator: u32, peer: u32, tag: i32, bytes: u64) -> Message {
    Message { communicator: Communicator(communicator), peer, tag, bytes }
}

fn send(communicator: u32, peer: u32, tag: i32, bytes: u64) -> Operation {
    let message = message(communicator, peer, tag, bytes);
    Operation::Send { message, is_synchronous: false, request: None }
}

fn receive(communicator: u32, peer: u32, tag: i32, bytes: u64) -> Operation {
    Operation::Receive { message: message(communicator, peer, tag, bytes), request: None }
}

fn begun(peer: u32, request: u32) -> Operation {
    let request = Some(RequestNumber(request));
    Operation::Receive { message: message(0, peer, 0, 8), request }
}

fn wait(requests: &[u32]) -> Operation {
    Operation::Wait { requests: requests.iter().copied().map(RequestNumber).collect() }
}

fn collective(kind: Collective, communicator: u32, root: u32) -> Operation {
    let communicator = Communicator(communicator);
    Operation::Collective { kind, communicator, root, bytes: 8, request: None }
}

fn open(file: u32, communicator: u32) -> Operation {
    let (file, communicator) = (FileNumber(file), Communicator(communicator));
    Operation::Open { file, communicator, creates: true, is_fresh: true, bytes: 0 }
}

fn close(file: u32) -> Operation {
    Operation::Close { file: FileNumber(file) }
}

fn transfer(file: u32, direction: Direction, is_collective: bool) -> Operation {
    let file = FileNumber(file);
    Operation::Transfer { file, direction, is_collective, part: None, shift: 0, request: None }
}

/// Cause of the refusal of a program with two ranks.
#[track_caller]
fn refused(first: &[Operation], second: &[Operation], causes: &[&str]) {
    let error = check(&[rank(2, first), rank(2, second)]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt);
    for cause in causes {
        assert!(error.cause.contains(cause), "{cause}: {}", error.cause);
    }
}

#[test]
fn a_program_passes() {
    use Collective::{Barrier, Broadcast};
    let first = [
        send(0, 1, 7, 100),
        send(1, 1, 7, 50),
        send(0, 1, 7, 101),
        collective(Broadcast, 1, 1),
        open(0, 0),
        open(1, 0),
        transfer(1, Direction::Write, true),
        transfer(0, Direction::Read, true),
        transfer(0, Direction::Read, false),
        close(1),
        close(0),
        begun(1, 3),
        wait(&[3]),
        collective(Barrier, 0, 1),
    ];
    let second = [
        // Another order than that of the sends, in which no message overtakes another.
        receive(1, 0, 7, 50),
        receive(0, 0, 7, 100),
        receive(0, 0, 7, 101),
        wait(&[]),
        collective(Broadcast, 1, 1),
        open(0, 0),
        open(1, 0),
        // Calls of different files may come in another order.
        transfer(0, Direction::Read, true),
        transfer(1, Direction::Write, true),
        close(0),
        close(1),
        send(0, 0, 0, 8),
        // The root of a barrier means nothing.
        collective(Barrier, 0, 0),
    ];
    let mut second = rank(2, &second);
    second.events[2].depends_on_timing = true;
    let share = check(&[rank(2, &first), second]).unwrap();
    assert_eq!((share.calls, share.all_calls, share.ns, share.all_ns), (1, 31, 5, 465));
    assert!((share.calls_percent() - 100.0 / 31.0).abs() < 1e-9);
    assert_eq!(timing_share(&[]).time_percent(), 0.0);
}

#[test]
fn messages_that_contradict_each_other_are_refused_with_both_calls() {
    let all: [(&[Operation], &[Operation], [&str; 2]); 5] = [
        (
            &[send(0, 1, 3, 8)],
            &[receive(0, 0, 3, 4)],
            ["rank 0, event 1: MPI_Send to rank 1 with tag 3, 8 bytes sends more", "event 1"],
        ),
        (
            &[send(0, 1, 3, 8), send(0, 1, 3, 8)],
            &[receive(0, 0, 3, 8)],
            ["rank 0, event 2: MPI_Send", "rank 1, event 2: MPI_Finalize"],
        ),
        (&[send(0, 1, 3, 8)], &[receive(0, 0, 4, 8)], ["received by no call", "rank 0, event 1"]),
        (&[send(1, 1, 3, 8)], &[receive(0, 0, 3, 8)], ["what no call sends", "rank 1, event 1"]),
        (&[], &[receive(0, 0, 3, 8)], ["rank 1, event 1: MPI_Recv", "rank 0, event 1"]),
    ];
    for (first, second, causes) in all {
        refused(first, second, &causes);
    }
}

#[test]
fn collective_calls_that_differ_are_refused_with_both_calls() {
    use Collective::{AllReduce, Barrier, Broadcast};
    let (barrier, broadcast) = ([collective(Barrier, 0, 0)], [collective(Broadcast, 0, 0)]);
    let both = ["rank 0, event 1: MPI_Barrier", "rank 1, event 1: MPI_Bcast with root 0"];
    refused(&barrier, &broadcast, &both);
    let none = ["rank 0, event 1: MPI_Barrier", "there is none up to rank 1, event 1: MPI_Fin"];
    refused(&barrier, &[], &none);
    refused(&[], &barrier, &["rank 1, event 1: MPI_Barrier", "rank 0, event 1"]);
    refused(&broadcast, &[collective(Broadcast, 0, 1)], &["with root 0", "with root 1"]);
    // The same calls, of two communicators with equal members.
    let other = collective(AllReduce, 1, 0);
    refused(&[collective(AllReduce, 0, 0)], &[other], &["MPI_Allreduce", "there is none"]);
    let mut opened = vec![open(0, 0)];
    refused(&opened, &[], &["rank 0, event 1: MPI_File_open of file 0 (a)", "MPI_Finalize"]);
    opened.push(transfer(0, Direction::Read, true));
    let writes = [open(0, 0), transfer(0, Direction::Write, true)];
    refused(&opened, &writes, &["MPI_File_read_all of file 0 (a)", "MPI_File_write_all"]);
    let independent = [open(0, 0), transfer(0, Direction::Read, false)];
    refused(&opened, &independent, &["rank 0, event 2: MPI_File_read_all", "there is none"]);
    let size = |bytes| Operation::SetSize { file: FileNumber(0), bytes, only_grows: false };
    refused(&[open(0, 0), size(5)], &[open(0, 0), size(6)], &["5 bytes", "6 bytes"]);
    refused(&[open(0, 0)], &[open(1, 0)], &["file 0 (a)", "file 1 (b)"]);
}

#[test]
fn calls_of_one_rank_that_do_not_fit_are_refused() {
    let all: [(&[Operation], &[&str]); 12] = [
        (&[wait(&[4])], &["event 1: MPI_Wait", "no call before it began the request 4"]),
        (&[begun(1, 4)], &["event 1: MPI_Irecv", "no call waits for its request"]),
        (&[begun(1, 4), begun(1, 4)], &["event 2: MPI_Irecv", "event 1: MPI_Irecv"]),
        (&[close(0)], &["event 1: MPI_File_close", "opened"]),
        (&[open(0, 0), open(0, 0)], &["event 2: MPI_File_open", "event 1: MPI_File_open"]),
        (
            &[open(0, 0), close(0), transfer(0, Direction::Read, false)],
            &["event 3: MPI_File_read", "closed by rank 0, event 2: MPI_File_close"],
        ),
        (&[Operation::Begin], &["event 1: MPI_Init"]),
        (&[Operation::End], &["event 1: MPI_Finalize"]),
        (&[open(9, 0)], &["its file has no name"]),
        (&[send(7, 1, 0, 0)], &["its communicator is not known"]),
        (&[send(0, 9, 0, 0)], &["rank 9 is no member"]),
        (
            &[receive(0, Message::UNKNOWN_PEER, 0, 0)],
            &["event 1: MPI_Recv", "nothing says which message"],
        ),
    ];
    for (calls, causes) in all {
        refused(calls, &[], causes);
    }
    let mut headless = rank(1, &[]);
    headless.events.remove(0);
    assert!(check(&[headless]).is_err());
    // A send whose request was freed.
    let freed = Operation::Send {
        message: message(0, 1, 0, 8),
        is_synchronous: false,
        request: Some(RequestNumber(1)),
    };
    check(&[rank(2, &[freed]), rank(2, &[receive(0, 0, 0, 8)])]).unwrap();
}

#[test]
fn a_cut_rank_is_refused_with_its_last_call() {
    let mut cut = rank(2, &[send(0, 1, 3, 8)]);
    cut.events.pop();
    cut.is_cut = true;
    let error = check(&[rank(2, &[]), cut]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.cause.contains("rank 1 was killed"), "{error}");
    assert!(error.cause.contains("event 1: MPI_Send"), "{error}");
    let none = RankTrace { is_cut: true, ..RankTrace::default() };
    assert!(check(&[none]).unwrap_err().cause.contains("rank 0, after its 0 events"));
}

#[test]
fn communicators_are_matched_by_members_and_order() {
    let with = |communicators: &[&[u32]]| RankTrace {
        communicators: communicators.iter().map(|members| members.to_vec()).collect(),
        ..RankTrace::default()
    };
    let ranks = [
        with(&[&[0, 1, 2], &[0, 1, 2], &[0], &[2, 0], &[0, 1, 2]]),
        with(&[&[0, 1, 2], &[1], &[0, 1, 2], &[0, 1, 2]]),
        with(&[&[0, 1, 2], &[2, 0], &[0, 1, 2]]),
    ];
    let known = communicators(&ranks).unwrap();
    let number = |rank, local| known.number(rank, Communicator(local));
    assert_eq!(number(0, 0), 0);
    assert_eq!(number(2, 0), 0);
    assert_eq!([number(0, 1), number(1, 2), number(2, 2)], [number(0, 1); 3]);
    assert_eq!([number(0, 4), number(1, 3)], [number(0, 4); 2]);
    assert_ne!(number(0, 1), number(0, 4));
    assert_eq!(number(0, 3), number(2, 1));
    assert_eq!(known.members(&ranks, number(2, 1)), [2, 0]);
    assert_eq!(known.count(), 6);
    for wrong in [&[1, 2][..], &[0, 1, 1], &[0, 3]] {
        assert!(communicators(&[with(&[&[0, 1, 2], wrong]), with(&[]), with(&[])]).is_err());
    }
}
