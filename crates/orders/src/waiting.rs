//! Requests that wait here for one venue, in the order in which they leave.
//!
//! ```text
//!   first                                      what is taken out of the middle leaves a hole, until it reaches
//!     │ cancel of 7 │ (hole) │ new 9 │ ...     the front or there are more holes than requests
//!     └ numbers rise by one; by_order: (7, 0), (9, 2), ...
//! ```
//! A venue that was lost in the middle of a busy day leaves as many questions here as it had orders, so nothing looks
//! through the whole queue for one order.

use std::collections::{BTreeSet, VecDeque};

use tickpath_market::Request;

/// Holes that are no reason to tidy up.
const FEW: usize = 64;

/// A request that waits here for its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Slot of its order.
    pub(crate) order: u32,
    pub(crate) session: u16,
    pub(crate) request: Request,
    /// When its client sent it, in ticks.
    pub(crate) sent: u64,
}

impl Waiting {
    /// The id of the request at the venue.
    pub(crate) fn id(&self) -> u64 {
        self.request.client_order_id().0
    }

    /// Whether it asks how its order stands.
    pub(crate) fn is_question(&self) -> bool {
        matches!(self.request, Request::Status(_))
    }
}

/// What waits for a venue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Never a hole at the front.
    list: VecDeque<Option<Waiting>>,
    /// The number of the front.
    first: u64,
    /// Order, and number in the list.
    by_order: BTreeSet<(u32, u64)>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.by_order.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What has waited longest.
    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.list.front()?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.list.iter().flatten()
    }

    /// What waits of one order.
    pub(crate) fn of(&self, order: u32) -> impl Iterator<Item = &Waiting> {
        self.numbers(order).filter_map(|number| self.list.get((number - self.first) as usize)?.as_ref())
    }

    /// Puts a request behind all others.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.by_order.insert((waiting.order, self.first + self.list.len() as u64));
        self.list.push_back(Some(waiting));
    }

    /// Puts a request behind all others, or in front of what was asked of its order later.
    pub(crate) fn insert(&mut self, waiting: Waiting) {
        if !self.of(waiting.order).any(|other| other.id() > waiting.id()) {
            return self.push(waiting);
        }
        // This happens to one order, not to all of a venue: then all may move up.
        let mut list: VecDeque<Waiting> = self.take().collect();
        let is_later = |other: &Waiting| other.order == waiting.order && other.id() > waiting.id();
        let place = list.iter().position(is_later).unwrap_or(list.len());
        list.insert(place, waiting);
        *self = list.into_iter().collect();
    }

    /// Takes what has waited longest.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let waiting = *self.front()?;
        self.by_order.remove(&(waiting.order, self.first));
        self.list[0] = None;
        self.tidy();
        Some(waiting)
    }

    /// Takes out what waits of one order, if this says so.
    pub(crate) fn remove(&mut self, order: u32, mut which: impl FnMut(&Waiting) -> bool) {
        let of_order: Vec<u64> = self.numbers(order).collect();
        for number in of_order {
            let place = (number - self.first) as usize;
            if self.list[place].as_ref().is_some_and(&mut which) {
                self.list[place] = None;
                self.by_order.remove(&(order, number));
            }
        }
        self.tidy();
    }

    /// Takes all, the longest first.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        std::mem::take(self).list.into_iter().flatten()
    }

    fn numbers(&self, order: u32) -> impl Iterator<Item = u64> + '_ {
        self.by_order.range((order, 0)..=(order, u64::MAX)).map(|&(_, number)| number)
    }

    fn tidy(&mut self) {
        while self.list.pop_front_if(|front| front.is_none()).is_some() {
            self.first += 1;
        }
        if self.list.len() - self.by_order.len() > self.by_order.len() + FEW {
            *self = self.take().collect();
        }
    }
}

impl FromIterator<Waiting> for Queue {
    fn from_iter<I: IntoIterator<Item = Waiting>>(list: I) -> Self {
        let list: VecDeque<Option<Waiting>> = list.into_iter().map(Some).collect();
        let by_order = (0..).zip(list.iter().flatten()).map(|(number, waiting)| (waiting.order, number)).collect();
        Self { list, first: 0, by_order }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tickpath_market::{CancelOrder, ClientOrderId, NewOrder, StatusRequest};

    use super::*;

    fn waiting(order: u32, id: u64, kind: u8) -> Waiting {
        let client_order_id = ClientOrderId(id);
        let request = match kind % 3 {
            0 => Request::New(NewOrder { client_order_id, ..NewOrder::default() }),
            1 => Request::Cancel(CancelOrder { client_order_id, ..CancelOrder::default() }),
            _ => Request::Status(StatusRequest { client_order_id, ..StatusRequest::default() }),
        };
        Waiting { order, session: 0, request, sent: 0 }
    }

    proptest! {
        /// Beside a list that is looked through.
        #[test]
        fn it_is_a_list(steps in prop::collection::vec((0_u8..5, 0_u32..6, 0_u64..50, 0_u8..3), 0..400)) {
            let (mut queue, mut model) = (Queue::default(), Vec::<Waiting>::new());
            for (step, order, id, kind) in steps {
                let new = waiting(order, id, kind);
                match step {
                    0 | 1 => {
                        queue.push(new);
                        model.push(new);
                    }
                    2 => {
                        queue.insert(new);
                        let place = model.iter().position(|other| other.order == order && other.id() > id);
                        model.insert(place.unwrap_or(model.len()), new);
                    }
                    3 => {
                        let expected = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(queue.pop(), expected);
                    }
                    _ => {
                        queue.remove(order, Waiting::is_question);
                        model.retain(|waiting| waiting.order != order || !waiting.is_question());
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert_eq!(queue.front(), model.first());
                prop_assert!(queue.iter().eq(&model));
                prop_assert!(queue.of(order).eq(model.iter().filter(|waiting| waiting.order == order)));
            }
            prop_assert!(queue.take().eq(model));
        }
    }
}
