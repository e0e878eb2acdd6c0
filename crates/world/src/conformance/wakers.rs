//! Cases for wakers: they can be cloned, stored, passed between tasks and nodes, and used late.

use super::Fixture;
use super::support::{Guard, Log, Signal, abandon, eventually, list_cases, turn};
use crate::{Clock, Tasks};
use futures_util::future::{Either, join, join_all, poll_fn, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};
use units::Duration;

list_cases![
    a_waker_wakes_from_another_task,
    a_waker_wakes_from_another_node,
    waking_oneself_makes_progress,
    join_and_select_work,
    unordered_futures_work,
    a_waker_outlives_its_task,
    waking_twice_is_waking_once,
    yielding_tasks_do_not_starve_others,
];

fn a_waker_wakes_from_another_task<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (ping, pong) = <(Signal, Signal)>::default();
        let (hear, answer) = (ping.wait(), pong.clone());
        let _task = world.spawn(async move {
            hear.await;
            answer.set();
        });
        turn(world).await;
        ping.set();
        pong.wait().await;
    });
}

fn a_waker_wakes_from_another_node<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (ping, pong) = <(Signal, Signal)>::default();
        let (hear, answer) = (ping.wait(), pong.clone());
        let _hearer = worlds[0].spawn(async move {
            hear.await;
            answer.set();
        });
        let _caller = worlds[1].spawn(async move { ping.set() });
        pong.wait().await;
    });
}

fn waking_oneself_makes_progress<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |_worlds| async move {
        let mut left = 1000;
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    });
}

fn join_and_select_work<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (never, soon) = <(Signal, Signal)>::default();
        let setting = async {
            turn(world).await;
            soon.set();
        };
        let choosing = select(never.wait(), soon.wait());
        let ((), chosen) = join(setting, choosing).await;
        assert!(matches!(chosen, Either::Right(_)), "select must return what is ready");

        let signals: Vec<Signal> = (0..50).map(|_| Signal::default()).collect();
        let waiting = join_all(signals.iter().map(Signal::wait));
        let setting = async {
            for signal in signals.iter().rev() {
                turn(world).await;
                signal.set();
            }
        };
        join(waiting, setting).await;
    });
}

fn unordered_futures_work<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let start = world.now();
        let mut ends: FuturesUnordered<_> = [4_u64, 2, 6]
            .into_iter()
            .map(|ms| {
                let sleep = world.sleep_until(start + Duration::from_ms(ms));
                async move {
                    sleep.await;
                    ms
                }
            })
            .collect();
        let order = Log::default();
        while let Some(ms) = ends.next().await {
            order.push(ms);
        }
        assert_eq!(order.take(), [2, 4, 6], "each future is woken by its own event");
    });
}

fn a_waker_outlives_its_task<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let kept: Rc<RefCell<Option<Waker>>> = Rc::default();
        let (gone, store) = (Signal::default(), Rc::clone(&kept));
        let guard = Guard(gone.clone());
        let task = world.spawn(async move {
            let _guard = guard;
            poll_fn(|context| {
                *store.borrow_mut() = Some(context.waker().clone());
                Poll::<()>::Pending
            })
            .await;
        });
        eventually(world, "the task runs", || kept.borrow().is_some()).await;
        drop(task);
        eventually(world, "the task is dropped", || gone.is_set()).await;

        // The next task may reuse the place of the last one; the old waker must not disturb it.
        let polls = Log::default();
        let count = polls.clone();
        let _next = world.spawn(poll_fn(move |_context| {
            count.push(());
            Poll::Pending
        }));
        turn(world).await;
        let waker = kept.take().expect("the task stored its waker");
        let copy = waker.clone();
        waker.wake_by_ref();
        waker.wake();
        copy.wake();
        turn(world).await;
        assert_eq!(polls.take().len(), 1, "a waker must not wake another task than its own");
    });
}

fn waking_twice_is_waking_once<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (go, done) = <(Signal, Signal)>::default();
        let (hear, end) = (go.clone(), done.clone());
        let _task = world.spawn(async move {
            // Two waits in one task leave two wakers behind; both are used at once.
            let waits = hear.wait();
            abandon(hear.wait()).await;
            waits.await;
            end.set();
        });
        turn(world).await;
        go.set();
        go.set();
        done.wait().await;
    });
}

fn yielding_tasks_do_not_starve_others<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let done = Signal::default();
        let busy: Vec<_> = (0..2)
            .map(|_| {
                let done = done.clone();
                world.spawn(poll_fn(move |context| {
                    if done.is_set() {
                        return Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                }))
            })
            .collect();
        let end = done.clone();
        let _patient = world.spawn(async move { end.set() });
        done.wait().await;
        drop(busy);
    });
}
