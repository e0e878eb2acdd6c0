//! Cases for the processor. Durations are up to the world and are not asserted.

use super::Fixture;
use super::support::{Signal, abandon, list_cases, turn};
use crate::{JobFailed, Processor, Tasks};
use futures_util::future::{join, join_all};
use std::sync::{Arc, Mutex, PoisonError};
use units::Duration;

list_cases![
    a_computation_ends,
    an_abandoned_computation_frees_the_processor,
    the_time_that_was_used_never_decreases,
    jobs_are_executed_once_each,
    tasks_go_on_while_a_job_is_executed,
    a_job_that_panics_ends_itself_only,
    an_abandoned_job_stops_no_other,
];

fn a_computation_ends<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        world.compute(Duration::ZERO).await;
        world.compute(Duration::from_us(100)).await;
        join_all((0..100).map(|us| world.compute(Duration::from_us(us)))).await;
    });
}

fn an_abandoned_computation_frees_the_processor<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let running = world.compute(Duration::from_us(100));
        let queued = world.compute(Duration::from_us(100));
        abandon(running).await;
        abandon(queued).await;
        world.compute(Duration::from_us(100)).await;
    });
}

fn the_time_that_was_used_never_decreases<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let mut earlier = world.used();
        for us in 0..100 {
            world.compute(Duration::from_us(us)).await;
            let now = world.used();
            assert!(now.all >= earlier.all && now.system >= earlier.system, "{now:?} {earlier:?}");
            assert!(now.system <= now.all, "{now:?}");
            earlier = now;
        }
        assert!(earlier.all > Duration::ZERO, "work takes time, in every world");
    });
}

fn jobs_are_executed_once_each<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let executed = Arc::new(Mutex::new(Vec::new()));
        let jobs = (0..600_u64).map(|number| {
            let executed = Arc::clone(&executed);
            world.compute_apart(Duration::from_us(1), move || {
                executed.lock().unwrap_or_else(PoisonError::into_inner).push(number);
                number * number
            })
        });
        let results = join_all(jobs).await;
        assert!(results.into_iter().eq((0..600).map(|number| Ok(number * number))));
        let mut executed = executed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        executed.sort_unstable();
        assert!(executed.into_iter().eq(0..600), "each job is executed once");
    });
}

fn tasks_go_on_while_a_job_is_executed<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let ran = Signal::default();
        let (seen, inside) = (ran.clone(), world.clone());
        // Of more turns than a poll has.
        let _task = world.spawn(async move {
            for _ in 0..10 {
                turn(&inside).await;
            }
            seen.set();
        });
        let job = world.compute_apart(Duration::from_us(100), || 7);
        let (job, ()) = join(job, ran.wait()).await;
        assert_eq!(job, Ok(7));
    });
}

fn a_job_that_panics_ends_itself_only<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let cost = Duration::from_us(1);
        let panics = world.compute_apart(cost, || panic!("on purpose, which is no failure"));
        let other = world.compute_apart(cost, || 7);
        let (panicked, other): (Result<(), JobFailed>, _) = join(panics, other).await;
        assert!(panicked.is_err(), "a job that panics has no result");
        assert_eq!(other, Ok(7));
        assert_eq!(world.compute_apart(cost, || 8).await, Ok(8));
    });
}

fn an_abandoned_job_stops_no_other<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let cost = Duration::from_us(100);
        abandon(world.compute_apart(cost, || ())).await;
        drop(world.compute_apart(cost, || ()));
        assert_eq!(world.compute_apart(cost, || 9).await, Ok(9));
    });
}
