//! Cases for tasks: their start, and their end when the handle is dropped.

use super::Fixture;
use super::support::{Guard, Log, Signal, eventually, list_cases, turn, wait_for_next_poll};
use crate::Tasks;
use std::cell::RefCell;
use std::rc::Rc;

list_cases![
    the_first_poll_is_after_the_present_one,
    dropping_a_waiting_task_drops_its_future,
    dropping_an_unstarted_task_runs_no_line,
    dropping_a_woken_task_runs_no_further_line,
    dropping_an_ended_task_does_nothing,
    a_task_can_drop_its_own_handle,
    a_task_can_drop_another,
    a_destructor_can_spawn,
    many_tasks_end,
    a_dropped_task_is_gone_with_its_world,
];

fn the_first_poll_is_after_the_present_one<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (started, inner_started) = (Signal::default(), Signal::default());
        let (outer, inner) = (started.clone(), inner_started.clone());
        let inside = world.clone();
        let _task = world.spawn(async move {
            let signal = inner.clone();
            let _task = inside.spawn(async move { signal.set() });
            assert!(!inner.is_set(), "a task of a task must not run inside spawn");
            outer.set();
            inner.wait().await;
        });
        assert!(!started.is_set(), "a task must not run inside spawn");
        started.wait().await;
        inner_started.wait().await;
    });
}

fn dropping_a_waiting_task_drops_its_future<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (started, go, ran_on, dropped) = <(Signal, Signal, Signal, Signal)>::default();
        let seen = (started.clone(), go.clone(), ran_on.clone(), Guard(dropped.clone()));
        let task = world.spawn(async move {
            let (started, go, ran_on, _guard) = seen;
            started.set();
            go.wait().await;
            ran_on.set();
        });
        started.wait().await;
        assert!(!dropped.is_set(), "a waiting task must keep what it owns");
        drop(task);
        eventually(world, "the future of a dropped task is dropped", || dropped.is_set()).await;
        go.set();
        turn(world).await;
        assert!(!ran_on.is_set(), "a cancelled task must run no further line");
    });
}

fn dropping_an_unstarted_task_runs_no_line<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (started, dropped) = <(Signal, Signal)>::default();
        let (start, guard) = (started.clone(), Guard(dropped.clone()));
        drop(world.spawn(async move {
            let _guard = guard;
            start.set();
        }));
        eventually(world, "what a cancelled task captured is dropped", || dropped.is_set()).await;
        turn(world).await;
        assert!(!started.is_set(), "a task that is cancelled before its start must not start");
    });
}

fn dropping_a_woken_task_runs_no_further_line<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (started, go, ran_on, dropped) = <(Signal, Signal, Signal, Signal)>::default();
        let seen = (started.clone(), go.clone(), ran_on.clone(), Guard(dropped.clone()));
        let task = world.spawn(async move {
            let (started, go, ran_on, _guard) = seen;
            started.set();
            go.wait().await;
            ran_on.set();
        });
        started.wait().await;
        go.set();
        drop(task);
        eventually(world, "the future of a dropped task is dropped", || dropped.is_set()).await;
        assert!(!ran_on.is_set(), "a task that is woken and then cancelled must not run");
    });
}

fn dropping_an_ended_task_does_nothing<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (ended, other_ended) = <(Signal, Signal)>::default();
        let guard = Guard(ended.clone());
        let task = world.spawn(async move { drop(guard) });
        ended.wait().await;
        turn(world).await;
        let guard = Guard(other_ended.clone());
        let _other = world.spawn(async move { drop(guard) });
        drop(task);
        other_ended.wait().await;
    });
}

fn a_task_can_drop_its_own_handle<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (line_after, line_after_await, dropped) = <(Signal, Signal, Signal)>::default();
        let handle = Rc::new(RefCell::new(None));
        let own = Rc::clone(&handle);
        let seen = (line_after.clone(), line_after_await.clone(), Guard(dropped.clone()));
        *handle.borrow_mut() = Some(world.spawn(async move {
            let (line_after, line_after_await, _guard) = seen;
            drop(own.borrow_mut().take());
            line_after.set();
            wait_for_next_poll().await;
            line_after_await.set();
        }));
        line_after.wait().await;
        eventually(world, "a task that drops its handle ends", || dropped.is_set()).await;
        turn(world).await;
        assert!(!line_after_await.is_set(), "it must end with its present poll");
    });
}

fn a_task_can_drop_another<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (never, dropped, done) = <(Signal, Signal, Signal)>::default();
        let guard = Guard(dropped.clone());
        let victim = world.spawn(async move {
            let _guard = guard;
            never.wait().await;
        });
        let end = done.clone();
        let _killer = world.spawn(async move {
            drop(victim);
            end.set();
        });
        done.wait().await;
        eventually(world, "the victim is dropped", || dropped.is_set()).await;
    });
}

/// Spawns a task when it is dropped.
struct SpawnOnDrop<W: Tasks> {
    world: W,
    task: Rc<RefCell<Option<W::Task>>>,
    ran: Signal,
}

impl<W: Tasks> Drop for SpawnOnDrop<W> {
    fn drop(&mut self) {
        let ran = self.ran.clone();
        *self.task.borrow_mut() = Some(self.world.spawn(async move { ran.set() }));
    }
}

fn a_destructor_can_spawn<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (never, ran) = <(Signal, Signal)>::default();
        let task = Rc::new(RefCell::new(None));
        let guard = SpawnOnDrop { world: world.clone(), task: task.clone(), ran: ran.clone() };
        let victim = world.spawn(async move {
            let _guard = guard;
            never.wait().await;
        });
        turn(world).await;
        drop(victim);
        ran.wait().await;
        drop(task.take());
    });
}

fn many_tasks_end<F: Fixture>(fixture: &mut F) {
    const TASKS: usize = 2_000;
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let ended = Log::default();
        let all_ended = Signal::default();
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (ended, all_ended, clock) = (ended.clone(), all_ended.clone(), world.clone());
                world.spawn(async move {
                    turn(&clock).await;
                    ended.push(());
                    if ended.length() == TASKS {
                        all_ended.set();
                    }
                })
            })
            .collect();
        all_ended.wait().await;
        drop(tasks);
    });
}

fn a_dropped_task_is_gone_with_its_world<F: Fixture>(fixture: &mut F) {
    let dropped = Signal::default();
    let seen = dropped.clone();
    fixture.run(1, |worlds| async move {
        let world = worlds[0].clone();
        let (never, started) = <(Signal, Signal)>::default();
        let (start, guard) = (started.clone(), Guard(seen));
        let task = world.spawn(async move {
            let _guard = guard;
            start.set();
            never.wait().await;
        });
        started.wait().await;
        drop(task);
    });
    assert!(dropped.is_set(), "a dropped task must be gone when its world is");
}
