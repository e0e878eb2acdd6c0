//! Proves: a borrower sees lent data in the memory of the lender without a copy. The data stays
//! unchanged while it is held, and the borrower cannot write or shorten it. If it cannot be mapped
//! it is copied. Not here: properties of all worlds (conformance).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::rc::Rc;
use support::{KINDS, Kind, Place};
use units::{PeerId, Run};
use world::{Address, Clock, Incoming, Memory, Message, Network, Payload, Payloads};
use world_real::{RealPayload, RealWorld, run};

const BYTES: u64 = 1 << 20;

/// Connects two nodes; returns the first one's number of the second, and the reverse.
async fn meet(a: &RealWorld, b: &RealWorld) -> (PeerId, PeerId) {
    let Address(address) = b.address();
    let b_of_a = a.connect(&Address(address)).await.unwrap();
    a.send(b_of_a, Message::new([1][..].into())).await.unwrap();
    let Incoming::Message { from, .. } = b.receive().await else { panic!("a left") };
    // The arena is announced beside the first messages.
    a.sleep(units::Duration::from_ms(50)).await;
    (b_of_a, from)
}

fn filled(world: &RealWorld, byte: u8) -> RealPayload {
    let memory = world.memory(BYTES);
    memory.with_bytes_mut(|bytes| bytes.fill(byte));
    memory.freeze()
}

async fn pass(a: &RealWorld, to: PeerId, b: &RealWorld, body: RealPayload) -> RealPayload {
    let message = Message::lent([2][..].into(), body, Rc::new(()));
    a.send(to, message).await.unwrap();
    let Incoming::Message { body, .. } = b.receive().await else { panic!("a left") };
    body.unwrap()
}

#[test]
fn a_loan_is_seen_in_place_where_processes_reach_each_other() {
    for kind in KINDS {
        let place = Place::new();
        run(async {
            let (a, b) = (place.node(kind, 0), place.node(kind, 1));
            let (b_of_a, _) = meet(&a, &b).await;
            let loan = Rc::new(());
            let message = Message::lent([2][..].into(), filled(&a, 7), Rc::clone(&loan) as _);
            a.send(b_of_a, message).await.unwrap();
            let Incoming::Message { body: Some(body), .. } = b.receive().await else {
                panic!("{kind:?}: no body came")
            };
            assert_eq!(body.bytes(), [7; BYTES as usize], "{kind:?}");
            let is_lent = Rc::strong_count(&loan) == 2;
            assert_eq!(is_lent, kind == Kind::OneSided, "{kind:?}");
        });
    }
}

#[test]
fn the_lender_does_not_use_again_what_is_held() {
    let place = Place::new();
    run(async {
        let (a, b) = (place.node(Kind::OneSided, 0), place.node(Kind::OneSided, 1));
        let (b_of_a, _) = meet(&a, &b).await;
        let held = pass(&a, b_of_a, &b, filled(&a, 1)).await;
        for _ in 0..20 {
            drop(filled(&a, 2));
        }
        assert_eq!(held.bytes(), [1; BYTES as usize]);
        // A write to a lent memory goes to a copy while the loan is held.
        let lent = filled(&a, 3);
        let held = pass(&a, b_of_a, &b, lent.clone()).await;
        let memory = a.thaw(lent);
        memory.scatter(&[Run::contiguous(0, 1)], &RealPayload::from(vec![4]));
        assert_eq!(held.bytes(), [3; BYTES as usize]);
        assert_eq!(held.slice(5, 10).bytes(), [3; 10]);
    });
}

#[test]
fn lending_node_borrows_nothing() {
    let place = Place::new();
    run(async {
        let (a, b) = (place.node(Kind::OneSided, 0), place.node(Kind::OneSided, 1));
        let (_, a_of_b) = meet(&a, &b).await;
        let loan = Rc::new(());
        let message = Message::lent([2][..].into(), filled(&b, 7), Rc::clone(&loan) as _);
        b.send(a_of_b, message).await.unwrap();
        let Incoming::Message { body: Some(body), .. } = a.receive().await else {
            panic!("no body came")
        };
        assert_eq!(Rc::strong_count(&loan), 1, "it must be a copy");
        assert_eq!(body.bytes(), [7; BYTES as usize]);
    });
}

#[test]
fn shared_memory_cannot_be_written_or_shortened_by_peers() {
    let place = Place::new();
    run(async {
        let _node = place.node(Kind::OneSided, 0);
        let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let shared: Vec<_> = files
            .map(|entry| entry.path())
            .filter(|path| {
                let target = std::fs::read_link(path).unwrap_or_default();
                target.to_string_lossy().starts_with("/memfd:unisono")
            })
            .collect();
        assert_eq!(shared.len(), 1, "a process has one arena");
        // Any process of this user may open the file for writing, and yet it can only read it.
        let file = std::fs::File::options().read(true).write(true).open(&shared[0]).unwrap();
        file.set_len(0).expect_err("shared memory must not become shorter");
        std::os::unix::fs::FileExt::write_at(&file, &[1], 0).expect_err("nobody may write it");
        assert_eq!(file.metadata().unwrap().len(), 64 << 20);
    });
}
