//! Cases for the clock.

use super::Fixture;
use super::support::{Log, abandon, list_cases};
use crate::Clock;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use units::{Duration, Instant};

list_cases![
    now_never_runs_backwards,
    a_sleep_lasts_until_its_deadline,
    a_past_deadline_returns,
    sleeps_end_in_the_order_of_their_deadlines,
    an_abandoned_sleep_holds_nobody_up,
    nodes_share_one_time,
];

fn now_never_runs_backwards<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let mut last = world.now();
        for step in 0..200 {
            if step % 50 == 0 {
                world.sleep(Duration::from_us(100)).await;
            }
            let now = world.now();
            assert!(now >= last, "the clock ran back from {last:?} to {now:?}");
            last = now;
        }
    });
}

fn a_sleep_lasts_until_its_deadline<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        for length in [0, 1, 999, 1_000_000, 1_500_001].map(Duration::from_ns) {
            let deadline = world.now() + length;
            world.sleep_until(deadline).await;
            let now = world.now();
            assert!(now >= deadline, "a sleep until {deadline:?} ended at {now:?}");
        }
    });
}

fn a_past_deadline_returns<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        world.sleep(Duration::from_ms(1)).await;
        world.sleep_until(Instant::START).await;
        world.sleep_until(world.now()).await;
        world.sleep(Duration::ZERO).await;
    });
}

fn sleeps_end_in_the_order_of_their_deadlines<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let order = Log::default();
        // Late enough that all sleeps have begun, however slow the machine.
        let start = world.now() + Duration::from_ms(200);
        let sleeps = [3_u64, 1, 2].map(|rank| {
            let (world, order) = (world.clone(), order.clone());
            async move {
                world.sleep_until(start + Duration::from_ms(2 * rank)).await;
                order.push(rank);
            }
        });
        // Each future is polled only when it is woken. Joined, all would be polled, and a slow
        // machine might find several of them complete.
        let sleeps: FuturesUnordered<_> = sleeps.into_iter().collect();
        sleeps.collect::<()>().await;
        assert_eq!(order.take(), [1, 2, 3], "sleeps must end in the order of their deadlines");
    });
}

fn an_abandoned_sleep_holds_nobody_up<F: Fixture>(fixture: &mut F) {
    const YEAR: Duration = Duration::from_ms(365 * 24 * 3600 * 1000);
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        assert!(!abandon(world.sleep(YEAR)).await, "a sleep of a year must not be over");
        let long = world.sleep(YEAR);
        let short = Box::pin(world.sleep(Duration::from_us(1)));
        let first = select(Box::pin(long), short).await;
        assert!(matches!(first, Either::Right(_)), "the shorter of two sleeps must end first");
    });
}

fn nodes_share_one_time<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let mut last = worlds[0].now();
        for step in 0..6 {
            let world = &worlds[step % 2];
            let now = world.now();
            assert!(now >= last, "node {} is behind: {now:?} < {last:?}", step % 2);
            world.sleep(Duration::from_us(100)).await;
            last = world.now();
        }
    });
}
