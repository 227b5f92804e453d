//! Venues: how each behaves, whether it can be reached, and what waits here for it.

use std::collections::VecDeque;

use tickpath_market::{Request, VenueId};

use crate::VenueRules;

/// Venue numbers are below this: they are places in a table.
pub(crate) const VENUES: u16 = 1 << 12;

/// A request that waits here for its venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Slot of its order.
    pub(crate) order: u32,
    pub(crate) session: u16,
    pub(crate) request: Request,
    /// When its client sent it, in ticks; none if that was in another boot of the host.
    pub(crate) sent: Option<u64>,
}

/// A venue.
pub(crate) struct Route {
    pub(crate) rules: VenueRules,
    pub(crate) is_up: bool,
    pub(crate) waiting: VecDeque<Waiting>,
}

/// All venues, by number.
#[derive(Default)]
pub(crate) struct Routes {
    list: Vec<Route>,
}

impl Waiting {
    /// The id of the request at the venue.
    pub(crate) fn id(&self) -> u64 {
        self.request.client_order_id().0
    }
}

impl Route {
    /// Of a venue that nothing was said of yet: it can be reached until it is known that it cannot.
    fn new(venue: VenueId) -> Self {
        Self { rules: VenueRules::of(venue), is_up: true, waiting: VecDeque::new() }
    }

    /// Whether a request may leave at once. What waits goes first, or a venue would see a cancel before its order.
    pub(crate) fn is_clear(&self) -> bool {
        self.is_up && self.waiting.is_empty()
    }

    /// Whether one more new order or replace may wait.
    pub(crate) fn takes_more(&self) -> bool {
        self.is_clear() || self.waiting.len() < self.rules.max_queued as usize
    }
}

impl Routes {
    /// The venue; one that nothing was said of is as [`VenueRules::of`] says.
    #[inline]
    pub(crate) fn get(&mut self, venue: VenueId) -> &mut Route {
        // A definition with a larger number was refused, so its orders wait at the last place; they are denied before.
        let place = usize::from(venue.0.min(VENUES - 1));
        if place >= self.list.len() {
            self.grow(place);
        }
        &mut self.list[place]
    }

    /// Takes a definition; false if the venue has no place.
    pub(crate) fn define(&mut self, rules: &VenueRules) -> bool {
        if rules.venue.0 >= VENUES {
            return false;
        }
        self.get(rules.venue).rules = *rules;
        true
    }

    /// How it behaves again as if nobody had defined it.
    pub(crate) fn end(&mut self, venue: VenueId) -> bool {
        self.define(&VenueRules::of(venue))
    }

    /// The request that has waited longest for a venue that can be reached.
    pub(crate) fn front(&self, venue: VenueId) -> Option<&Waiting> {
        let route = self.list.get(usize::from(venue.0))?;
        route.waiting.front().filter(|_| route.is_up)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.list.iter_mut()
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        let next = self.list.len() as u16;
        self.list.extend((next..=place as u16).map(|venue| Route::new(VenueId(venue))));
    }
}
