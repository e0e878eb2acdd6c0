//! Keys of clients that have departed.

use std::cell::RefCell;
use std::collections::VecDeque;
use wire::ClientKey;

/// Maximum number of keys that are kept.
const KEYS_MAX: usize = 4096;

/// The latest keys of clients that have departed. A key is random and never used again.
#[derive(Default)]
pub(crate) struct DepartedKeys(RefCell<VecDeque<ClientKey>>);

impl DepartedKeys {
    pub(crate) fn add(&self, key: ClientKey) {
        let mut keys = self.0.borrow_mut();
        if keys.len() >= KEYS_MAX {
            keys.pop_front();
        }
        keys.push_back(key);
    }

    pub(crate) fn contains(&self, key: ClientKey) -> bool {
        self.0.borrow().contains(&key)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the latest keys are kept, and no more.
    use super::*;

    #[test]
    fn the_latest_keys_are_kept() {
        let departed = DepartedKeys::default();
        (0..=KEYS_MAX as u64).for_each(|key| departed.add(ClientKey(key)));
        assert!(!departed.contains(ClientKey(0)));
        assert!((1..=KEYS_MAX as u64).all(|key| departed.contains(ClientKey(key))));
        assert_eq!(departed.0.borrow().len(), KEYS_MAX);
    }
}
