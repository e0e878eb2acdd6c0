//! The transport of a machine: it drives the network model and notifies receivers of arrivals.
//!
//! A network of switches names each arrival at once, and so does a modelled torus for a message
//! that meets no contention; that costs one timer. Otherwise the network is driven by events. It is
//! brought to the present whenever a message is sent, and a timer is set for its earliest possible
//! arrival. If contention delays the arrival, the timer is set again.
//!
//! Invariants:
//!
//! - A receiver is notified of an arrival at its instant.
//! - Among arrivals of one instant, those known at sending keep the order of sending, and so do
//!   those not known at sending.

use crate::engine::{Engine, HandlerId, Sleep, TimerHandler};
use crate::models::network::{BuiltNetwork, EventDrivenNetwork, SwitchedNetwork};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use units::Instant;

/// The network of a machine.
pub(crate) struct Transport {
    engine: Engine,
    form: Form,
}

enum Form {
    Switched(RefCell<Box<dyn SwitchedNetwork>>),
    EventDriven(Rc<Traffic>),
}

impl Transport {
    /// Creates the transport of `machine`, which is notified of arrivals by
    /// `machine.on_timer(token)`.
    pub(crate) fn new(
        engine: Engine,
        network: BuiltNetwork,
        machine: Weak<dyn TimerHandler>,
    ) -> Self {
        let form = match network {
            BuiltNetwork::Switched(network) => Form::Switched(RefCell::new(network)),
            BuiltNetwork::EventDriven(network) => {
                Form::EventDriven(Traffic::new(&engine, network, machine))
            }
        };
        Self { engine, form }
    }

    /// Sends `bytes` now from one node to another. Returns the arrival of the last byte, or `None`
    /// when it is not known yet: then the machine will be invoked with `token`.
    pub(crate) fn launch(&self, ends: (u32, u32), bytes: u64, token: u64) -> Option<Instant> {
        match self.send(ends, bytes, || Waiter::Machine(token)) {
            Sent::Until(arrival) => Some(arrival),
            Sent::On(..) => None,
        }
    }

    /// Sends `bytes` now from one node to another. The future completes when the last byte has
    /// arrived.
    pub(crate) fn carry(&self, from: u32, to: u32, bytes: u64) -> Carriage {
        match self.send((from, to), bytes, || Waiter::Unpolled) {
            Sent::Until(arrival) => Carriage::Known(self.engine.sleep_until(arrival)),
            Sent::On(traffic, parcel) => {
                Carriage::Tracked(Tracked { traffic: Rc::clone(traffic), parcel })
            }
        }
    }

    #[inline]
    fn send(
        &self,
        (from, to): (u32, u32),
        bytes: u64,
        waiter: impl FnOnce() -> Waiter,
    ) -> Sent<'_> {
        self.engine.audit(u64::from(from) << 48 ^ u64::from(to) << 32 ^ bytes);
        match &self.form {
            Form::Switched(network) => {
                let now = self.engine.now();
                Sent::Until(network.borrow_mut().deliver(now, from, to, bytes))
            }
            Form::EventDriven(traffic) => traffic.send((from, to), bytes, waiter),
        }
    }
}

enum Sent<'a> {
    /// It arrives at this instant.
    Until(Instant),
    /// It is a parcel whose arrival is not known yet.
    On(&'a Rc<Traffic>, u32),
}

/// Future of the arrival of a message.
pub(crate) enum Carriage {
    /// The arrival is known.
    Known(Sleep),
    /// The arrival is not known yet.
    Tracked(Tracked),
}

impl Future for Carriage {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Self::Known(sleep) => Pin::new(sleep).poll(context),
            Self::Tracked(tracked) => tracked.traffic.poll(tracked.parcel, context.waker()),
        }
    }
}

/// Future of an arrival that was not known at sending. Dropping it leaves the message on its way.
pub(crate) struct Tracked {
    traffic: Rc<Traffic>,
    parcel: u32,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.traffic.forget(self.parcel);
    }
}

/// A network that is driven by events, with its parcels.
pub(crate) struct Traffic {
    engine: Engine,
    network: RefCell<Box<dyn EventDrivenNetwork>>,
    /// Receivers of the parcels, by parcel number.
    waiters: RefCell<Vec<Waiter>>,
    free: RefCell<Vec<u32>>,
    /// Earliest instant for which a timer is set.
    timer: Cell<Option<Instant>>,
    machine: Weak<dyn TimerHandler>,
    own: HandlerId,
}

