//! A queue whose items belong to slots: what waits of one slot is found without a look at the others.
//!
//! ```text
//!   first                                      what is taken out of the middle leaves a hole, until it reaches
//!     │ a of 7 │ (hole) │ b of 9 │ ...           the front or there are more holes than items
//!     └ numbers rise by one; by_slot: (7, 0), (9, 2), ...
//! ```

use std::collections::{BTreeSet, VecDeque};

/// Holes that are no reason to tidy up.
const FEW: usize = 64;

/// An item of a [`Queue`].
pub trait Queued: Copy {
    /// The slot that the item belongs to.
    fn slot(&self) -> u32;
}

/// Items in the order in which they leave.
#[derive(Debug, Clone)]
pub struct Queue<T> {
    /// Never a hole at the front.
    list: VecDeque<Option<T>>,
    /// The number of the front.
    first: u64,
    /// Slot, and number in the list.
    by_slot: BTreeSet<(u32, u64)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { list: VecDeque::new(), first: 0, by_slot: BTreeSet::new() }
    }
}

impl<T: Queued> Queue<T> {
    /// How many items wait.
    pub fn len(&self) -> usize {
        self.by_slot.len()
    }

    /// Returns whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The item that has waited longest.
    pub fn front(&self) -> Option<&T> {
        self.list.front()?.as_ref()
    }

    /// All items, the front first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter().flatten()
    }

    /// The items of one slot, in their order.
    pub fn of(&self, slot: u32) -> impl Iterator<Item = &T> {
        self.numbers(slot).filter_map(|number| self.list.get((number - self.first) as usize)?.as_ref())
    }

    /// Puts an item behind all others.
    pub fn push(&mut self, item: T) {
        self.by_slot.insert((item.slot(), self.first + self.list.len() as u64));
        self.list.push_back(Some(item));
    }

    /// Puts an item behind all others, or in front of the first of its slot that is to leave after it.
    pub fn insert(&mut self, item: T, is_later: impl Fn(&T) -> bool) {
        if !self.of(item.slot()).any(&is_later) {
            return self.push(item);
        }
        // This happens to one slot, not to all: then all may move up.
        let mut list: VecDeque<T> = self.take().collect();
        let place = list.iter().position(|other| other.slot() == item.slot() && is_later(other)).unwrap_or(list.len());
        list.insert(place, item);
        *self = list.into_iter().collect();
    }

    /// Takes what has waited longest.
    pub fn pop(&mut self) -> Option<T> {
        let item = *self.front()?;
        self.by_slot.remove(&(item.slot(), self.first));
        self.list[0] = None;
        self.tidy();
        Some(item)
    }

    /// Takes out what waits of one slot, if this says so.
    pub fn remove(&mut self, slot: u32, mut which: impl FnMut(&T) -> bool) {
        let of_slot: Vec<u64> = self.numbers(slot).collect();
        for number in of_slot {
            let place = (number - self.first) as usize;
            if self.list[place].as_ref().is_some_and(&mut which) {
                self.list[place] = None;
                self.by_slot.remove(&(slot, number));
            }
        }
        self.tidy();
    }

    /// Takes all, the front first.
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).list.into_iter().flatten()
    }

    fn numbers(&self, slot: u32) -> impl Iterator<Item = u64> + '_ {
        self.by_slot.range((slot, 0)..=(slot, u64::MAX)).map(|&(_, number)| number)
    }

    fn tidy(&mut self) {
        while self.list.pop_front_if(|front| front.is_none()).is_some() {
            self.first += 1;
        }
        if self.list.len() - self.by_slot.len() > self.by_slot.len() + FEW {
            *self = self.take().collect();
        }
    }
}

impl<T: Queued> FromIterator<T> for Queue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let list: VecDeque<Option<T>> = items.into_iter().map(Some).collect();
        let by_slot = (0..).zip(list.iter().flatten()).map(|(number, item)| (item.slot(), number)).collect();
        Self { list, first: 0, by_slot }
    }
}
