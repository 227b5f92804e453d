//! Venues: their rules, whether they can be reached, and the requests that wait for them.

use tickpath_market::{Request, VenueId};
use tickpath_oms_risk::Breach;
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::venue_queue::{QueuedRequest, VenueQueue};
use crate::{Denial, VenueRules};

/// Upper bound of venue numbers, which index a table.
pub(crate) const VENUE_LIMIT: u16 = 1 << 12;

pub(crate) struct VenueState {
    pub(crate) rules: VenueRules,
    pub(crate) is_up: bool,
    pub(crate) waiting: VenueQueue,
    /// Id of the last loss of messages: the answer to a status request with a lower id may be from before the loss.
    pub(crate) last_loss: u64,
}

/// All venues, by number.
#[derive(Default)]
pub(crate) struct VenueTable {
    list: Vec<VenueState>,
}

impl VenueState {
    /// Creates a venue with default rules, which counts as up until a connection record reports otherwise.
    fn new(venue: VenueId) -> Self {
        Self { rules: VenueRules::of(venue), is_up: true, waiting: VenueQueue::default(), last_loss: 0 }
    }

    /// Returns whether a request may leave at once: waiting requests go first, or a cancel could overtake its order.
    pub(crate) fn sends_at_once(&self) -> bool {
        self.is_up && self.waiting.is_empty()
    }

    /// Checks whether one more new order or replace may wait.
    pub(crate) fn check_queue_room(&self) -> Result<(), Breach> {
        if self.sends_at_once() || self.waiting.len() < self.rules.max_queued as usize {
            return Ok(());
        }
        let (limit, value) = (self.rules.max_queued.into(), self.waiting.len() as i128);
        Err(Breach { denial: Denial::VenueQueue, limit, value })
    }

    pub(crate) fn has_status_request(&self, order: u32) -> bool {
        self.waiting.of_slot(order).any(QueuedRequest::is_status_request)
    }

    /// Removes an order's waiting status request, for one with this id; returns false if the waiting one is newer.
    pub(crate) fn drop_older_status_request(&mut self, order: u32, id: u64) -> bool {
        let is_newest = !self.waiting.of_slot(order).any(|waiting| waiting.is_status_request() && waiting.id() > id);
        if is_newest {
            self.waiting.remove(order, QueuedRequest::is_status_request);
        }
        is_newest
    }
}

/// A [`VenueState`] in a snapshot; its waiting requests follow those of the venue before.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedVenueState {
    rules: VenueRules,
    is_up: u32,
    waiting: u32,
    last_loss: u64,
}

/// A [`QueuedRequest`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedQueuedRequest {
    sent: u64,
    order: u32,
    session: u16,
    reserved: u8,
    kind: u8,
    bytes: u64,
    request: [u8; REQUEST_BYTES],
}

/// Length in bytes that fits any request to a venue.
const REQUEST_BYTES: usize = 64;

impl SavedQueuedRequest {
    fn of(waiting: &QueuedRequest) -> Self {
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

    fn waiting(&self) -> Result<QueuedRequest, SnapshotError> {
        let bytes = self.request.get(..self.bytes as usize).ok_or(SnapshotError::Damaged)?;
        let request = Request::read(self.kind, bytes).map_err(|_| SnapshotError::Damaged)?;
        Ok(QueuedRequest { order: self.order, session: self.session, request, sent: self.sent })
    }
}

impl VenueTable {
    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        let venues = self.list.iter().map(|venue| SavedVenueState {
            rules: venue.rules,
            is_up: venue.is_up.into(),
            waiting: venue.waiting.len() as u32,
            last_loss: venue.last_loss,
        });
        save.write_list(&venues.collect::<Vec<_>>());
        let waiting = self.list.iter().flat_map(|venue| venue.waiting.iter());
        save.write_list(&waiting.map(SavedQueuedRequest::of).collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let (venues, waiting) = (load.read_list::<SavedVenueState>()?, load.read_list::<SavedQueuedRequest>()?);
        let mut waiting = waiting.iter().map(SavedQueuedRequest::waiting);
        self.list.clear();
        for saved in &venues {
            let waiting = waiting.by_ref().take(saved.waiting as usize).collect::<Result<_, _>>()?;
            let SavedVenueState { rules, is_up, last_loss, .. } = *saved;
            self.list.push(VenueState { rules, is_up: is_up != 0, waiting, last_loss });
        }
        Ok(())
    }

    /// Returns a venue, with the rules of [`VenueRules::of`] until the venue is defined.
    #[inline]
    pub(crate) fn get(&mut self, venue: VenueId) -> &mut VenueState {
        // A larger number has no definition: its orders are denied before they could wait in the last row.
        let index = usize::from(venue.0.min(VENUE_LIMIT - 1));
        if index >= self.list.len() {
            self.grow(index);
        }
        &mut self.list[index]
    }

    /// Returns a venue; none if no record has named the venue or one with a higher number.
    #[inline]
    pub(crate) fn find(&self, venue: VenueId) -> Option<&VenueState> {
        self.list.get(usize::from(venue.0))
    }

    /// Sets a venue's rules; returns false if its number is out of range.
    pub(crate) fn define(&mut self, rules: &VenueRules) -> bool {
        if rules.venue.0 >= VENUE_LIMIT {
            return false;
        }
        self.get(rules.venue).rules = *rules;
        true
    }

    /// Returns the request that waited longest, if the venue can be reached.
    pub(crate) fn front(&self, venue: VenueId) -> Option<&QueuedRequest> {
        let venue = self.find(venue)?;
        venue.waiting.front().filter(|_| venue.is_up)
    }

    /// Removes and returns the requests that wait for any venue.
    pub(crate) fn drain_waiting(&mut self) -> Vec<QueuedRequest> {
        self.list.iter_mut().flat_map(|venue| venue.waiting.drain()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &VenueState> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut VenueState> {
        self.list.iter_mut()
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        let next = self.list.len() as u16;
        self.list.extend((next..=index as u16).map(|venue| VenueState::new(VenueId(venue))));
    }
}
