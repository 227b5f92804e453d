//! The core's state, and its single entry point [`Core::apply`].
//!
//! ```text
//!   request ──admit──> checks (trading, positions, self_match) ──> orders ──> venues ──> Output::Venue
//!   report ──find by id (orders, aliases)──> merge ──> orders ──> Output::Report
//!                    each change of an order: counts, positions, the account's totals, self_match
//! ```

use tickpath_market::{ClientOrderId, Request, SymbolId, VenueId};
use tickpath_oms_risk::MAX_VALUE;

use crate::aliases::OrderAliases;
use crate::boot_clock::BootClock;
use crate::counts::CoreCounts;
use crate::digest::OutputDigest;
use crate::extensions::Extensions;
use crate::id_source::IdSource;
use crate::order::{NONE, Order, SequenceGap};
use crate::order_store::{Config, OrderStore};
use crate::position::PositionTable;
use crate::retry_rules::RetryRules;
use crate::self_match::SelfMatchBook;
use crate::state::OrderPhase;
use crate::trading_config::TradingConfig;
use crate::triggers::TriggerTable;
use crate::unknown_reports::UnknownOrderReports;
use crate::venue_queue::QueuedRequest;
use crate::venue_table::VenueTable;
use crate::{Input, Output, Outputs};

/// Version of the transition rules. This core does not replay a journal of another version.
pub const CORE_VERSION: u32 = 6;

/// Journal sequence and timestamp of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The journal sequence, rising, from 1. With the epoch it forms the id of a new order.
    pub sequence: u64,
    /// T1: the time at which the OMS received the input, in ticks of the host's clock.
    pub stamp: u64,
}

/// The order management core.
///
/// ```
/// use tickpath_market::{AccountId, ClientOrderId, NewOrder, Price, Quantity, Request, SymbolId};
/// use tickpath_oms_core::{At, Config, Core, Denial, Envelope, Input, Output, Outputs};
///
/// let mut core = Core::new(Config { expected_orders: 1000, key: 0 });
/// let mut out = Outputs::new();
/// let order = NewOrder {
///     client_order_id: ClientOrderId(1),
///     price: Price::from_whole(100),
///     quantity: Quantity::from_whole(1),
///     symbol: SymbolId(1),
///     account: AccountId(1),
///     side: 1,
///     order_type: 2,
///     ..Default::default()
/// };
/// let input = Input::Request { envelope: Envelope::default(), request: Request::New(order) };
/// core.apply(At { sequence: 1, stamp: 0 }, &input, &mut out);
/// let [Output::Denied { denied, .. }] = out.as_slice() else { panic!() };
/// assert_eq!(denied.code, Denial::UnknownAccount.code());
/// ```
pub struct Core {
    /// Orders, pending requests, fills and used client ids.
    pub(crate) orders: OrderStore,
    /// Accounts, instruments, sessions and kill switches: the state that requests are checked against.
    pub(crate) trading: TradingConfig,
    /// Venues, and the requests that wait for them.
    pub(crate) venues: VenueTable,
    pub(crate) positions: PositionTable,
    pub(crate) self_match: SelfMatchBook,
    pub(crate) triggers: TriggerTable,
    /// Orders that miss a venue sequence.
    pub(crate) gaps: Vec<SequenceGap>,
    pub(crate) retries: RetryRules,
    /// Ids of orders that their venue does not know by the core's id.
    pub(crate) aliases: OrderAliases,
    /// Text ids and end times of orders.
    pub(crate) extensions: Extensions,
    pub(crate) unknown_reports: UnknownOrderReports,
    pub(crate) ids: IdSource,
    pub(crate) clock: BootClock,
    pub(crate) counts: CoreCounts,
    pub(crate) output_digest: OutputDigest,
}