enum Waiter {
    /// The parcel number is free.
    Free,
    /// The machine, invoked with this token.
    Machine(u64),
    /// A future that has not been polled.
    Unpolled,
    Task(Waker),
    /// A future that was dropped.
    Gone,
    /// The parcel has arrived, and its future has not been polled since.
    Arrived,
}

impl Traffic {
    fn new(
        engine: &Engine,
        network: Box<dyn EventDrivenNetwork>,
        machine: Weak<dyn TimerHandler>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|own| Self {
            engine: engine.clone(),
            network: RefCell::new(network),
            waiters: RefCell::default(),
            free: RefCell::default(),
            timer: Cell::default(),
            machine,
            own: engine.register(Weak::<Self>::clone(own)),
        })
    }

    #[inline]
    fn send(
        self: &Rc<Self>,
        ends: (u32, u32),
        bytes: u64,
        waiter: impl FnOnce() -> Waiter,
    ) -> Sent<'_> {
        let (mut parcel, mut waiter) = (None, Some(waiter));
        let mut name = || {
            let waiter = waiter.take().expect("a network must name a message once");
            *parcel.insert(self.insert(waiter()))
        };
        let arrival = self.network.borrow_mut().send(self.engine.now(), ends, bytes, &mut name);
        match (arrival, parcel) {
            (Some(arrival), _) => Sent::Until(arrival),
            (None, Some(parcel)) => {
                self.set_timer();
                Sent::On(self, parcel)
            }
            (None, None) => unreachable!("what has no arrival must have a name"),
        }
    }

    #[inline(never)]
    fn insert(&self, waiter: Waiter) -> u32 {
        let mut waiters = self.waiters.borrow_mut();
        let parcel = self.free.borrow_mut().pop().unwrap_or_else(|| {
            waiters.push(Waiter::Free);
            waiters.len() as u32 - 1
        });
        waiters[parcel as usize] = waiter;
        parcel
    }

    /// Sets a timer for the next arrival, unless an earlier one is set.
    fn set_timer(&self) {
        let Some(next) = self.network.borrow().next_arrival_from() else { return };
        if self.timer.get().is_some_and(|timer| timer <= next) {
            return;
        }
        self.timer.set(Some(next));
        self.engine.invoke_at(next, self.own, next.as_ns());
    }

    fn arrived(&self, parcel: u32) {
        let waiter = &mut self.waiters.borrow_mut()[parcel as usize];
        match std::mem::replace(waiter, Waiter::Arrived) {
            Waiter::Task(waker) => return waker.wake(),
            Waiter::Unpolled => return,
            _ => *waiter = Waiter::Free,
        }
        self.free.borrow_mut().push(parcel);
    }

    fn poll(&self, parcel: u32, waker: &Waker) -> Poll<()> {
        let waiter = &mut self.waiters.borrow_mut()[parcel as usize];
        if matches!(waiter, Waiter::Arrived) {
            return Poll::Ready(());
        }
        *waiter = Waiter::Task(waker.clone());
        Poll::Pending
    }

    fn forget(&self, parcel: u32) {
        let waiter = &mut self.waiters.borrow_mut()[parcel as usize];
        if matches!(waiter, Waiter::Arrived) {
            *waiter = Waiter::Free;
            self.free.borrow_mut().push(parcel);
        } else {
            *waiter = Waiter::Gone;
        }
    }
}

