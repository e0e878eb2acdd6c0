//! Cases for the processor. Durations are up to the world and are not asserted.

use super::Fixture;
use super::support::{abandon, list_cases};
use crate::Processor;
use futures_util::future::join_all;
use units::Duration;

list_cases![
    a_computation_ends,
    an_abandoned_computation_frees_the_processor,
    the_time_that_was_used_never_decreases
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
