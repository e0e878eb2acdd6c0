//! Work of a client that runs to its end, even if its caller gives it up.

use crate::client::state::Client;
use crate::signal::Signal;
use std::cell::RefCell;
use std::rc::Rc;
use world::World;

/// Runs `work` in the scope of a client, and waits for its result. Dropping the wait does not end
/// the work, if it has begun. It begins when the wait is first polled.
pub(super) async fn run_to_its_end<W: World, R: 'static>(
    client: &Client<W>,
    work: impl Future<Output = R> + 'static,
) -> R {
    let ended = Rc::new((RefCell::new(None), Signal::default()));
    let shared = Rc::clone(&ended);
    client.0.spawn(async move {
        let result = work.await;
        *shared.0.borrow_mut() = Some(result);
        shared.1.notify();
        Ok(())
    });
    ended.1.until(|| ended.0.borrow_mut().take()).await
}
