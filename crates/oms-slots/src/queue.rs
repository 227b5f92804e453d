//! A queue whose items belong to slots: the waiting items of one slot are found without a scan.
//!
//! ```text
//!   first                                      what is taken out of the middle leaves a hole, until it reaches
//!     │ a of 7 │ (hole) │ b of 9 │ ...           the front or there are more holes than items
//!     └ numbers rise by one; by_slot: (7, 0), (9, 2), ...
//! ```

use std::collections::{BTreeSet, VecDeque};

/// Number of holes up to which the list is not compacted.
const MIN_HOLES: usize = 64;

/// An item of a [`SlotQueue`].
pub trait QueueItem: Copy {
    /// Returns the slot of the item.
    fn slot(&self) -> u32;
}

/// Items in the order in which they leave, with an index by slot.
#[derive(Debug, Clone)]
pub struct SlotQueue<T> {
    /// Items and holes; the front is never a hole.
    list: VecDeque<Option<T>>,
    /// Number of the front item.
    first: u64,
    /// Slot, and number in the list, of each item.
    by_slot: BTreeSet<(u32, u64)>,
}

impl<T> Default for SlotQueue<T> {
    fn default() -> Self {
        Self { list: VecDeque::new(), first: 0, by_slot: BTreeSet::new() }
    }
}

impl<T: QueueItem> SlotQueue<T> {
    /// Returns the number of waiting items.
    pub fn len(&self) -> usize {
        self.by_slot.len()
    }

    /// Returns whether no item waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the item that has waited longest.
    pub fn front(&self) -> Option<&T> {
        self.list.front()?.as_ref()
    }

    /// Returns all items, the front first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter().flatten()
    }

    /// Returns the items of one slot, in their order.
    pub fn of_slot(&self, slot: u32) -> impl Iterator<Item = &T> {
        self.numbers(slot).filter_map(|number| self.list.get((number - self.first) as usize)?.as_ref())
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        self.by_slot.insert((item.slot(), self.first + self.list.len() as u64));
        self.list.push_back(Some(item));
    }

    /// Appends an item, or inserts it before the first item of its slot for which `is_later` returns true.
    pub fn insert(&mut self, item: T, is_later: impl Fn(&T) -> bool) {
        if !self.of_slot(item.slot()).any(&is_later) {
            return self.push(item);
        }
        // An insert in the middle is rare, so all later items may move.
        let mut list: VecDeque<T> = self.drain().collect();
        let index = list.iter().position(|other| other.slot() == item.slot() && is_later(other)).unwrap_or(list.len());
        list.insert(index, item);
        *self = list.into_iter().collect();
    }

    /// Removes and returns the item that has waited longest.
    pub fn pop(&mut self) -> Option<T> {
        let item = *self.front()?;
        self.by_slot.remove(&(item.slot(), self.first));
        self.list[0] = None;
        self.compact();
        Some(item)
    }

    /// Removes the waiting items of a slot for which `is_match` returns true.
    pub fn remove(&mut self, slot: u32, mut is_match: impl FnMut(&T) -> bool) {
        let of_slot: Vec<u64> = self.numbers(slot).collect();
        for number in of_slot {
            let index = (number - self.first) as usize;
            if self.list[index].as_ref().is_some_and(&mut is_match) {
                self.list[index] = None;
                self.by_slot.remove(&(slot, number));
            }
        }
        self.compact();
    }

    /// Removes and returns all items, the front first.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).list.into_iter().flatten()
    }

    fn numbers(&self, slot: u32) -> impl Iterator<Item = u64> + '_ {
        self.by_slot.range((slot, 0)..=(slot, u64::MAX)).map(|&(_, number)| number)
    }

    fn compact(&mut self) {
        while self.list.pop_front_if(|front| front.is_none()).is_some() {
            self.first += 1;
        }
        if self.list.len() - self.by_slot.len() > self.by_slot.len() + MIN_HOLES {
            *self = self.drain().collect();
        }
    }
}

impl<T: QueueItem> FromIterator<T> for SlotQueue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let list: VecDeque<Option<T>> = items.into_iter().map(Some).collect();
        let by_slot = (0..).zip(list.iter().flatten()).map(|(number, item)| (item.slot(), number)).collect();
        Self { list, first: 0, by_slot }
    }
}