impl Core {
    /// Creates a core without instruments, accounts or orders. Until the first boot record a tick counts as a
    /// nanosecond.
    pub fn new(config: Config) -> Self {
        Self {
            orders: OrderStore::new(config),
            trading: TradingConfig::default(),
            venues: VenueTable::default(),
            positions: PositionTable::default(),
            self_match: SelfMatchBook::default(),
            triggers: TriggerTable::default(),
            gaps: Vec::new(),
            retries: RetryRules::default(),
            aliases: OrderAliases::default(),
            extensions: Extensions::default(),
            unknown_reports: UnknownOrderReports::default(),
            ids: IdSource::default(),
            clock: BootClock::default(),
            counts: CoreCounts::default(),
            output_digest: OutputDigest::default(),
        }
    }

    /// Applies one input and leaves its outputs in `out`, which is cleared first. Never panics, for any input.
    pub fn apply(&mut self, at: At, input: &Input, out: &mut Outputs) {
        out.clear();
        match input {
            Input::Request { envelope, request } => self.apply_request(at, envelope, request, out),
            Input::Report(record) => self.apply_report(at, record, out),
            other => self.apply_control(at, other, out),
        }
        self.output_digest.add(at.sequence, out.as_slice());
    }

    /// Returns the core's id of the input at this journal sequence.
    #[inline]
    pub(crate) fn id(&self, at: At) -> u64 {
        self.ids.id(at.sequence)
    }

    /// Returns the id by which the venue knows an order; without one the core's id, which the venue refuses.
    #[inline]
    pub(crate) fn id_at_venue(&self, order: &Order) -> ClientOrderId {
        self.aliases.current(order.id).unwrap_or(ClientOrderId(order.id))
    }

    /// Finds the order of a venue message by the id that the order was sent under, or by the venue's own order id.
    #[inline]
    pub(crate) fn find_by_venue_id(&self, venue: VenueId, sent_as: u64, own: u64) -> Option<u32> {
        let was_sent = |order: &Order| order.phase != OrderPhase::Denied || self.aliases.has_alias(order.id);
        let find = |id| self.orders.find(id).filter(|&slot| was_sent(self.orders.get(slot)));
        find(sent_as).or_else(|| self.aliases.find(venue, sent_as, own).and_then(find))
    }

    /// Sends a request to its venue, or queues it behind the requests that wait; returns false if it waits.
    #[inline]
    pub(crate) fn send(&mut self, order: u32, session: u16, request: Request, sent: u64, out: &mut Outputs) -> bool {
        let venue = self.orders.get(order).venue;
        let state = self.venues.get(venue);
        let is_sent = state.sends_at_once();
        if is_sent {
            out.push(Output::Venue { venue, session, request });
        } else {
            state.waiting.push(QueuedRequest { order, session, request, sent });
        }
        is_sent
    }

    /// Adds an order that was sent or waits.
    pub(crate) fn add_order(&mut self, order: Order) -> u32 {
        let slot = self.orders.insert(order);
        *self.counts.counter_of(&order) += 1;
        self.positions.change_working(order.position, order.side, 0, order.exposure(0));
        self.update_open_value(None, Some((&order, 0, 0)));
        slot
    }

    /// Replaces an order's state, and updates its position, the account's open value and the counts.
    #[inline]
    pub(crate) fn update_order(&mut self, slot: u32, next: &Order) {
        let order = self.orders.get_mut(slot);
        *self.counts.counter_of(order) -= 1;
        *self.counts.counter_of(next) += 1;
        if order.has_same_exposure(next) {
            let is_outstanding = next.cancel != NONE;
            let has_changed = (order.cancel != NONE) != is_outstanding && next.is_open();
            *order = *next;
            if has_changed {
                self.orders.note_cancel(slot, is_outstanding);
            }
        } else {
            self.update_exposure(slot, next);
        }
    }

    fn update_exposure(&mut self, slot: u32, next: &Order) {
        let before = std::mem::replace(self.orders.get_mut(slot), *next);
        let (quantity, price) = self.orders.pending_replace(&before);
        let (new_quantity, new_price) = self.orders.pending_replace(next);
        let (exposure, new_exposure) = (before.exposure(quantity), next.exposure(new_quantity));
        self.positions.change_working(next.position, next.side, exposure, new_exposure);
        if before.reversible() != next.reversible() {
            self.positions.change_working(next.position, next.side.opposite(), before.reversible(), next.reversible());
        }
        self.update_open_value(Some((&before, quantity, price)), Some((next, new_quantity, new_price)));
        self.orders.note_change(slot, &before, next);
        if !self.extensions.is_empty() && !before.is_open() && next.is_open() {
            self.reschedule_end(next.id);
        }
    }

