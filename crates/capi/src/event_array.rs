//! C's array for the events of a session.

use std::ptr::null_mut;

use crate::argument::check_pointer;
use crate::config::check_size;
use crate::report::{EVENT_FIRST_BYTES, tp_order_event};
use crate::status::CallFailure;

/// Max events handed over by one call.
const MAX_EVENTS: usize = 1 << 16;

/// An array of events, whose first element gives the size of each.
pub struct EventArray {
    first: *mut u8,
    /// Size of each event in bytes.
    stride: usize,
    /// Number of events that fit.
    pub capacity: usize,
}

impl EventArray {
    /// Wraps an array of `capacity` events.
    ///
    /// # Safety
    /// `events` is null, or valid for `capacity` structs of the size that the first one states; they are not used by
    /// others while this value lives.
    pub unsafe fn of(events: *mut tp_order_event, capacity: usize) -> Result<Self, CallFailure> {
        if capacity == 0 {
            return Ok(Self { first: null_mut(), stride: 0, capacity });
        }
        check_pointer("events", events)?;
        // SAFETY: the first event begins with its size, as the caller guarantees.
        let stride = unsafe { events.cast::<usize>().read_unaligned() };
        check_size("tp_order_event", stride, EVENT_FIRST_BYTES, size_of::<tp_order_event>())?;
        Ok(Self { first: events.cast(), stride, capacity: capacity.min(MAX_EVENTS) })
    }

    /// Writes an event at this index, up to the size that C knows.
    pub fn put(&self, number: usize, event: &tp_order_event) {
        assert!(number < self.capacity, "there is no room for event {number}");
        let event = tp_order_event { size: self.stride, ..*event };
        // SAFETY: the index is within the array, as guaranteed at construction, and the event has at least `stride`
        // bytes: the size was checked.
        unsafe {
            let place = self.first.add(number * self.stride);
            (&raw const event).cast::<u8>().copy_to_nonoverlapping(place, self.stride);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_oms_client::ClientEvent;

    use super::*;

    #[test]
    fn events_are_written_at_their_index() {
        let event = |from| tp_order_event::of(&ClientEvent::Gap { from, to: 9 }, 0).expect("C receives it");
        let mut events = [event(0); 3];
        // SAFETY: there are three events, and the first one begins with its size.
        let room = unsafe { EventArray::of(events.as_mut_ptr(), 3) }.expect("its size is right");
        room.put(1, &event(7));
        assert_eq!(events.map(|event| event.from), [0, 7, 0]);
        for size in [0, 8, EVENT_FIRST_BYTES - 1, EVENT_FIRST_BYTES + 1, usize::MAX] {
            events[0].size = size;
            // SAFETY: the first event begins with a size, and nothing else is read.
            let refused = unsafe { EventArray::of(events.as_mut_ptr(), 3) };
            assert!(refused.is_err(), "{size}");
        }
    }

    #[test]
    fn an_empty_array_needs_no_memory() {
        // SAFETY: no event is needed for a count of 0, and a null pointer is refused.
        let (none, refused) = unsafe { (EventArray::of(null_mut(), 0), EventArray::of(null_mut(), 1)) };
        assert_eq!(none.map(|room| room.capacity).ok(), Some(0));
        assert!(refused.is_err());
    }
}
