//! Orders that a line knows: the generation at the exchange, the events that were passed on, and the pending change.
//!
//! ```text
//!   OMS order ──> generation 0 ──replace──> generation 1 ──replace──> …      each an order of its own at the exchange
//!                 filled 3                  base 3, filled 2                 cumulative quantity: base + filled
//! ```
//!
//! The table is a memory of this process only: a text has the identity of its order, and the exchange has the rest.

use std::collections::{HashMap, VecDeque};

use tickpath_market::VenueId;

use crate::identity::{OmsTag, OrderIdentity};
use crate::instruments::InstrumentTable;
use crate::outbox::Outbox;
use crate::terms::OrderTerms;

/// Max ended orders that are remembered, against late duplicates; the OMS drops older ones.
const MAX_ENDED: usize = 10_000;

/// The orders of a line, and the events that they cause.
pub(crate) struct LineOrders {
    pub(crate) venue: VenueId,
    pub(crate) tag: OmsTag,
    pub(crate) instruments: InstrumentTable,
    pub(crate) outbox: Outbox,
    /// Orders whose next step is due: the second step of a replace, or a cancel that waited for a replace.
    pub(crate) due: VecDeque<u64>,
    /// The exchange's time up to which events have arrived, in milliseconds; zero before the first connection.
    pub(crate) known_until_ms: u64,
    /// Requests of earlier processes left before these ticks.
    pub(crate) began: u64,
    table: HashMap<u64, LineOrder>,
    /// Ended orders, the oldest first.
    ended: VecDeque<u64>,
}

/// An order that a line knows.
#[derive(Debug, Clone)]
pub(crate) struct LineOrder {
    /// The present generation.
    pub(crate) identity: OrderIdentity,
    /// Place of the instrument.
    pub(crate) instrument: usize,
    pub(crate) terms: OrderTerms,
    /// The exchange's id of the generation; zero if unknown.
    pub(crate) venue_id: u64,
    /// Filled quantity of the generation, as far as its fills were passed on.
    pub(crate) filled: i64,
    /// Earlier generations that have fills.
    pub(crate) earlier: Vec<EarlierGeneration>,
    /// Time of the last request that may have placed the order, or another generation of it, in ticks.
    pub(crate) last_sent: u64,
    /// The order was not sent by this process, so another one may have replaced it.
    pub(crate) is_learned: bool,
    /// The acceptance was passed on.
    pub(crate) is_accepted: bool,
    /// The order has ended, as an event or an answer shows.
    pub(crate) has_ended: bool,
    /// The end was passed on as an event.
    pub(crate) is_end_reported: bool,
    /// Names of events and fills that cannot be read. With one of them the line cannot explain the order's quantities.
    pub(crate) unreadable: Vec<String>,
    /// Execution ids of the fills that were passed on, sorted; so are those of the amendments.
    pub(crate) fills: Vec<u64>,
    pub(crate) amendments: Vec<u64>,
    /// Request id of the pending cancel.
    pub(crate) cancel: Option<u64>,
    pub(crate) replace: Option<PendingReplace>,
    /// Number and request id of a cancel that waits for the end of a replace.
    pub(crate) waiting_cancel: Option<(u64, u64)>,
}

/// An earlier generation of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EarlierGeneration {
    pub(crate) identity: OrderIdentity,
    pub(crate) venue_id: u64,
    pub(crate) filled: i64,
}

/// A replace that the exchange has not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingReplace {
    pub(crate) request: u64,
    pub(crate) step: ReplaceStep,
    /// Identity and terms after the replace.
    pub(crate) identity: OrderIdentity,
    pub(crate) terms: OrderTerms,
    /// Total quantity that was asked for, all generations together.
    pub(crate) total: i64,
}

/// Step of a replace that is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplaceStep {
    /// Reduction of the quantity in place.
    Amend,
    /// Cancel and new order in one request, for an order without fills.
    Swap,
    /// Cancel of an order with fills: its answer shows the quantity that is left.
    Cancel,
    /// New order behind that cancel.
    Place,
    /// The outcome is unknown, until the exchange was asked for the order.
    Doubtful,
}

