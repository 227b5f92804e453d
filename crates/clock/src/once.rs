//! Values of a process that are computed once, without any thread waiting for another.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value for a `static`, set for all threads by the first that makes it. With `OnceLock` the others wait until the
/// first is done: a process forked at that moment lacks that thread, and hangs. Here threads that arrive meanwhile
/// make a value too, and take the first thread's.
///
/// ```
/// static ANSWER: tickpath_clock::SetOnce<u32> = tickpath_clock::SetOnce::new();
/// assert_eq!(ANSWER.get(), None);
/// assert_eq!(ANSWER.get_or_init(|| 42), &42);
/// assert_eq!(ANSWER.get_or_init(|| 43), &42);
/// ```
pub struct SetOnce<T: Send + Sync + 'static> {
    value: AtomicPtr<T>,
}

impl<T: Send + Sync + 'static> SetOnce<T> {
    /// Makes a cell without a value.
    pub const fn new() -> Self {
        Self { value: AtomicPtr::new(null_mut()) }
    }

    /// Returns the value, if there is one by now.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: it is null, or leaked by `get_or_init`, and never changed or freed. Pairs with the release there.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the value; if there is none, makes and sets it, unless another thread is faster.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(found) = self.get() {
            return found;
        }
        let made = Box::into_raw(Box::new(make()));
        let first = match self.value.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: it came from a box just now, and no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: a value of a box, because only null is replaced; from here on it is never changed or freed.
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
    fn threads_that_race_get_one_value() {
        static VALUE: SetOnce<usize> = SetOnce::new();
        let start = Barrier::new(8);
        let found: Vec<&usize> = std::thread::scope(|scope| {
            let set = |number: usize| {
                start.wait();
                VALUE.get_or_init(|| number)
            };
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || set(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|each| std::ptr::eq(*each, found[0])), "{found:?}");
        assert_eq!(VALUE.get(), Some(found[0]));
    }
}
