//! What a program began and will ask for later.

use super::connection::Library;
use filesystem::Fault;
use interface::UserError;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A read, write or flush under way. It goes on whenever the program is in a call of the library,
/// also when this is dropped.
pub struct Operation<T> {
    library: Library,
    what: String,
    state: Rc<RefCell<State<T>>>,
}

struct State<T> {
    outcome: Option<Result<T, Fault>>,
    waiting: Option<Waker>,
}

impl<T: 'static> Operation<T> {
    /// Begins `work`; a fault is one of doing `what`.
    pub(super) fn begin(
        library: &Library,
        what: String,
        work: impl Future<Output = Result<T, Fault>> + 'static,
    ) -> Self {
        let state = Rc::new(RefCell::new(State { outcome: None, waiting: None }));
        let shared = Rc::clone(&state);
        let work = async move {
            let outcome = work.await;
            let mut state = shared.borrow_mut();
            state.outcome = Some(outcome);
            let waiting = state.waiting.take();
            drop(state);
            if let Some(waker) = waiting {
                waker.wake();
            }
            Ok(())
        };
        // It must be sent before this returns, as far as there is room for it.
        library.0.event_loop.run(async { library.0.operations.spawn(work) });
        library.progress();
        Self { library: library.clone(), what, state }
    }

    /// Lets it go on without waiting; true once it has ended.
    pub fn test(&self) -> bool {
        let has_ended = || self.state.borrow().outcome.is_some();
        if !has_ended() {
            self.library.progress();
        }
        has_ended()
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// What servers met.
    pub fn wait(self) -> Result<T, UserError> {
        let ended = self.library.0.event_loop.run(poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            match state.outcome.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }));
        ended.map_err(|fault| UserError::of_fault(&self.what, &fault))
    }
}