impl LineOrders {
    pub(crate) fn new(venue: VenueId, instruments: InstrumentTable, began: u64) -> Self {
        Self {
            venue,
            tag: OmsTag::of(0),
            instruments,
            outbox: Outbox::default(),
            due: VecDeque::new(),
            known_until_ms: 0,
            began,
            table: HashMap::new(),
            ended: VecDeque::new(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, order: u64) -> Option<&LineOrder> {
        self.table.get(&order)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, order: u64) -> Option<&mut LineOrder> {
        self.table.get_mut(&order)
    }

    /// Adds an order, unless it is known.
    #[inline]
    pub(crate) fn add(&mut self, order: LineOrder) {
        self.table.entry(order.identity.order).or_insert(order);
    }

    /// Returns the orders of an instrument, in all generations, by the exchange's ids.
    pub(crate) fn by_venue_id(&self, instrument: usize) -> HashMap<u64, OrderIdentity> {
        let orders = self.table.values().filter(|order| order.instrument == instrument);
        let generations = orders.flat_map(|order| {
            let earlier = order.earlier.iter().map(|earlier| (earlier.venue_id, earlier.identity));
            earlier.chain([(order.venue_id, order.identity)])
        });
        generations.filter(|(venue_id, _)| *venue_id != 0).collect()
    }

    /// Notes the end of an order, which was passed on as an event.
    pub(crate) fn note_end(&mut self, order: u64) {
        if let Some(known) = self.table.get_mut(&order) {
            known.is_end_reported = true;
        }
        self.note_found_end(order);
    }

    /// Notes the end of an order that an answer shows; the event is passed on when it comes. A replace in flight is
    /// answered, and a cancel that waits is due: both come too late.
    pub(crate) fn note_found_end(&mut self, order: u64) {
        let Some(known) = self.table.get_mut(&order) else { return };
        known.cancel = None;
        // A replace in doubt is answered by the status.
        let late = known.replace.take().filter(|replace| replace.step != ReplaceStep::Doubtful);
        if known.waiting_cancel.is_some() {
            self.due.push_back(order);
        }
        if !std::mem::replace(&mut known.has_ended, true) {
            self.ended.push_back(order);
        }
        if let Some(replace) = late {
            self.push_too_late(order, replace.request);
        }
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.table.remove(&oldest);
        }
    }

    /// Notes that an order works after all.
    pub(crate) fn note_revival(&mut self, order: u64) {
        let Some(known) = self.table.get_mut(&order).filter(|known| known.has_ended) else { return };
        (known.has_ended, known.is_end_reported) = (false, false);
        self.ended.retain(|ended| *ended != order);
    }

    /// Ends a replace; a cancel that waited for it is due.
    pub(crate) fn end_replace(&mut self, order: u64) -> Option<PendingReplace> {
        let known = self.table.get_mut(&order)?;
        if known.waiting_cancel.is_some() {
            self.due.push_back(order);
        }
        known.replace.take()
    }

    /// Ends a replace whose outcome was unknown.
    pub(crate) fn end_doubt(&mut self, order: u64) {
        let is_doubtful = |replace: &PendingReplace| replace.step == ReplaceStep::Doubtful;
        if self.get(order).is_some_and(|known| known.replace.as_ref().is_some_and(is_doubtful)) {
            self.end_replace(order);
        }
    }

    /// Notes the loss of the connection: no answer comes any more, and replaces are in doubt.
    pub(crate) fn note_loss(&mut self) {
        self.due.clear();
        for order in self.table.values_mut() {
            (order.cancel, order.waiting_cancel) = (None, None);
            order.replace = order.replace.filter(|replace| replace.step != ReplaceStep::Amend);
            if let Some(replace) = &mut order.replace {
                replace.step = ReplaceStep::Doubtful;
            }
        }
    }

    /// Begins anew, for another OMS.
    pub(crate) fn forget_all(&mut self, tag: OmsTag) {
        self.tag = tag;
        self.known_until_ms = 0;
        self.due.clear();
        self.table.clear();
        self.ended.clear();
    }
}

impl LineOrder {
    /// Returns an order of which nothing was passed on; `last_sent` is in ticks.
    pub(crate) fn new(identity: OrderIdentity, instrument: usize, terms: OrderTerms, last_sent: u64) -> Self {
        Self {
            identity,
            instrument,
            terms,
            venue_id: 0,
            filled: 0,
            earlier: Vec::new(),
            last_sent,
            is_learned: false,
            is_accepted: false,
            has_ended: false,
            is_end_reported: false,
            unreadable: Vec::new(),
            fills: Vec::new(),
            amendments: Vec::new(),
            cancel: None,
            replace: None,
            waiting_cancel: None,
        }
    }

    /// Returns the filled quantity of a generation, as far as its fills were passed on; none if it is not known.
    pub(crate) fn filled_of(&self, identity: &OrderIdentity) -> Option<i64> {
        if self.identity.generation == identity.generation {
            return Some(self.filled);
        }
        let mut earlier = self.earlier.iter();
        earlier.find(|earlier| earlier.identity.generation == identity.generation).map(|earlier| earlier.filled)
    }

    /// Returns whether all fills of earlier generations were passed on.
    pub(crate) fn has_earlier_fills(&self) -> bool {
        let filled = self.earlier.iter().fold(0_i64, |filled, earlier| filled.saturating_add(earlier.filled));
        filled >= self.identity.base
    }

    /// Adds to the filled quantity of a generation.
    pub(crate) fn add_filled(&mut self, identity: &OrderIdentity, venue_id: u64, quantity: i64) {
        if self.identity.generation == identity.generation {
            self.filled = self.filled.saturating_add(quantity);
            return;
        }
        let is_it = |earlier: &&mut EarlierGeneration| earlier.identity.generation == identity.generation;
        match self.earlier.iter_mut().find(is_it) {
            Some(earlier) => earlier.filled = earlier.filled.saturating_add(quantity),
            None => self.earlier.push(EarlierGeneration { identity: *identity, venue_id, filled: quantity }),
        }
    }

    /// Continues with a later generation.
    pub(crate) fn advance(&mut self, identity: OrderIdentity, venue_id: u64, terms: OrderTerms) {
        if self.filled > 0 {
            let (identity, venue_id, filled) = (self.identity, self.venue_id, self.filled);
            self.earlier.push(EarlierGeneration { identity, venue_id, filled });
        }
        (self.identity, self.venue_id, self.terms, self.filled) = (identity, venue_id, terms, 0);
    }

    /// Returns the quantity of all generations.
    pub(crate) fn total(&self) -> i64 {
        self.identity.base.saturating_add(self.terms.quantity)
    }
}

/// Adds an id to a sorted list; returns false if it is there.
pub(crate) fn insert_new(ids: &mut Vec<u64>, id: u64) -> bool {
    // Ids rise as a rule, so a new one belongs to the end.
    if ids.last().is_none_or(|last| *last < id) {
        ids.push(id);
        return true;
    }
    match ids.binary_search(&id) {
        Ok(_) => false,
        Err(place) => {
            ids.insert(place, id);
            true
        }
    }
}
