//! Where C is told what happened to a session: an array of its own.

use std::ptr::null_mut;

use crate::argument::check_pointer;
use crate::config::check_size;
use crate::report::{EVENT_FIRST_BYTES, tp_order_event};
use crate::status::Failure;

/// The most events that one call hands over.
const MOST: usize = 1 << 16;

/// An array of events, whose first element says how large each is.
pub struct Room {
    first: *mut u8,
    /// Bytes of each.
    stride: usize,
    /// How many there is room for.
    pub most: usize,
}

impl Room {
    /// Of so many.
    ///
    /// # Safety
    /// `events` is null, or has `most` structs, of which the first begins with its size, and all have so many bytes; they are
    /// nobody else's as long as this is there.
    pub unsafe fn of(events: *mut tp_order_event, most: usize) -> Result<Self, Failure> {
        if most == 0 {
            return Ok(Self { first: null_mut(), stride: 0, most });
        }
        check_pointer("events", events)?;
        // SAFETY: the first one begins with its size, as the caller promises.
        let stride = unsafe { events.cast::<usize>().read_unaligned() };
        check_size("tp_order_event", stride, EVENT_FIRST_BYTES, size_of::<tp_order_event>())?;
        Ok(Self { first: events.cast(), stride, most: most.min(MOST) })
    }

    /// Writes an event down as that of this number, as far as C knows its fields.
    pub fn put(&self, number: usize, event: &tp_order_event) {
        assert!(number < self.most, "there is no room for event {number}");
        let event = tp_order_event { size: self.stride, ..*event };
        // SAFETY: there is room for one more, as who made this promised, and the event has no fewer bytes than that: its size
        // was looked at.
        unsafe {
            let place = self.first.add(number * self.stride);
            (&raw const event).cast::<u8>().copy_to_nonoverlapping(place, self.stride);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_client::Event;

    use super::*;

    #[test]
    fn events_are_written_where_there_is_room_for_them() {
        let event = |from| tp_order_event::of(&Event::Gap { from, to: 9 }, 0).expect("C is told of it");
        let mut events = [event(0); 3];
        // SAFETY: there are three, and the first one begins with its size.
        let room = unsafe { Room::of(events.as_mut_ptr(), 3) }.expect("its size is right");
        room.put(1, &event(7));
        assert_eq!(events.map(|event| event.from), [0, 7, 0]);
        for size in [0, 8, EVENT_FIRST_BYTES - 1, EVENT_FIRST_BYTES + 1, usize::MAX] {
            events[0].size = size;
            // SAFETY: the first one begins with a size, and nothing else is looked at.
            let refused = unsafe { Room::of(events.as_mut_ptr(), 3) };
            assert!(refused.is_err(), "{size}");
        }
    }

    #[test]
    fn nothing_needs_no_room() {
        // SAFETY: nothing is there, and nothing is looked at.
        let (none, refused) = unsafe { (Room::of(null_mut(), 0), Room::of(null_mut(), 1)) };
        assert_eq!(none.map(|room| room.most).ok(), Some(0));
        assert!(refused.is_err());
    }
}