impl TimerHandler for Traffic {
    /// Collects arrivals; `token` is the instant for which the timer was set, in ns.
    fn on_timer(&self, token: u64) {
        if self.timer.get().is_none_or(|timer| timer.as_ns() != token) {
            // A later call set an earlier timer, which has replaced this one.
            return;
        }
        self.timer.set(None);
        loop {
            let next = self.network.borrow_mut().arrived(self.engine.now());
            let Some(parcel) = next else { break };
            let token = match self.waiters.borrow()[parcel as usize] {
                Waiter::Machine(token) => Some(token),
                _ => None,
            };
            self.arrived(parcel);
            if let (Some(token), Some(machine)) = (token, self.machine.upgrade()) {
                machine.on_timer(token);
            }
        }
        self.set_timer();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: senders on a torus are notified of each arrival once, at its instant. A dropped
    //! future leaves its message on the way and frees its number.
    use super::*;
    use crate::models::network::torus::exact::ExactTorusShape;
    use crate::models::network::{NetworkKind, NetworkSpec, crossbar::CrossbarShape};
    use units::Duration;

    /// Records each notification with its instant.
    struct Notified(Engine, RefCell<Vec<(u64, u64)>>);

    impl TimerHandler for Notified {
        fn on_timer(&self, token: u64) {
            self.1.borrow_mut().push((token, self.0.now().as_ns()));
        }
    }

    fn transport(engine: &Engine, kind: NetworkKind) -> (Rc<Transport>, Rc<Notified>) {
        let notified = Rc::new(Notified(engine.clone(), RefCell::default()));
        let network = NetworkSpec { kind, ..NetworkSpec::default() }.build(36).unwrap();
        let machine: Weak<dyn TimerHandler> = Rc::<Notified>::downgrade(&notified);
        (Rc::new(Transport::new(engine.clone(), network, machine)), notified)
    }

    #[test]
    fn receivers_are_notified_at_the_instant_of_arrival() {
        let engine = Engine::new();
        let (transport, notified) = transport(&engine, NetworkKind::of(ExactTorusShape::default()));
        let own = engine.clone();
        let carry = async move {
            // The message from 2 to 3 is sent last and reaches the common link first: 100 and 50
            // flits.
            assert_eq!(transport.launch((0, 3), 400, 7), None);
            own.sleep(Duration::from_ns(20)).await;
            transport.carry(2, 3, 200).await;
            assert_eq!(own.now(), Instant::from_ns(20 * (1 + 50 + 1)));
            transport.carry(3, 3, 200).await;
            assert_eq!(own.now(), Instant::from_ns(20 * 52), "at once");
            own.sleep(Duration::from_ms(1)).await;
        };
        engine.run(carry).unwrap();
        assert_eq!(*notified.1.borrow(), [(7, 20 * (51 + 100 + 1))]);
    }

    #[test]
    fn contending_messages_on_a_modelled_torus_notify_their_receiver() {
        let engine = Engine::new();
        let (transport, notified) = transport(&engine, NetworkKind::default());
        let own = engine.clone();
        let carry = async move {
            let known = Instant::from_ns(20 * (100 + 3));
            assert_eq!(transport.launch((0, 3), 400, 7), Some(known), "nothing is before it");
            own.sleep(Duration::from_ns(100)).await;
            assert_eq!(transport.launch((2, 3), 200, 8), None, "the first has its link");
            transport.carry(1, 3, 40).await;
            assert_eq!(own.now(), Instant::from_ns(20 * (100 + 3 + 50 + 10)), "last in order");
            own.sleep(Duration::from_ms(1)).await;
        };
        engine.run(carry).unwrap();
        assert_eq!(*notified.1.borrow(), [(8, 20 * (100 + 3 + 50))]);
    }

    #[test]
    fn a_future_that_is_dropped_leaves_its_message_on_the_way() {
        let engine = Engine::new();
        let (transport, notified) = transport(&engine, NetworkKind::of(ExactTorusShape::default()));
        let own = engine.clone();
        let carry = async move {
            drop(transport.carry(0, 1, 400));
            let polled = transport.carry(6, 7, 400);
            futures_util::future::select(polled, own.sleep(Duration::from_ns(100))).await;
            transport.carry(0, 1, 4).await;
            assert_eq!(own.now(), Instant::from_ns(20 * (100 + 1 + 1)), "behind the first");
            let Form::EventDriven(traffic) = &transport.form else { panic!("it is a torus") };
            own.sleep(Duration::from_ms(1)).await;
            assert_eq!(traffic.waiters.borrow().len(), 3);
            assert_eq!(traffic.free.borrow().len(), 3, "all numbers are free");
        };
        engine.run(carry).unwrap();
        assert!(notified.1.borrow().is_empty());
    }

    #[test]
    fn a_network_of_switches_names_arrivals_at_once() {
        let engine = Engine::new();
        let (transport, notified) = transport(&engine, NetworkKind::of(CrossbarShape));
        assert_eq!(transport.launch((0, 3), 400, 7), Some(Instant::from_ns(2_020)));
        let own = engine.clone();
        let carry = async move {
            transport.carry(1, 2, 400).await;
            assert_eq!(own.now(), Instant::from_ns(2_020));
        };
        engine.run(carry).unwrap();
        assert!(notified.1.borrow().is_empty());
        assert_eq!(engine.events(), 1, "one timer for one message");
    }
}
