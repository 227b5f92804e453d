//! The core's state, and its single entry point [`Core::apply`].

use std::collections::BTreeMap;

use tickpath_market::{AccountId, ClientOrderId, OrderId, Request, Side, SymbolId, VenueId};
use tickpath_oms_risk::{MOST_VALUE, times};
use tickpath_oms_slots::{BitSet, Index, Pages, tag};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::desk::Desk;
use crate::digest::Tally;
use crate::foreign::{Foreign, Foreigners};
use crate::names::Names;
use crate::open::{Link, ORDERS, OpenOrders, Orders};
use crate::order::{Arming, Ask, DeniedId, Fill, GAPPED, NONE, Order};
use crate::own::OwnOrders;
use crate::position::Positions;
use crate::reject::Again;
use crate::route::Routes;
use crate::state::Phase;
use crate::waiting::Waiting;
use crate::{Digest, Input, Instrument, OrderView, Output, Outputs, PositionView};

/// Version of the transition rules. This core does not replay a journal of another version.
pub const CORE_VERSION: u32 = 6;

/// Cancels and replaces, or ids of denied requests, in one page.
const ASKS: usize = 1024;
/// Mark in the index of client ids: the slot is in `asks` ([`ASK`]) or `denied` ([`DENIED`]), not in `orders`.
const ASK: u32 = 1 << 31;
const DENIED: u32 = 1 << 30;
/// Max orders that the tables are pre-sized for; more orders still find room.
const MOST_EXPECTED: usize = 1 << 26;

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
pub struct Counts {
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
    pub strangers: u64,
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
    pub(crate) orders: Orders,
    pub(crate) asks: Pages<Ask, ASKS>,
    pub(crate) fills: Pages<Fill, ORDERS>,
    pub(crate) denied: Pages<DeniedId, ASKS>,
    pub(crate) by_id: Index,
    pub(crate) by_client: Index,
    pub(crate) by_exec: Index,
    pub(crate) live: BitSet,
    pub(crate) open: OpenOrders,
    pub(crate) desk: Desk,
    pub(crate) routes: Routes,
    pub(crate) positions: Positions,
    pub(crate) own: OwnOrders,
    /// Positions may be older than their symbol's first price: the core was loaded from a snapshot of core version 3.
    pub(crate) has_unpriced: bool,
    pub(crate) foreign: Foreigners,
    pub(crate) again: Again,
    pub(crate) names: Names,
    pub(crate) counts: Counts,
    /// Orders that miss a venue sequence, each with the tick at which the gap was seen.
    pub(crate) gapped: Vec<(u32, u64)>,
    /// Pending triggers by order slot.
    pub(crate) armed: BTreeMap<u32, Arming>,
    /// The highest journal sequence of a request.
    pub(crate) last_request: u64,
    pub(crate) epoch: u64,
    pub(crate) boot_id: [u8; 16],
    /// The stamp of the last boot, and its time in nanoseconds since the Unix epoch.
    pub(crate) booted: (u64, u64),
    pub(crate) rate: Rate,
    pub(crate) config: Config,
    pub(crate) tally: Tally,
}

/// Nanoseconds per tick, in units of 2⁻³²: converts with a product and a shift instead of a division.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(u64);

impl Rate {
    /// Converts a clock's frequency in ticks per second.
    pub(crate) fn of(ticks_per_second: u64) -> Self {
        Self(((1_000_000_000_u128 << 32) / u128::from(ticks_per_second.max(1))).min(u64::MAX.into()) as u64)
    }

