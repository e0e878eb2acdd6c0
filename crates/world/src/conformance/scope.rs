//! Cases for scopes: tasks end together, the first failure is reported, nothing outlives its scope.

use super::Fixture;
use super::support::{Guard, Log, Signal, eventually, list_cases, turn};
use crate::{Scope, Tasks, World};
use std::future::Future;
use std::rc::{Rc, Weak};

list_cases![
    an_empty_scope_is_finished,
    finished_waits_for_every_task,
    a_failure_cancels_the_siblings_before_it_is_reported,
    the_first_failure_is_reported_once,
    nothing_starts_after_a_failure,
    a_task_spawns_in_its_own_scope,
    dropping_a_scope_cancels_its_tasks,
    dropping_a_scope_cancels_nested_scopes,
    a_failure_passes_through_nested_scopes,
    a_cancelled_scope_can_be_used_again,
    cancelling_wakes_who_waits,
    a_task_can_cancel_its_own_scope,
    a_destructor_can_use_the_scope,
];

type Failure = &'static str;

/// Observable progress of a task: that it started, continued after `go`, and was dropped.
#[derive(Clone, Default)]
struct Trace {
    started: Signal,
    go: Signal,
    ran_on: Signal,
    gone: Signal,
}

impl Trace {
    /// Returns a task that waits for `go` and then succeeds.
    fn task(&self) -> impl Future<Output = Result<(), Failure>> + 'static {
        let (trace, guard) = (self.clone(), Guard(self.gone.clone()));
        async move {
            let _guard = guard;
            trace.started.set();
            trace.go.wait().await;
            trace.ran_on.set();
            Ok(())
        }
    }

    /// Panics unless the task was cancelled and does not continue.
    async fn expect_cancelled<W: World>(&self, world: &W) {
        eventually(world, "a cancelled task is dropped", || self.gone.is_set()).await;
        self.go.set();
        turn(world).await;
        assert!(!self.ran_on.is_set(), "a cancelled task must run no further line");
    }
}

fn an_empty_scope_is_finished<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let scope = Scope::<_, Failure>::new(worlds[0].clone());
        assert_eq!(scope.finished().await, Ok(()));
        assert_eq!(scope.running(), 0);
    });
}

fn finished_waits_for_every_task<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let scope = Scope::<_, Failure>::new(world.clone());
        let ended = Log::default();
        for index in 0..5 {
            let (ended, clock) = (ended.clone(), world.clone());
            scope.spawn(async move {
                for _ in 0..index {
                    turn(&clock).await;
                }
                ended.push(index);
                Ok(())
            });
        }
        assert_eq!(scope.running(), 5, "a task runs until it ends");
        assert_eq!(scope.finished().await, Ok(()));
        assert_eq!(ended.take().len(), 5, "every task must end before the scope is finished");
        assert_eq!(scope.running(), 0);
    });
}

fn a_failure_cancels_the_siblings_before_it_is_reported<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let scope = Scope::new(world.clone());
        let (waiting, woken) = <(Trace, Trace)>::default();
        scope.spawn(waiting.task());
        scope.spawn(woken.task());
        waiting.started.wait().await;
        woken.started.wait().await;
        let go = woken.go.clone();
        scope.spawn(async move {
            // The sibling is ready to run when it is cancelled, and must not.
            go.set();
            Err("out of luck")
        });
        assert_eq!(scope.finished().await, Err("out of luck"));
        assert_eq!(scope.running(), 0, "siblings must be cancelled before the report");
        waiting.expect_cancelled(world).await;
        woken.expect_cancelled(world).await;
    });
}

fn the_first_failure_is_reported_once<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let scope = Scope::new(world.clone());
        let failing = Trace::default();
        let started = failing.started.clone();
        scope.spawn(async move {
            started.set();
            Err("first")
        });
        failing.started.wait().await;
        scope.spawn(async { Err("second") });
        turn(world).await;
        assert_eq!(scope.finished().await, Err("first"));
        assert_eq!(scope.finished().await, Ok(()));
    });
}

fn nothing_starts_after_a_failure<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let scope = Scope::new(world.clone());
        scope.spawn(async { Err("over") });
        assert_eq!(scope.finished().await, Err("over"));
        let late = Trace::default();
        scope.spawn(late.task());
        turn(world).await;
        assert!(!late.started.is_set(), "nothing must start in a scope that failed");
        assert_eq!(scope.running(), 0);
    });
}

fn a_task_spawns_in_its_own_scope<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let scope = Rc::new(Scope::<_, Failure>::new(world.clone()));
        let ended = Log::default();
        spawn_chain(&scope, world.clone(), ended.clone(), 10);
        assert_eq!(scope.finished().await, Ok(()));
        assert_eq!(ended.take(), Vec::from_iter((0..=10).rev()), "each task starts the next");
    });
}

