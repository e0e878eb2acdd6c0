//! Parallel map over items whose calls may block for long.

use std::sync::{Mutex, PoisonError};

/// Maximum number of threads.
const THREADS_MAX: usize = 64;

/// Calls `act` for each item on several threads. Returns the results in the order of the items.
pub fn for_each_at_once<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(items.iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..items.len().min(THREADS_MAX) {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = taken else { return };
                    let result = act(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: results come in the order of the items, of more items than threads too.
    use super::*;

    #[test]
    fn results_are_in_order() {
        let items: Vec<u32> = (0..200).collect();
        let doubled: Vec<u32> = items.iter().map(|item| 2 * item).collect();
        assert_eq!(for_each_at_once(&items, |item| 2 * item), doubled);
        assert_eq!(for_each_at_once(&[] as &[u32], |item| *item), [0; 0]);
    }
}
