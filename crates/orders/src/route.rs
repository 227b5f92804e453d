//! Venues: how each behaves, whether it can be reached, and what waits here for it.

use tickpath_market::{Request, VenueId};
use tickpath_slots::{Load, Save, SnapshotError};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::VenueRules;
use crate::waiting::{Queue, Waiting};

/// Venue numbers are below this: they are places in a table.
pub(crate) const VENUES: u16 = 1 << 12;

/// A venue.
pub(crate) struct Route {
    pub(crate) rules: VenueRules,
    pub(crate) is_up: bool,
    pub(crate) waiting: Queue,
    /// The id of the last doubt: the answer to a question with a lower one may be from before the loss.
    pub(crate) doubted: u64,
}

/// All venues, by number.
#[derive(Default)]
pub(crate) struct Routes {
    list: Vec<Route>,
}

impl Route {
    /// Of a venue that nothing was said of yet: it can be reached until it is known that it cannot.
    fn new(venue: VenueId) -> Self {
        Self { rules: VenueRules::of(venue), is_up: true, waiting: Queue::default(), doubted: 0 }
    }

    /// Whether a request may leave at once. What waits goes first, or a venue would see a cancel before its order.
    pub(crate) fn is_clear(&self) -> bool {
        self.is_up && self.waiting.is_empty()
    }

    /// Whether one more new order or replace may wait.
    pub(crate) fn takes_more(&self) -> bool {
        self.is_clear() || self.waiting.len() < self.rules.max_queued as usize
    }

    /// Whether a question after this order waits here.
    pub(crate) fn has_question(&self, order: u32) -> bool {
        self.waiting.of(order).any(Waiting::is_question)
    }

    /// Forgets the question after an order that waits, for one with this id; false if that one is the older.
    pub(crate) fn drop_older_question(&mut self, order: u32, id: u64) -> bool {
        let is_newest = !self.waiting.of(order).any(|waiting| waiting.is_question() && waiting.id() > id);
        if is_newest {
            self.waiting.remove(order, Waiting::is_question);
        }
        is_newest
    }
}

/// A [`Route`] in a snapshot; what waits for it follows what waits for the one before.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedRoute {
    rules: VenueRules,
    is_up: u32,
    waiting: u32,
    doubted: u64,
}

/// A [`Waiting`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedWaiting {
    sent: u64,
    order: u32,
    session: u16,
    reserved: u8,
    kind: u8,
    bytes: u64,
    request: [u8; REQUEST_BYTES],
}

/// Any request that goes to a venue fits.
const REQUEST_BYTES: usize = 64;

impl SavedWaiting {
    fn of(waiting: &Waiting) -> Self {
        let (bytes, mut request) = (waiting.request.as_bytes(), [0; REQUEST_BYTES]);
        request[..bytes.len()].copy_from_slice(bytes);
        Self {
            sent: waiting.sent,
            order: waiting.order,
            session: waiting.session,
            reserved: 0,
            kind: waiting.request.kind().code(),
            bytes: bytes.len() as u64,
            request,
        }
    }

    fn waiting(&self) -> Result<Waiting, SnapshotError> {
        let bytes = self.request.get(..self.bytes as usize).ok_or(SnapshotError::Damaged)?;
        let request = Request::read(self.kind, bytes).map_err(|_| SnapshotError::Damaged)?;
        Ok(Waiting { order: self.order, session: self.session, request, sent: self.sent })
    }
}

impl Routes {
    pub(crate) fn save(&self, save: &mut Save<'_>) {
        let routes = self.list.iter().map(|route| SavedRoute {
            rules: route.rules,
            is_up: route.is_up.into(),
            waiting: route.waiting.len() as u32,
            doubted: route.doubted,
        });
        save.list(&routes.collect::<Vec<_>>());
        save.list(&self.list.iter().flat_map(|route| route.waiting.iter()).map(SavedWaiting::of).collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        let (routes, waiting) = (load.list::<SavedRoute>()?, load.list::<SavedWaiting>()?);
        let mut waiting = waiting.iter().map(SavedWaiting::waiting);
        self.list.clear();
        for saved in &routes {
            let waiting = waiting.by_ref().take(saved.waiting as usize).collect::<Result<_, _>>()?;
            let SavedRoute { rules, is_up, doubted, .. } = *saved;
            self.list.push(Route { rules, is_up: is_up != 0, waiting, doubted });
        }
        Ok(())
    }

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
