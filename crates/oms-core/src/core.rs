//! The core's state, and its single entry point [`Core::apply`].

use std::collections::BTreeMap;

use tickpath_market::{AccountId, ClientOrderId, OrderId, Request, Side, SymbolId, VenueId};
use tickpath_oms_risk::{MAX_VALUE, times_multiplier};
use tickpath_oms_slots::{BitSet, Index, Pages, tag};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::aliases::OrderAliases;
use crate::digest::OutputDigest;
use crate::open_orders::{ORDERS_PER_PAGE, OpenOrders, OrderLink, OrderTable};
use crate::order::{DeniedId, Fill, HAS_GAP, NONE, Order, PendingRequest, PendingTrigger};
use crate::position::PositionTable;
use crate::retry_rules::RetryRules;
use crate::self_match::SelfMatchBook;
use crate::state::OrderPhase;
use crate::trading_config::TradingConfig;
use crate::unknown_reports::{UnknownOrderReport, UnknownOrderReports};
use crate::venue_queue::QueuedRequest;
use crate::venue_table::VenueTable;
use crate::{Digest, Input, Instrument, OrderView, Output, Outputs, PositionView};

/// Version of the transition rules. This core does not replay a journal of another version.
pub const CORE_VERSION: u32 = 6;

/// Cancels and replaces, or ids of denied requests, in one page.
const REQUESTS_PER_PAGE: usize = 1024;
/// Mark in the index of client ids: the slot is in `pending` ([`PENDING_MARK`]) or `denied` ([`DENIED_MARK`]), not in `orders`.
const PENDING_MARK: u32 = 1 << 31;
const DENIED_MARK: u32 = 1 << 30;
/// Max orders that the tables are pre-sized for; more orders still find room.
const MAX_EXPECTED: usize = 1 << 26;

/// Memory layout of a core. It changes no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Secret seed of the id indexes, so that clients cannot choose ids that collide. Best a random number.
    pub key: u64,
}

/// Journal sequence and timestamp of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The journal sequence, rising, from 1. With the epoch it forms the id of a new order.
    pub sequence: u64,
    /// T1: the time at which the OMS received the input, in ticks of the host's clock.
    pub stamp: u64,
}

/// Order counts by state, and counts of inputs that deserve an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CoreCounts {
    /// Orders that wait in the OMS for their venue or for their trigger.
    pub queued: u64,
    /// Orders in flight to the venue.
    pub sending: u64,
    /// Orders working at the venue.
    pub working: u64,
    /// Orders that are filled, canceled or expired.
    pub done: u64,
    /// Orders that the venue rejected.
    pub rejected: u64,
    /// Orders that waited in the OMS and were denied before they could leave.
    pub withdrawn: u64,
    /// Orders in doubt (`Unknown`). Alarm.
    pub unknown: u64,
    /// Denied requests of any kind.
    pub denied_requests: u64,
    /// Reports that changed nothing: duplicates, or superseded by a later report.
    pub duplicates: u64,
    /// Reports of orders that the core does not know. Alarm.
    pub unknown_order_reports: u64,
    /// Reports that name a known order with another symbol, side, account or venue, and book nothing. Alarm.
    pub mismatched: u64,
    /// Reports that contradict the known state of their order, which became `Unknown`. Alarm.
    pub contradictions: u64,
    /// Reports that cannot be true: unknown codes, negative quantities, fills without an id. Alarm.
    pub malformed: u64,
    /// Control inputs (definitions, kill switches, admin commands) that the core refused. Alarm.
    pub ignored: u64,
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
    pub(crate) orders: OrderTable,
    pub(crate) pending: Pages<PendingRequest, REQUESTS_PER_PAGE>,
    pub(crate) fills: Pages<Fill, ORDERS_PER_PAGE>,
    pub(crate) denied: Pages<DeniedId, REQUESTS_PER_PAGE>,
    pub(crate) by_id: Index,
    pub(crate) by_client: Index,
    pub(crate) by_exec: Index,
    pub(crate) live: BitSet,
    pub(crate) open: OpenOrders,
    pub(crate) trading: TradingConfig,
    pub(crate) routes: VenueTable,
    pub(crate) positions: PositionTable,
    pub(crate) self_match: SelfMatchBook,
    /// Positions may be older than their symbol's first price: the core was loaded from a snapshot of core version 3.
    pub(crate) has_unpriced: bool,
    pub(crate) unknown_reports: UnknownOrderReports,
    pub(crate) retries: RetryRules,
    pub(crate) aliases: OrderAliases,
    pub(crate) counts: CoreCounts,
    /// Orders that miss a venue sequence, each with the tick at which the gap was seen.
    pub(crate) gapped: Vec<(u32, u64)>,
    /// Pending triggers by order slot.
    pub(crate) armed: BTreeMap<u32, PendingTrigger>,
    /// The highest journal sequence of a request.
    pub(crate) last_request: u64,
    pub(crate) epoch: u64,
    pub(crate) boot_id: [u8; 16],
    /// The stamp of the last boot, and its time in nanoseconds since the Unix epoch.
    pub(crate) booted: (u64, u64),
    pub(crate) rate: TickRate,
    pub(crate) config: Config,
    pub(crate) output_digest: OutputDigest,
}