    /// Updates the account's open value and order count for a changed order. Each state comes with the total and the
    /// price that its pending replace asks for.
    fn update_open_value(&mut self, before: Option<(&Order, i64, i64)>, after: Option<(&Order, i64, i64)>) {
        let Some((order, ..)) = before.or(after) else { return };
        let size = self.trading.contract_size(order.symbol);
        let held = |state: Option<(&Order, i64, i64)>| {
            state.map_or((0, 0), |(order, quantity, price)| {
                (order.value(quantity, price, size), u32::from(order.is_open()))
            })
        };
        let ((value, orders), (new_value, new_orders)) = (held(before), held(after));
        self.trading.change_totals(order.account, |open| {
            open.value += new_value - value;
            open.orders = open.orders - orders + new_orders;
        });
        if self.self_match.is_enabled && self.trading.prevents_self_match(order.account) {
            self.update_self_match(before, after);
        }
    }

    /// Updates the self-match book in the same way.
    #[cold]
    fn update_self_match(&mut self, before: Option<(&Order, i64, i64)>, after: Option<(&Order, i64, i64)>) {
        let replacing = |quantity: i64, price: i64| (quantity != 0).then_some(price);
        if let Some((order, quantity, price)) = before.filter(|(order, ..)| order.may_match()) {
            self.self_match.remove(order, replacing(quantity, price));
        }
        if let Some((order, quantity, price)) = after.filter(|(order, ..)| order.may_match()) {
            self.self_match.add(order, replacing(quantity, price));
        }
    }

    /// Computes every account's open value and order count anew, and at a day's end also begins its other totals anew.
    pub(crate) fn recount(&mut self, day_ended: bool) {
        self.trading.reset_totals(day_ended);
        self.self_match = SelfMatchBook::default();
        for slot in 0..self.orders.len() {
            let order = *self.orders.get(slot);
            let (quantity, price) = self.orders.pending_replace(&order);
            self.update_open_value(None, Some((&order, quantity, price)));
        }
        self.rebuild_self_match();
    }

    /// Rebuilds the self-match book of all accounts that have self-match prevention.
    pub(crate) fn rebuild_self_match(&mut self) {
        self.self_match = SelfMatchBook::default();
        self.self_match.is_enabled = self.trading.prevents_any_self_match();
        if !self.self_match.is_enabled {
            return;
        }
        let mut from = 0;
        while let Some(slot) = self.orders.next_open(from, u32::MAX) {
            from = slot + 1;
            let order = *self.orders.get(slot);
            let (quantity, price) = self.orders.pending_replace(&order);
            if self.trading.prevents_self_match(order.account) {
                self.update_self_match(None, Some((&order, quantity, price)));
            }
        }
    }

    /// Books a fill; a negative quantity takes part of a fill back.
    pub(crate) fn book_fill(&mut self, order: &Order, price: i64, quantity: i64) {
        if self.positions.has_unpriced && self.trading.price(order.symbol) == 0 {
            // No other price of the symbol is known.
            self.note_first_price(order.symbol, price);
            self.trading.set_price(order.symbol, price);
        }
        self.positions.book_fill(order.position, order.side, quantity, price);
        let size = self.trading.contract_size(order.symbol);
        let value = size.value(i128::from(price.unsigned_abs()) * i128::from(quantity));
        let value = value.clamp(-MAX_VALUE, MAX_VALUE);
        self.trading.change_totals(order.account, |open| {
            open.traded = open.traded.saturating_add(value);
            open.fills += u64::from(quantity > 0);
        });
    }

    /// Values the positions in a symbol at its first price, as of the start of the day.
    #[inline]
    pub(crate) fn note_first_price(&mut self, symbol: SymbolId, price: i64) {
        if self.positions.has_unpriced && price != 0 && self.trading.price(symbol) == 0 {
            self.positions.set_first_price(symbol, price);
        }
    }
}
