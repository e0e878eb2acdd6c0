//! Proves: when the process of a peer is killed, its departure is announced once, and all calls
//! that wait for it fail; memory that it could access can be withdrawn.

mod support;

use futures_util::future::join;
use std::process::{Child, Command};
use std::time::Duration;
use support::{KEY, KINDS, Kind, Place};
use units::{PeerId, PieceRun, RegionId};
use world::{
    Address, Header, Incoming, Message, Network, NetworkError, OneSided, Payloads, TransferError,
};
use world_real::{NodeConfig, RealWorld, run};

const CHILD: &str = "UNISONO_TEST_CHILD";

/// Process to be killed: exposes a memory, says so, and then receives nothing.
#[test]
fn child() {
    let Ok(address) = std::env::var(CHILD) else { return };
    run(async {
        let config = NodeConfig { key: Some(KEY), ..NodeConfig::default() };
        let framed = address.contains("framed");
        let world = support::open(if framed { Kind::Framed } else { Kind::OneSided }, config);
        let parent = world.connect(&Address(address)).await.expect("the parent listens");
        let memory = world.memory(1 << 20);
        let region = world.expose(&memory, &[parent]).await.expect("an exposure");
        let ready = Message::new(Header::from_slice(&region.0.to_le_bytes()));
        world.send(parent, ready).await.expect("the parent receives");
        std::future::pending::<()>().await;
    });
}

fn start(address: &Address) -> Child {
    let me = std::env::current_exe().expect("a test knows its file");
    let mut child = Command::new(me);
    child.args(["--exact", "child", "--nocapture"]).env(CHILD, &address.0);
    child.stdout(std::process::Stdio::null()).spawn().expect("a child starts")
}

async fn ready(world: &RealWorld) -> (PeerId, RegionId) {
    match world.receive().await {
        Incoming::Message { from, header, .. } => {
            (from, RegionId(u64::from_le_bytes(header[..].try_into().expect("a region"))))
        }
        Incoming::Departed { cause, .. } => panic!("the child departed: {cause}"),
    }
}

#[test]
fn a_killed_peer_departs_and_what_waits_for_it_fails() {
    for kind in KINDS {
        let place = Place::new();
        run(async {
            let mut config = place.config(kind, 0);
            if kind == Kind::Framed {
                let path = place.path().join("framed");
                config.listen = Some(Address(format!("unix:{}", path.display())));
            }
            let world = support::open(kind, config);
            let mut child = start(&world.address());
            let (peer, region) = ready(&world).await;
            let own = world.memory(4096);
            let exposed = world.expose(&own, &[peer]).await.expect("the child answers by itself");
            // The child does not receive, so some of these stay queued.
            let bodies = (0..64).map(|_| {
                let body = vec![1; 4 << 20].into();
                world.send(peer, Message::with_body(Header::new(), body))
            });
            let sending = futures_util::future::join_all(bodies);
            let killing = async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                child.kill().expect("the child is there");
                world.receive().await
            };
            let (sent, departed) = join(sending, killing).await;
            let last = sent.last().expect("some were sent");
            assert!(matches!(last, Err(NetworkError::Departed { .. })), "{last:?}");
            assert!(matches!(departed, Incoming::Departed { .. }), "{departed:?}");
            let piece = PieceRun {
                offset: 0,
                stride: 8,
                memory_offset: 0,
                memory_stride: 8,
                length: 8,
                count: 1,
            };
            let put = world.put(peer, region, &[piece], &vec![0; 8].into()).await;
            assert!(matches!(put, Err(TransferError::Departed { .. })), "{put:?}");
            world.withdraw(exposed).await;
            // Nothing else arrives: the departure is announced once.
            let more = tokio::time::timeout(Duration::from_millis(20), world.receive()).await;
            assert!(more.is_err(), "{more:?}");
            child.wait().expect("the child has ended");
        });
    }
}

/// Waits until the child has stopped, which may be a little after the signal was sent.
async fn until_stopped(child: &Child) {
    let state = format!("/proc/{}/stat", child.id());
    for _ in 0..1000 {
        let text = std::fs::read_to_string(&state).expect("the child is there");
        // The state follows the name, which stands in parentheses.
        if text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the child does not stop");
}

#[test]
fn a_pending_transfer_fails_when_its_peer_is_killed() {
    let place = Place::new();
    run(async {
        let world = place.node(Kind::Framed, 0);
        let mut child = start(&world.address());
        let (peer, region) = ready(&world).await;
        let pid = rustix::process::Pid::from_child(&child);
        // A stopped process answers nothing, so the transfer waits until the kill.
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is there");
        until_stopped(&child).await;
        let piece = PieceRun {
            offset: 0,
            stride: 8,
            memory_offset: 0,
            memory_stride: 8,
            length: 8,
            count: 1,
        };
        let target = world.memory(8);
        let pieces = [piece];
        let getting = world.get(peer, region, &pieces, &target);
        let killing = async {
            tokio::task::yield_now().await;
            child.kill().expect("the child is there");
        };
        let (got, ()) = join(getting, killing).await;
        assert!(matches!(got, Err(TransferError::Departed { .. })), "{got:?}");
        child.wait().expect("the child has ended");
    });
}