/// Nanoseconds per tick, in units of 2⁻³²: converts with a product and a shift instead of a division.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickRate(u64);

impl TickRate {
    /// Converts a clock's frequency in ticks per second.
    pub(crate) fn of(ticks_per_second: u64) -> Self {
        Self(((1_000_000_000_u128 << 32) / u128::from(ticks_per_second.max(1))).min(u64::MAX.into()) as u64)
    }

    /// Returns the raw value for a snapshot.
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    pub(crate) fn from_raw(number: u64) -> Self {
        Self(number)
    }

    #[inline]
    pub(crate) fn ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}

impl Core {
    /// Creates a core without instruments, accounts or orders. Until the first boot record a tick counts as a
    /// nanosecond.
    pub fn new(config: Config) -> Self {
        let expected = config.expected_orders.min(MAX_EXPECTED);
        Self {
            orders: OrderTable::new(Order::EMPTY, OrderLink::EMPTY, expected),
            pending: Pages::new(PendingRequest::EMPTY, expected),
            fills: Pages::new(Fill::EMPTY, expected),
            denied: Pages::new(DeniedId::EMPTY, 0),
            by_id: Index::with_expected(expected),
            by_client: Index::with_expected(expected),
            by_exec: Index::with_expected(expected),
            live: BitSet::with_expected(expected),
            open: OpenOrders::new(),
            trading: TradingConfig::default(),
            routes: VenueTable::default(),
            positions: PositionTable::new(),
            self_match: SelfMatchBook::default(),
            has_unpriced: false,
            unknown_reports: UnknownOrderReports::default(),
            retries: RetryRules::default(),
            aliases: OrderAliases::default(),
            counts: CoreCounts::default(),
            gapped: Vec::new(),
            armed: BTreeMap::new(),
            last_request: 0,
            epoch: 0,
            boot_id: [0; 16],
            booted: (0, 0),
            rate: TickRate::of(1_000_000_000),
            config,
            output_digest: OutputDigest::default(),
        }
    }

    /// Applies one input and leaves its outputs in `out`, which is cleared first. Never panics, for any input.
    pub fn apply(&mut self, at: At, input: &Input, out: &mut Outputs) {
        out.clear();
        match input {
            Input::Request { envelope, request } => self.request(at, envelope, request, out),
            Input::Report(record) => self.report(at, record, out),
            other => self.apply_control(at, other, out),
        }
        self.output_digest.add(at.sequence, out.as_slice());
    }