    /// Returns the raw value for a snapshot.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn saved(number: u64) -> Self {
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
        let expected = config.expected_orders.min(MOST_EXPECTED);
        Self {
            orders: Orders::new(Order::EMPTY, Link::EMPTY, expected),
            asks: Pages::new(Ask::EMPTY, expected),
            fills: Pages::new(Fill::EMPTY, expected),
            denied: Pages::new(DeniedId::EMPTY, 0),
            by_id: Index::with_expected(expected),
            by_client: Index::with_expected(expected),
            by_exec: Index::with_expected(expected),
            live: BitSet::with_expected(expected),
            open: OpenOrders::new(),
            desk: Desk::default(),
            routes: Routes::default(),
            positions: Positions::new(),
            own: OwnOrders::default(),
            has_unpriced: false,
            foreign: Foreigners::default(),
            again: Again::default(),
            names: Names::default(),
            counts: Counts::default(),
            gapped: Vec::new(),
            armed: BTreeMap::new(),
            last_request: 0,
            epoch: 0,
            boot_id: [0; 16],
            booted: (0, 0),
            rate: Rate::of(1_000_000_000),
            config,
            tally: Tally::default(),
        }
    }

    /// Applies one input and leaves its outputs in `out`, which is cleared first. Never panics, for any input.
    pub fn apply(&mut self, at: At, input: &Input, out: &mut Outputs) {
        out.clear();
        match input {
            Input::Request { envelope, request } => self.request(at, envelope, request, out),
            Input::Report(record) => self.report(at, record, out),
            other => self.operate(at, other, out),
        }
        self.tally.add(at.sequence, out.as_slice());
    }

    /// Returns the digest of all outputs so far.
    pub fn digest(&self) -> Digest {
        self.tally.digest()
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
    pub fn order_said(&self, venue: VenueId, name: u64) -> Option<OrderView> {
        self.find_said(venue.0, name, 0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns an instrument, if it is defined.
    pub fn instrument(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.desk.instrument_of(symbol)
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
    pub fn foreign(&self) -> Vec<Foreign> {
        self.foreign.list()
    }

    /// Returns the number of kept reports of unknown orders.
    pub fn foreign_count(&self) -> usize {
        self.foreign.len()
    }

    /// Returns the kill switches that are on: scope, coded as in [`Kill::scope`](crate::Kill::scope), and target.
    pub fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.desk.kills()
    }

    /// Returns the order counts by state and the alarm counts.
    pub fn counts(&self) -> Counts {
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

    /// Returns whether a venue can be reached, by the latest [`Line`](crate::Line) record.
    pub fn is_up(&self, venue: VenueId) -> bool {
        self.routes.iter().nth(usize::from(venue.0)).is_none_or(|route| route.is_up)
    }

    /// Returns the next request to leave for a venue, with its order's id; none if nothing waits or the venue is down.
    pub fn next_waiting(&self, venue: VenueId) -> Option<(OrderId, Request)> {
        let waiting = self.routes.front(venue)?;
        Some((OrderId(self.orders.get(waiting.order).id), waiting.request))
    }

    /// Returns the tick from which the next waiting request's age counts; none if nothing waits or the venue is down.
    pub fn waits_since(&self, venue: VenueId) -> Option<u64> {
        self.routes.front(venue).map(|waiting| waiting.sent)
    }

    /// Returns whether a [`Timer`](crate::Timer) at this moment would put an order in doubt.
    #[inline]
    pub fn wants_timer(&self, stamp: u64) -> bool {
        !self.gapped.is_empty() && self.gapped.iter().any(|&gap| self.is_overdue(gap, stamp))
    }

    /// Returns whether any order misses a venue sequence.
    #[inline]
    pub fn misses_events(&self) -> bool {
        !self.gapped.is_empty()
    }

    /// Returns whether any venue is down or has requests waiting for it.
    #[inline]
    pub fn keeps_waiting(&self) -> bool {
        self.routes.iter().any(|route| !route.is_clear())
    }

    /// Converts ticks to nanoseconds at the rate of the last boot.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.rate.ns(ticks)
    }

    /// Returns the number of orders, cancels, replaces, fills and denied ids in memory: memory grows with their sum.
    pub fn kept(&self) -> u64 {
        [self.orders.len(), self.asks.len(), self.fills.len(), self.denied.len()].into_iter().map(u64::from).sum()
    }

    /// Returns the durability level of a session.
    pub fn level(&self, session: u16) -> u8 {
        self.desk.rules(session).level
    }

    pub(crate) fn tag(&self, group: u64, id: u64) -> u32 {
        tag(self.config.key, group, id)
    }

    pub(crate) fn find_order(&self, id: u64) -> Option<u32> {
        self.by_id.find(self.tag(0, id), |slot| self.orders.get(slot).id == id)
    }

    /// Returns the id by which the venue knows an order; without one the core's id, which the venue refuses.
    #[inline]
    pub(crate) fn venues_name(&self, order: &Order) -> ClientOrderId {
        self.names.current(order.id).unwrap_or(ClientOrderId(order.id))
    }

    /// Finds the order of a venue message by the id that the order was sent under, or by the venue's own order id.
    #[inline]
    pub(crate) fn find_said(&self, venue: u16, sent_as: u64, own: u64) -> Option<u32> {
        let is_said = |order: &Order| order.phase != Phase::Denied || self.names.knows(order.id);
        let find = |id| self.find_order(id).filter(|&slot| is_said(self.orders.get(slot)));
        find(sent_as).or_else(|| self.names.find(venue, sent_as, own).and_then(find))
    }

    /// Returns the order with this client id, if the id belongs to a new order.
    pub(crate) fn find_original(&self, session: u16, client: u64) -> Option<u32> {
        self.find_client(session, client).filter(|slot| slot & (ASK | DENIED) == 0)
    }

    /// Returns the slot of the request that used a client id, marked with [`ASK`] or [`DENIED`] if it is no order's.
    pub(crate) fn find_client(&self, session: u16, client: u64) -> Option<u32> {
        self.by_client.find(self.tag(session.into(), client), |slot| {
            let used = if slot & ASK != 0 {
                let ask = self.asks.get(slot & !ASK);
                (ask.client, ask.session)
            } else if slot & DENIED != 0 {
                let denied = self.denied.get(slot & !DENIED);
                (denied.client, denied.session)
            } else {
                let order = self.orders.get(slot);
                (order.client, order.session)
            };
            used == (client, session)
        })
    }

    /// Adds an order that was sent or waits, and indexes it.
    pub(crate) fn keep_order(&mut self, order: Order) -> u32 {
        let slot = self.orders.push(order);
        self.by_id.insert(self.tag(0, order.id), slot);
        self.by_client.insert(self.tag(order.session.into(), order.client), slot);
        *self.counts.stand(&order) += 1;
        self.live.set(slot, true);
        self.open.add(&mut self.orders, slot);
        self.positions.expose(order.position, order.side, 0, order.exposure(0));
        self.hold(None, Some((&order, 0, 0)));
        slot
    }

    /// Adds a cancel or a replace that was sent or waits, and uses up its client id.
    pub(crate) fn keep_ask(&mut self, ask: Ask) -> u32 {
        let slot = self.asks.push(ask);
        self.by_client.insert(self.tag(ask.session.into(), ask.client), slot | ASK);
        slot
    }

    /// Uses up the client id of a denied request.
    pub(crate) fn keep_denied(&mut self, session: u16, client: u64) {
        let slot = self.denied.push(DeniedId { client, session, reserved: [0; 6] });
        self.by_client.insert(self.tag(session.into(), client), slot | DENIED);
    }

    /// Replaces an order's state, and updates its position, the account's open value and the counts.
    #[inline]
    pub(crate) fn settle(&mut self, slot: u32, next: &Order) {
        let order = self.orders.get_mut(slot);
        *self.counts.stand(order) -= 1;
        *self.counts.stand(next) += 1;
        if order.holds_as(next) {
            let is_outstanding = next.cancel != NONE;
            let has_changed = (order.cancel != NONE) != is_outstanding && next.is_open();
            *order = *next;
            if has_changed {
                self.open.note_cancel(&mut self.orders, slot, is_outstanding);
            }
        } else {
            self.settle_holding(slot, next);
        }
    }

    fn settle_holding(&mut self, slot: u32, next: &Order) {
        let before = std::mem::replace(self.orders.get_mut(slot), *next);
        let ((held, held_at), (holds, holds_at)) = (self.replacing(&before), self.replacing(next));
        self.positions.expose(next.position, next.side, before.exposure(held), next.exposure(holds));
        if before.recall() != next.recall() {
            self.positions.expose(next.position, next.side.opposite(), before.recall(), next.recall());
        }
        self.hold(Some((&before, held, held_at)), Some((next, holds, holds_at)));
        let is_outstanding = next.cancel != NONE;
        match (before.is_open(), next.is_open()) {
            (false, true) => self.open.enter(&mut self.orders, slot),
            (true, false) => self.open.leave(&mut self.orders, slot),
            (true, true) if (before.cancel != NONE) != is_outstanding => {
                self.open.note_cancel(&mut self.orders, slot, is_outstanding);
            }
            _ => return,
        }
        self.live.set(slot, next.is_open());
    }

    /// Updates the account's open value and order count for a changed order. Each state comes with the total and the
    /// price that its pending replace asks for.
    pub(crate) fn hold(&mut self, before: Option<(&Order, i64, i64)>, after: Option<(&Order, i64, i64)>) {
        let Some((order, ..)) = before.or(after) else { return };
        let multiplier = self.multiplier(order.symbol);
        let held = |at: Option<(&Order, i64, i64)>| {
            at.map_or((0, 0), |(order, quantity, price)| {
                (order.value(quantity, price, multiplier), u32::from(order.is_open()))
            })
        };
        let ((value, orders), (new_value, new_orders)) = (held(before), held(after));
        self.desk.change_open(order.account, |open| {
            open.value += new_value - value;
            open.orders = open.orders - orders + new_orders;
        });
        if self.own.is_kept() && self.desk.keeps_apart(order.account) {
            self.hold_own(before, after);
        }
    }

    /// Updates the self-match book in the same way.
    #[cold]
    fn hold_own(&mut self, before: Option<(&Order, i64, i64)>, after: Option<(&Order, i64, i64)>) {
        let asked = |quantity: i64, price: i64| (quantity != 0).then_some(price);
        if let Some((order, quantity, price)) = before.filter(|(order, ..)| order.may_meet()) {
            self.own.forget(order, asked(quantity, price));
        }
        if let Some((order, quantity, price)) = after.filter(|(order, ..)| order.may_meet()) {
            self.own.note(order, asked(quantity, price));
        }
    }

    /// Rebuilds the self-match book of all accounts that have self-match prevention.
    pub(crate) fn count_own(&mut self) {
        self.own = OwnOrders::default();
        if !self.desk.keeps_any_apart() {
            return;
        }
        self.own = OwnOrders::kept();
        let mut from = 0;
        while let Some(slot) = self.live.next(from) {
            from = slot + 1;
            let order = *self.orders.get(slot);
            let (quantity, price) = self.replacing(&order);
            if self.desk.keeps_apart(order.account) {
                self.hold_own(None, Some((&order, quantity, price)));
            }
        }
    }

    /// Books a fill; a negative quantity takes part of a fill back.
    pub(crate) fn book(&mut self, order: &Order, price: i64, quantity: i64) {
        if self.has_unpriced && self.desk.price(order.symbol) == 0 {
            // No other price of the symbol is known.
            self.note_first_price(order.symbol, price);
            self.desk.set_price(order.symbol, price);
        }
        self.positions.fill(order.position, order.side, quantity, price);
        let multiplier = self.multiplier(order.symbol);
        let value = times(i128::from(price.unsigned_abs()) * i128::from(quantity), multiplier);
        let value = value.clamp(-MOST_VALUE, MOST_VALUE);
        self.desk.change_open(order.account, |open| {
            open.traded = open.traded.saturating_add(value);
            open.fills += u64::from(quantity > 0);
        });
    }

    /// Values the positions in a symbol at its first price, as of the start of the day.
    #[inline]
    pub(crate) fn note_first_price(&mut self, symbol: SymbolId, price: i64) {
        if self.has_unpriced && price != 0 && self.desk.price(symbol) == 0 {
            self.positions.begin(symbol, price);
        }
    }

    /// Returns the second of the UTC day at a stamp of this boot.
    pub(crate) fn second_of_day(&self, stamp: u64) -> u32 {
        let (booted, utc_ns) = self.booted;
        let now = utc_ns.saturating_add(self.ns(stamp.saturating_sub(booted)));
        (now / 1_000_000_000 % 86_400) as u32
    }

    /// Returns the total and the price that the pending replace asks for; zeros without a pending replace.
    pub(crate) fn replacing(&self, order: &Order) -> (i64, i64) {
        self.ask(order.replace).map_or((0, 0), |ask| (ask.quantity, ask.price))
    }

    pub(crate) fn ask(&self, slot: u32) -> Option<&Ask> {
        (slot != NONE).then(|| self.asks.get(slot))
    }

    /// Returns how far the position reaches on this side, working orders included.
    pub(crate) fn reach(&self, position: u32, side: Side) -> i128 {
        self.positions.get(position).reach(side)
    }

    /// Sends a request to its venue, or queues it behind the requests that wait; returns false if it waits.
    #[inline]
    pub(crate) fn send(&mut self, order: u32, session: u16, request: Request, sent: u64, out: &mut Outputs) -> bool {
        let venue = VenueId(self.orders.get(order).route);
        let route = self.routes.get(venue);
        let leaves = route.is_clear();
        if leaves {
            out.push(Output::Venue { venue, session, request });
        } else {
            route.waiting.push(Waiting { order, session, request, sent });
        }
        leaves
    }

    /// Marks an order that misses a venue sequence and starts its gap timer.
    pub(crate) fn note_gap(&mut self, slot: u32, stamp: u64) {
        let order = self.orders.get_mut(slot);
        if order.marks & GAPPED == 0 {
            order.marks |= GAPPED;
            self.gapped.push((slot, stamp));
        }
    }

    pub(crate) fn is_overdue(&self, (slot, since): (u32, u64), stamp: u64) -> bool {
        let venue = usize::from(self.orders.get(slot).route);
        let most = self.routes.iter().nth(venue).map_or(0, |route| route.rules.max_gap_ns);
        self.rate.ns(stamp.saturating_sub(since)) >= most
    }

    pub(crate) fn multiplier(&self, symbol: SymbolId) -> i64 {
        self.desk.multiplier(symbol)
    }
}

impl Counts {
    /// Returns the counter that an order belongs to.
    pub(crate) fn stand(&mut self, order: &Order) -> &mut u64 {
        match order.phase {
            Phase::Denied => &mut self.withdrawn,
            Phase::Queued | Phase::Armed => &mut self.queued,
            Phase::Sent => &mut self.sending,
            Phase::Lost | Phase::Unknown => &mut self.unknown,
            Phase::Open if order.is_filled() => &mut self.done,
            Phase::Open => &mut self.working,
            Phase::Expired | Phase::Canceled => &mut self.done,
            Phase::Rejected => &mut self.rejected,
        }
    }
}
