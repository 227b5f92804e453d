//! Values of a process that are found out once, behind which nobody waits.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value for a `static`, which whoever comes first sets for all. `OnceLock` has the others wait until the first is done:
/// a process that is forked at that moment has nobody who comes back, and hangs at its first look. Here who comes meanwhile
/// makes a value too, and takes the first one's.
///
/// ```
/// static ANSWER: tickpath_clock::SetOnce<u32> = tickpath_clock::SetOnce::new();
/// assert_eq!(ANSWER.get(), None);
/// assert_eq!(ANSWER.get_or_make(|| 42), &42);
/// assert_eq!(ANSWER.get_or_make(|| 43), &42);
/// ```
pub struct SetOnce<T: Send + Sync + 'static> {
    value: AtomicPtr<T>,
}

impl<T: Send + Sync + 'static> SetOnce<T> {
    /// Without a value.
    pub const fn new() -> Self {
        Self { value: AtomicPtr::new(null_mut()) }
    }

    /// The value, if there is one by now.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: it is null, or what `get_or_make` has leaked: nobody changes or frees it. Pairs with the release there.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value, or the one that this makes, unless somebody else was faster.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(found) = self.get() {
            return found;
        }
        let made = Box::into_raw(Box::new(make()));
        let first = match self.value.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: it came from a box just now, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: a value of a box, for only null is replaced; from here on nobody changes or frees it.
        unsafe { &*first }
    }
}

impl<T: Send + Sync + 'static> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn all_who_come_at_once_get_one_value() {
        static VALUE: SetOnce<usize> = SetOnce::new();
        let start = Barrier::new(8);
        let found: Vec<&usize> = std::thread::scope(|scope| {
            let come = |number: usize| {
                start.wait();
                VALUE.get_or_make(|| number)
            };
            let comers: Vec<_> = (0..8).map(|number| scope.spawn(move || come(number))).collect();
            comers.into_iter().map(|comer| comer.join().unwrap()).collect()
        });
        assert!(found.iter().all(|each| std::ptr::eq(*each, found[0])), "{found:?}");
        assert_eq!(VALUE.get(), Some(found[0]));
    }
}