    /// Returns the digest of all outputs so far.
    pub fn digest(&self) -> Digest {
        self.output_digest.digest()
    }

    /// Returns an order by the core's id. A request denied on arrival has no view: only its client id is kept.
    pub fn order(&self, id: OrderId) -> Option<OrderView> {
        self.find_order(id.0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns the symbol of an order by its session's own id.
    pub fn symbol_of(&self, session: u16, original: ClientOrderId) -> Option<SymbolId> {
        self.find_original(session, original.0).map(|slot| self.orders.get(slot).symbol)
    }

    /// Returns an order by its session's own id.
    pub fn order_of(&self, session: u16, original: ClientOrderId) -> Option<OrderView> {
        self.find_original(session, original.0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns an order by the id under which it was sent to the venue.
    pub fn order_by_venue_id(&self, venue: VenueId, name: u64) -> Option<OrderView> {
        self.find_by_venue_id(venue.0, name, 0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns an instrument, if it is defined.
    pub fn instrument(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.trading.instrument_of(symbol)
    }

    /// Returns the position of an account in a symbol; flat if the account never traded the symbol.
    pub fn position(&self, account: AccountId, symbol: SymbolId) -> PositionView {
        self.positions.find(account, symbol).map(|slot| *self.positions.get(slot)).unwrap_or_default()
    }

    /// Returns the positions per account and symbol, in the order of their creation.
    pub fn positions(&self) -> impl Iterator<Item = (AccountId, SymbolId, PositionView)> + '_ {
        self.positions.iter()
    }

    /// Returns the kept reports of unknown orders, oldest first.
    pub fn unknown_order_reports(&self) -> Vec<UnknownOrderReport> {
        self.unknown_reports.list()
    }

    /// Returns the number of kept reports of unknown orders.
    pub fn unknown_order_report_count(&self) -> usize {
        self.unknown_reports.len()
    }

    /// Returns the kill switches that are on: scope, coded as in [`KillSwitch::check_scope`](crate::KillSwitch::check_scope), and target.
    pub fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.trading.kills()
    }

    /// Returns the order counts by state and the alarm counts.
    pub fn counts(&self) -> CoreCounts {
        self.counts
    }

    /// Returns the epoch of the last start; zero before the first.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of requests that wait for a venue.
    pub fn waiting(&self, venue: VenueId) -> usize {
        self.routes.iter().nth(usize::from(venue.0)).map_or(0, |route| route.waiting.len())
    }

    /// Returns whether a venue can be reached, by the latest [`VenueConnection`](crate::VenueConnection) record.
    pub fn is_up(&self, venue: VenueId) -> bool {
        self.routes.iter().nth(usize::from(venue.0)).is_none_or(|route| route.is_up)
    }

    /// Returns the next request to leave for a venue, with its order's id; none if nothing waits or the venue is down.
    pub fn next_waiting(&self, venue: VenueId) -> Option<(OrderId, Request)> {
        let waiting = self.routes.front(venue)?;
        Some((OrderId(self.orders.get(waiting.order).id), waiting.request))
    }

    /// Returns the tick from which the next waiting request's age counts; none if nothing waits or the venue is down.
    pub fn waiting_since(&self, venue: VenueId) -> Option<u64> {
        self.routes.front(venue).map(|waiting| waiting.sent)
    }

    /// Returns whether a [`GapTimer`](crate::GapTimer) at this moment would put an order in doubt.
    #[inline]
    pub fn needs_gap_timer(&self, stamp: u64) -> bool {
        !self.gapped.is_empty() && self.gapped.iter().any(|&gap| self.is_overdue(gap, stamp))
    }

    /// Returns whether any order misses a venue sequence.
    #[inline]
    pub fn has_gaps(&self) -> bool {
        !self.gapped.is_empty()
    }

    /// Returns whether any venue is down or has requests waiting for it.
    #[inline]
    pub fn has_blocked_venue(&self) -> bool {
        self.routes.iter().any(|route| !route.sends_at_once())
    }

    /// Converts ticks to nanoseconds at the rate of the last boot.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.rate.ns(ticks)
    }

    /// Returns the number of orders, cancels, replaces, fills and denied ids in memory: memory grows with their sum.
    pub fn item_count(&self) -> u64 {
        [self.orders.len(), self.pending.len(), self.fills.len(), self.denied.len()].into_iter().map(u64::from).sum()
    }

    /// Returns the durability level of a session.
    pub fn durability_level(&self, session: u16) -> u8 {
        self.trading.rules(session).level
    }

    pub(crate) fn tag(&self, group: u64, id: u64) -> u32 {
        tag(self.config.key, group, id)
    }

    pub(crate) fn find_order(&self, id: u64) -> Option<u32> {
        self.by_id.find(self.tag(0, id), |slot| self.orders.get(slot).id == id)
    }

    /// Returns the id by which the venue knows an order; without one the core's id, which the venue refuses.
    #[inline]
    pub(crate) fn id_at_venue(&self, order: &Order) -> ClientOrderId {
        self.aliases.current(order.id).unwrap_or(ClientOrderId(order.id))
    }

    /// Finds the order of a venue message by the id that the order was sent under, or by the venue's own order id.
    #[inline]
    pub(crate) fn find_by_venue_id(&self, venue: u16, sent_as: u64, own: u64) -> Option<u32> {
        let is_said = |order: &Order| order.phase != OrderPhase::Denied || self.aliases.has_alias(order.id);
        let find = |id| self.find_order(id).filter(|&slot| is_said(self.orders.get(slot)));
        find(sent_as).or_else(|| self.aliases.find(venue, sent_as, own).and_then(find))
    }

    /// Returns the order with this client id, if the id belongs to a new order.
    pub(crate) fn find_original(&self, session: u16, client: u64) -> Option<u32> {
        self.find_client(session, client).filter(|slot| slot & (PENDING_MARK | DENIED_MARK) == 0)
    }

    /// Returns the slot of the request that used a client id, marked with [`PENDING_MARK`] or [`DENIED_MARK`] if it is no order's.
    pub(crate) fn find_client(&self, session: u16, client: u64) -> Option<u32> {
        self.by_client.find(self.tag(session.into(), client), |slot| {
            let used = if slot & PENDING_MARK != 0 {
                let ask = self.pending.get(slot & !PENDING_MARK);
                (ask.client, ask.session)
            } else if slot & DENIED_MARK != 0 {
                let denied = self.denied.get(slot & !DENIED_MARK);
                (denied.client, denied.session)
            } else {
                let order = self.orders.get(slot);
                (order.client, order.session)
            };
            used == (client, session)
        })
    }

    /// Adds an order that was sent or waits, and indexes it.
    pub(crate) fn add_order(&mut self, order: Order) -> u32 {
        let slot = self.orders.push(order);
        self.by_id.insert(self.tag(0, order.id), slot);
        self.by_client.insert(self.tag(order.session.into(), order.client), slot);
        *self.counts.counter_of(&order) += 1;
        self.live.set(slot, true);
        self.open.add(&mut self.orders, slot);
        self.positions.change_working(order.position, order.side, 0, order.exposure(0));
        self.update_open_value(None, Some((&order, 0, 0)));
        slot
    }

    /// Adds a cancel or a replace that was sent or waits, and uses up its client id.
    pub(crate) fn add_pending(&mut self, ask: PendingRequest) -> u32 {
        let slot = self.pending.push(ask);
        self.by_client.insert(self.tag(ask.session.into(), ask.client), slot | PENDING_MARK);
        slot
    }

    /// Uses up the client id of a denied request.
    pub(crate) fn add_denied_id(&mut self, session: u16, client: u64) {
        let slot = self.denied.push(DeniedId { client, session, reserved: [0; 6] });
        self.by_client.insert(self.tag(session.into(), client), slot | DENIED_MARK);
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
                self.open.note_cancel(&mut self.orders, slot, is_outstanding);
            }
        } else {
            self.update_exposure(slot, next);
        }
    }

    fn update_exposure(&mut self, slot: u32, next: &Order) {
        let before = std::mem::replace(self.orders.get_mut(slot), *next);
        let ((held, held_at), (holds, holds_at)) = (self.pending_replace(&before), self.pending_replace(next));
        self.positions.change_working(next.position, next.side, before.exposure(held), next.exposure(holds));
        if before.reversible() != next.reversible() {
            self.positions.change_working(next.position, next.side.opposite(), before.reversible(), next.reversible());
        }
        self.update_open_value(Some((&before, held, held_at)), Some((next, holds, holds_at)));
        let is_outstanding = next.cancel != NONE;
        match (before.is_open(), next.is_open()) {
            (false, true) => self.open.insert(&mut self.orders, slot),
            (true, false) => self.open.remove(&mut self.orders, slot),
            (true, true) if (before.cancel != NONE) != is_outstanding => {
                self.open.note_cancel(&mut self.orders, slot, is_outstanding);
            }
            _ => return,
        }
        self.live.set(slot, next.is_open());
    }

    /// Updates the account's open value and order count for a changed order. Each state comes with the total and the
    /// price that its pending replace asks for.
    pub(crate) fn update_open_value(&mut self, before: Option<(&Order, i64, i64)>, after: Option<(&Order, i64, i64)>) {
        let Some((order, ..)) = before.or(after) else { return };
        let multiplier = self.multiplier(order.symbol);
        let held = |at: Option<(&Order, i64, i64)>| {
            at.map_or((0, 0), |(order, quantity, price)| {
                (order.value(quantity, price, multiplier), u32::from(order.is_open()))
            })
        };
        let ((value, orders), (new_value, new_orders)) = (held(before), held(after));
        self.trading.change_totals(order.account, |open| {
            open.value += new_value - value;
            open.orders = open.orders - orders + new_orders;
        });
        if self.self_match.is_enabled() && self.trading.prevents_self_match(order.account) {
            self.update_self_match(before, after);
        }
    }

    /// Updates the self-match book in the same way.
    #[cold]
    fn update_self_match(&mut self, before: Option<(&Order, i64, i64)>, after: Option<(&Order, i64, i64)>) {
        let asked = |quantity: i64, price: i64| (quantity != 0).then_some(price);
        if let Some((order, quantity, price)) = before.filter(|(order, ..)| order.may_match()) {
            self.self_match.remove(order, asked(quantity, price));
        }
        if let Some((order, quantity, price)) = after.filter(|(order, ..)| order.may_match()) {
            self.self_match.add(order, asked(quantity, price));
        }
    }

    /// Rebuilds the self-match book of all accounts that have self-match prevention.
    pub(crate) fn rebuild_self_match(&mut self) {
        self.self_match = SelfMatchBook::default();
        if !self.trading.prevents_any_self_match() {
            return;
        }
        self.self_match = SelfMatchBook::enabled();
        let mut from = 0;
        while let Some(slot) = self.live.next(from) {
            from = slot + 1;
            let order = *self.orders.get(slot);
            let (quantity, price) = self.pending_replace(&order);
            if self.trading.prevents_self_match(order.account) {
                self.update_self_match(None, Some((&order, quantity, price)));
            }
        }
    }

    /// Books a fill; a negative quantity takes part of a fill back.
    pub(crate) fn book_fill(&mut self, order: &Order, price: i64, quantity: i64) {
        if self.has_unpriced && self.trading.price(order.symbol) == 0 {
            // No other price of the symbol is known.
            self.note_first_price(order.symbol, price);
            self.trading.set_price(order.symbol, price);
        }
        self.positions.book_fill(order.position, order.side, quantity, price);
        let multiplier = self.multiplier(order.symbol);
        let value = times_multiplier(i128::from(price.unsigned_abs()) * i128::from(quantity), multiplier);
        let value = value.clamp(-MAX_VALUE, MAX_VALUE);
        self.trading.change_totals(order.account, |open| {
            open.traded = open.traded.saturating_add(value);
            open.fills += u64::from(quantity > 0);
        });
    }

    /// Values the positions in a symbol at its first price, as of the start of the day.
    #[inline]
    pub(crate) fn note_first_price(&mut self, symbol: SymbolId, price: i64) {
        if self.has_unpriced && price != 0 && self.trading.price(symbol) == 0 {
            self.positions.set_first_price(symbol, price);
        }
    }

    /// Returns the second of the UTC day at a stamp of this boot.
    pub(crate) fn second_of_day(&self, stamp: u64) -> u32 {
        let (booted, utc_ns) = self.booted;
        let now = utc_ns.saturating_add(self.ns(stamp.saturating_sub(booted)));
        (now / 1_000_000_000 % 86_400) as u32
    }

    /// Returns the total and the price that the pending replace asks for; zeros without a pending replace.
    pub(crate) fn pending_replace(&self, order: &Order) -> (i64, i64) {
        self.pending_request(order.replace).map_or((0, 0), |ask| (ask.quantity, ask.price))
    }

    pub(crate) fn pending_request(&self, slot: u32) -> Option<&PendingRequest> {
        (slot != NONE).then(|| self.pending.get(slot))
    }

    /// Returns how far the position reaches on this side, working orders included.
    pub(crate) fn worst_position(&self, position: u32, side: Side) -> i128 {
        self.positions.get(position).worst_position(side)
    }

    /// Sends a request to its venue, or queues it behind the requests that wait; returns false if it waits.
    #[inline]
    pub(crate) fn send(&mut self, order: u32, session: u16, request: Request, sent: u64, out: &mut Outputs) -> bool {
        let venue = VenueId(self.orders.get(order).route);
        let route = self.routes.get(venue);
        let leaves = route.sends_at_once();
        if leaves {
            out.push(Output::Venue { venue, session, request });
        } else {
            route.waiting.push(QueuedRequest { order, session, request, sent });
        }
        leaves
    }

    /// Marks an order that misses a venue sequence and starts its gap timer.
    pub(crate) fn note_gap(&mut self, slot: u32, stamp: u64) {
        let order = self.orders.get_mut(slot);
        if order.marks & HAS_GAP == 0 {
            order.marks |= HAS_GAP;
            self.gapped.push((slot, stamp));
        }
    }

    pub(crate) fn is_overdue(&self, (slot, since): (u32, u64), stamp: u64) -> bool {
        let venue = usize::from(self.orders.get(slot).route);
        let most = self.routes.iter().nth(venue).map_or(0, |route| route.rules.max_gap_ns);
        self.rate.ns(stamp.saturating_sub(since)) >= most
    }

    pub(crate) fn multiplier(&self, symbol: SymbolId) -> i64 {
        self.trading.multiplier(symbol)
    }
}

impl CoreCounts {
    /// Returns the counter that an order belongs to.
    pub(crate) fn counter_of(&mut self, order: &Order) -> &mut u64 {
        match order.phase {
            OrderPhase::Denied => &mut self.withdrawn,
            OrderPhase::Queued | OrderPhase::Armed => &mut self.queued,
            OrderPhase::Sent => &mut self.sending,
            OrderPhase::Lost | OrderPhase::Unknown => &mut self.unknown,
            OrderPhase::Open if order.is_filled() => &mut self.done,
            OrderPhase::Open => &mut self.working,
            OrderPhase::Expired | OrderPhase::Canceled => &mut self.done,
            OrderPhase::Rejected => &mut self.rejected,
        }
    }
}
