//! A table of values with reusable places, of which the first needs no allocation.
//!
//! A large machine has millions of scopes, and most of them never have more than one task at a
//! time. Those allocate nothing and touch no other memory.
//!
//! Invariant: `next` leads through all free places, from the one that became free last to the one
//! behind the last place. So places are assigned in the same order as those of a slab.

/// Values by their places.
pub(crate) struct Places<T> {
    count: u32,
    next: u32,
    first: Place<T>,
    others: Vec<Place<T>>,
}

enum Place<T> {
    Free { next: u32 },
    Taken(T),
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { count: 0, next: 0, first: Place::Free { next: 1 }, others: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Number of values.
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the place of the value that is inserted next.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let place = self.next;
        match self.at(place) {
            Some(free) => match std::mem::replace(free, Place::Taken(value)) {
                Place::Free { next } => self.next = next,
                Place::Taken(_) => unreachable!("the next place is free"),
            },
            None => {
                self.others.push(Place::Taken(value));
                self.next += 1;
            }
        }
        self.count += 1;
        place
    }

    /// Removes the value at `place`, if there is one and `wanted` accepts it.
    pub(crate) fn remove_if(&mut self, place: u32, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let next = self.next;
        let found = self.at(place)?;
        match found {
            Place::Taken(value) if wanted(value) => {}
            Place::Taken(_) | Place::Free { .. } => return None,
        }
        let removed = std::mem::replace(found, Place::Free { next });
        (self.next, self.count) = (place, self.count - 1);
        match removed {
            Place::Taken(value) => Some(value),
            Place::Free { .. } => None,
        }
    }

    fn at(&mut self, place: u32) -> Option<&mut Place<T>> {
        match place.checked_sub(1) {
            None => Some(&mut self.first),
            Some(other) => self.others.get_mut(other as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a value is found at its place and nowhere else, and the place that became free last
    //! is reused first.
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut places = Places::default();
        assert_eq!([(); 4].map(|()| places.insert(places.next())), [0, 1, 2, 3]);
        assert_eq!(places.remove_if(2, |value| *value == 1), None);
        for place in [0, 3, 1] {
            assert_eq!(places.remove_if(place, |_| true), Some(place));
            assert_eq!(places.remove_if(place, |_| true), None);
        }
        assert_eq!(places.count(), 1);
        assert_eq!([(); 5].map(|()| places.insert(9)), [1, 3, 0, 4, 5]);
        assert_eq!(places.count(), 6);
        assert_eq!(places.remove_if(6, |_| true), None);
    }
}