/// Runs a task that starts the next one in its scope, `left` times.
fn spawn_chain<W: World>(scope: &Rc<Scope<W, Failure>>, world: W, ended: Log<u32>, left: u32) {
    let own = Rc::clone(scope);
    scope.spawn(async move {
        turn(&world).await;
        ended.push(left);
        if left > 0 {
            spawn_chain(&own, world, ended, left - 1);
        }
        Ok(())
    });
}

fn dropping_a_scope_cancels_its_tasks<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let traces = [Trace::default(), Trace::default(), Trace::default()];
        let scope = Scope::new(world.clone());
        for trace in &traces[..2] {
            scope.spawn(trace.task());
            trace.started.wait().await;
        }
        scope.spawn(traces[2].task());
        drop(scope);
        for trace in &traces {
            trace.expect_cancelled(world).await;
        }
        assert!(!traces[2].started.is_set(), "a task that never started must not start now");
    });
}

/// Runs a task with a scope of its own, in which `trace` runs.
async fn nest<W: World>(world: W, trace: Trace) -> Result<(), Failure> {
    let inner = Scope::new(world);
    inner.spawn(trace.task());
    inner.finished().await
}

fn dropping_a_scope_cancels_nested_scopes<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let trace = Trace::default();
        let outer = Scope::new(world.clone());
        outer.spawn(nest(world.clone(), trace.clone()));
        trace.started.wait().await;
        drop(outer);
        trace.expect_cancelled(world).await;
    });
}

fn a_failure_passes_through_nested_scopes<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (cousin, sibling) = <(Trace, Trace)>::default();
        let outer = Scope::new(world.clone());
        outer.spawn(nest(world.clone(), cousin.clone()));
        outer.spawn(sibling.task());
        cousin.started.wait().await;
        sibling.started.wait().await;
        let nested = world.clone();
        outer.spawn(async move {
            let inner = Scope::new(nested);
            inner.spawn(async { Err("deep down") });
            inner.finished().await
        });
        assert_eq!(outer.finished().await, Err("deep down"));
        cousin.expect_cancelled(world).await;
        sibling.expect_cancelled(world).await;
    });
}

fn a_cancelled_scope_can_be_used_again<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (before, after) = <(Trace, Trace)>::default();
        let scope = Scope::new(world.clone());
        scope.spawn(before.task());
        before.started.wait().await;
        scope.cancel();
        before.expect_cancelled(world).await;
        scope.spawn(after.task());
        after.go.set();
        assert_eq!(scope.finished().await, Ok(()));
        assert!(after.ran_on.is_set(), "a task spawned after a cancel must run");
    });
}

fn cancelling_wakes_who_waits<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let trace = Trace::default();
        let scope = Rc::new(Scope::new(world.clone()));
        scope.spawn(trace.task());
        let (canceller, started) = (Rc::clone(&scope), trace.started.clone());
        let _task = world.spawn(async move {
            started.wait().await;
            canceller.cancel();
        });
        assert_eq!(scope.finished().await, Ok(()));
        trace.expect_cancelled(world).await;
    });
}

fn a_task_can_cancel_its_own_scope<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let (sibling, own) = <(Trace, Trace)>::default();
        let scope = Rc::new(Scope::new(world.clone()));
        scope.spawn(sibling.task());
        sibling.started.wait().await;
        let (canceller, rest) = (Rc::downgrade(&scope), own.task());
        scope.spawn(async move {
            if let Some(scope) = canceller.upgrade() {
                scope.cancel();
            }
            rest.await
        });
        assert_eq!(scope.finished().await, Ok(()));
        sibling.expect_cancelled(world).await;
        own.expect_cancelled(world).await;
    });
}

/// Uses its scope when it is dropped.
struct UseOnDrop<W: World> {
    scope: Weak<Scope<W, Failure>>,
    used: Signal,
}

impl<W: World> Drop for UseOnDrop<W> {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.upgrade() {
            scope.spawn(async { Ok(()) });
            assert!(scope.running() < 3, "a cancelled task must not count as running");
            self.used.set();
        }
    }
}

fn a_destructor_can_use_the_scope<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let trace = Trace::default();
        let scope = Rc::new(Scope::new(world.clone()));
        let used = Signal::default();
        let guard = UseOnDrop { scope: Rc::downgrade(&scope), used: used.clone() };
        let task = trace.task();
        scope.spawn(async move {
            let _guard = guard;
            task.await
        });
        trace.started.wait().await;
        scope.cancel();
        trace.expect_cancelled(world).await;
        assert!(used.is_set(), "the scope must still be there for destructors");
        assert_eq!(scope.finished().await, Ok(()));
    });
}
