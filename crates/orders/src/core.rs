//! The state, and the one way to change it.

use std::collections::BTreeMap;

use tickpath_market::{AccountId, ClientOrderId, OrderId, Request, Side, SymbolId, VenueId};
use tickpath_risk::{MOST_VALUE, times};
use tickpath_slots::{BitSet, Index, Pages, tag};
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

/// The version of the transition rules. A journal of another version is not replayed with this core.
pub const CORE_VERSION: u32 = 6;

/// Cancels and replaces, and ids of denied requests, in one page.
const ASKS: usize = 1024;
/// In the index of client ids: the slot is that of a cancel or replace, or of a denied request, not of an order.
const ASK: u32 = 1 << 31;
const DENIED: u32 = 1 << 30;
/// Tables are laid out for at most so many orders ahead; more orders still find room.
const MOST_EXPECTED: usize = 1 << 26;

/// How a core is laid out. It changes nothing in what the core says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Mixed into the places of ids in the indices, so that who chooses ids cannot choose those that collide. Best a
    /// number that nobody knows.
    pub key: u64,
}

/// Where and when an input was written to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The journal sequence, rising, from 1. With the epoch it makes the id of a new order.
    pub sequence: u64,
    /// T1: when the input was seen, in ticks of the host's clock.
    pub stamp: u64,
}

/// Orders by where they stand, and what came in that is worth an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counts {
    /// Orders that wait here: for their venue, or for their trigger.
    pub queued: u64,
    /// Orders on their way to the venue.
    pub sending: u64,
    /// Orders that the venue works.
    pub working: u64,
    /// Orders that are filled, canceled or expired.
    pub done: u64,
    /// Orders that the venue refused.
    pub rejected: u64,
    /// Orders that waited here and were denied before they could leave.
    pub withdrawn: u64,
    /// Orders whose state cannot be known. Alarm.
    pub unknown: u64,
    /// Requests of any kind that were denied here.
    pub denied_requests: u64,
    /// Reports that changed nothing: they came before, or a later one said as much.
    pub duplicates: u64,
    /// Reports for orders that are not known here. Alarm.
    pub strangers: u64,
    /// Reports that name an order of ours with another symbol, side, account or venue. Nothing of them is booked. Alarm.
    pub mismatched: u64,
    /// Reports that contradict what is known of their order: it became `Unknown`. Alarm.
    pub contradictions: u64,
    /// Reports that cannot be true: unknown codes, negative quantities, fills without an id. Alarm.
    pub malformed: u64,
    /// Definitions, switches and operator's words that cannot be taken. Alarm.
    pub ignored: u64,
}

/// The order management core.
///
/// ```
/// use tickpath_market::{AccountId, ClientOrderId, NewOrder, Price, Quantity, Request, SymbolId};
/// use tickpath_orders::{At, Config, Core, Denial, Envelope, Input, Output, Outputs};
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
    /// Positions may be older than the first price of their symbol: a core of version 3 has saved them.
    pub(crate) has_unpriced: bool,
    pub(crate) foreign: Foreigners,
    pub(crate) again: Again,
    pub(crate) names: Names,
    pub(crate) counts: Counts,
    /// Orders that miss a venue sequence, and since when, in ticks.
    pub(crate) gapped: Vec<(u32, u64)>,
    /// What orders with a trigger wait for, by slot.
    pub(crate) armed: BTreeMap<u32, Arming>,
    /// The highest journal sequence of a request.
    pub(crate) last_request: u64,
    pub(crate) epoch: u64,
    pub(crate) boot_id: [u8; 16],
    /// The stamp of the last boot, and when that was in nanoseconds since the Unix epoch.
    pub(crate) booted: (u64, u64),
    pub(crate) rate: Rate,
    pub(crate) config: Config,
    pub(crate) tally: Tally,
}

/// Nanoseconds of a tick, in units of 2⁻³²: a product and a shift instead of a division.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(u64);

impl Rate {
    /// Of a clock of so many ticks a second.
    pub(crate) fn of(ticks_per_second: u64) -> Self {
        Self(((1_000_000_000_u128 << 32) / u128::from(ticks_per_second.max(1))).min(u64::MAX.into()) as u64)
    }

    /// As it is written down, and from there.
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
    /// A core that knows nothing: no instrument, no account, no order. Until a boot says otherwise a tick is a
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

    /// Takes one input and leaves what it has to say in `out`, which is cleared first. Never panics, whatever the
    /// input.
    pub fn apply(&mut self, at: At, input: &Input, out: &mut Outputs) {
        out.clear();
        match input {
            Input::Request { envelope, request } => self.request(at, envelope, request, out),
            Input::Report(record) => self.report(at, record, out),
            other => self.operate(at, other, out),
        }
        self.tally.add(at.sequence, out.as_slice());
    }

    /// The digest over all outputs so far.
    pub fn digest(&self) -> Digest {
        self.tally.digest()
    }

    /// An order by the core's id. Of a denied request only its client's id is kept.
    pub fn order(&self, id: OrderId) -> Option<OrderView> {
        self.find_order(id.0).map(|slot| self.orders.get(slot).view())
    }

    /// The symbol of an order that a session names by its own id.
    pub fn symbol_of(&self, session: u16, original: ClientOrderId) -> Option<SymbolId> {
        self.find_original(session, original.0).map(|slot| self.orders.get(slot).symbol)
    }

    /// The order that a session names by its own id.
    pub fn order_of(&self, session: u16, original: ClientOrderId) -> Option<OrderView> {
        self.find_original(session, original.0).map(|slot| self.orders.get(slot).view())
    }

    /// The order that its venue was told of by this name.
    pub fn order_said(&self, venue: VenueId, name: u64) -> Option<OrderView> {
        self.find_said(venue.0, name, 0).map(|slot| self.orders.get(slot).view())
    }

    /// An instrument, if it is defined.
    pub fn instrument(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.desk.instrument_of(symbol)
    }

    /// The position of an account in a symbol; flat if it never traded.
    pub fn position(&self, account: AccountId, symbol: SymbolId) -> PositionView {
        self.positions.find(account, symbol).map(|slot| *self.positions.get(slot)).unwrap_or_default()
    }

    /// The positions, each of an account in a symbol, in the order in which they were first needed.
    pub fn positions(&self) -> impl Iterator<Item = (AccountId, SymbolId, PositionView)> + '_ {
        self.positions.iter()
    }

    /// The reports of orders that are not known here, oldest first.
    pub fn foreign(&self) -> Vec<Foreign> {
        self.foreign.list()
    }

    /// How many there are.
    pub fn foreign_count(&self) -> usize {
        self.foreign.len()
    }

    /// The kill switches that are on: each by its scope, as [`Kill`](crate::Kill) has it, and its target.
    pub fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.desk.kills()
    }

    /// Orders by where they stand, and alarms.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The epoch of the last start; zero before the first.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Requests that wait here for a venue.
    pub fn waiting(&self, venue: VenueId) -> usize {
        self.routes.iter().nth(usize::from(venue.0)).map_or(0, |route| route.waiting.len())
    }

    /// Whether a venue can be reached, as far as the core was told.
    pub fn is_up(&self, venue: VenueId) -> bool {
        self.routes.iter().nth(usize::from(venue.0)).is_none_or(|route| route.is_up)
    }

    /// The request that would go next of those that wait for a venue that can be reached: its order's id, and itself.
    pub fn next_waiting(&self, venue: VenueId) -> Option<(OrderId, Request)> {
        let waiting = self.routes.front(venue)?;
        Some((OrderId(self.orders.get(waiting.order).id), waiting.request))
    }

    /// When what would go next to a venue was received, in ticks: it has been growing old since then.
    pub fn waits_since(&self, venue: VenueId) -> Option<u64> {
        self.routes.front(venue).map(|waiting| waiting.sent)
    }

    /// Whether a [`Timer`](crate::Timer) at this moment would put an order in doubt.
    #[inline]
    pub fn wants_timer(&self, stamp: u64) -> bool {
        !self.gapped.is_empty() && self.gapped.iter().any(|&gap| self.is_overdue(gap, stamp))
    }

    /// Whether a number is missing from the events of any order.
    #[inline]
    pub fn misses_events(&self) -> bool {
        !self.gapped.is_empty()
    }

    /// Whether any venue cannot be reached, or has requests that wait for it.
    #[inline]
    pub fn keeps_waiting(&self) -> bool {
        self.routes.iter().any(|route| !route.is_clear())
    }

    /// Nanoseconds of so many ticks, as the core counts them since the last boot.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.rate.ns(ticks)
    }

    /// Orders, cancels, replaces, fills and ids of denied requests that are kept: what memory grows with.
    pub fn kept(&self) -> u64 {
        [self.orders.len(), self.asks.len(), self.fills.len(), self.denied.len()].into_iter().map(u64::from).sum()
    }

    /// The level that a session asks for.
    pub fn level(&self, session: u16) -> u8 {
        self.desk.rules(session).level
    }

    pub(crate) fn tag(&self, group: u64, id: u64) -> u32 {
        tag(self.config.key, group, id)
    }

    pub(crate) fn find_order(&self, id: u64) -> Option<u32> {
        self.by_id.find(self.tag(0, id), |slot| self.orders.get(slot).id == id)
    }

    /// What the venue of an order calls it. One that it knows no name of is told under our id: it refuses that.
    #[inline]
    pub(crate) fn venues_name(&self, order: &Order) -> ClientOrderId {
        self.names.current(order.id).unwrap_or(ClientOrderId(order.id))
    }

    /// The order that something names which was said to a venue, or by it: what it was sent as, and the venue's own id.
    #[inline]
    pub(crate) fn find_said(&self, venue: u16, sent_as: u64, own: u64) -> Option<u32> {
        let is_said = |order: &Order| order.phase != Phase::Denied || self.names.knows(order.id);
        let find = |id| self.find_order(id).filter(|&slot| is_said(self.orders.get(slot)));
        find(sent_as).or_else(|| self.names.find(venue, sent_as, own).and_then(find))
    }

    /// The order that a client names, if the id is that of a new order.
    pub(crate) fn find_original(&self, session: u16, client: u64) -> Option<u32> {
        self.find_client(session, client).filter(|slot| slot & (ASK | DENIED) == 0)
    }

    /// What used a client's id up: an order's slot, or another request's with a mark.
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

    /// Keeps a new order that is sent or waits.
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

    /// Keeps a cancel or a replace that is sent or waits, and uses its client's id up.
    pub(crate) fn keep_ask(&mut self, ask: Ask) -> u32 {
        let slot = self.asks.push(ask);
        self.by_client.insert(self.tag(ask.session.into(), ask.client), slot | ASK);
        slot
    }

    /// Uses up the client's id of a request that was denied.
    pub(crate) fn keep_denied(&mut self, session: u16, client: u64) {
        let slot = self.denied.push(DeniedId { client, session, reserved: [0; 6] });
        self.by_client.insert(self.tag(session.into(), client), slot | DENIED);
    }

    /// Puts an order's new state in place; position, open value and counts follow.
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

    /// Moves what the account has open from how the order stood to how it stands, each with the total and the price
    /// that a replace on its way asks for.
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

    /// The same for what the account must not meet.
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

    /// Finds anew what accounts must not meet.
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

    /// Books a fill, or takes some of one back.
    pub(crate) fn book(&mut self, order: &Order, price: i64, quantity: i64) {
        if self.has_unpriced && self.desk.price(order.symbol) == 0 {
            // Nothing else is known of the price.
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

    /// If this is the first price of a symbol, what is held of it was worth that when its day began.
    #[inline]
    pub(crate) fn note_first_price(&mut self, symbol: SymbolId, price: i64) {
        if self.has_unpriced && price != 0 && self.desk.price(symbol) == 0 {
            self.positions.begin(symbol, price);
        }
    }

    /// The second of the day, UTC, at a moment of this boot.
    pub(crate) fn second_of_day(&self, stamp: u64) -> u32 {
        let (booted, utc_ns) = self.booted;
        let now = utc_ns.saturating_add(self.ns(stamp.saturating_sub(booted)));
        (now / 1_000_000_000 % 86_400) as u32
    }

    /// The total and the price that a replace on its way asks for; zeros if there is none.
    pub(crate) fn replacing(&self, order: &Order) -> (i64, i64) {
        self.ask(order.replace).map_or((0, 0), |ask| (ask.quantity, ask.price))
    }

    pub(crate) fn ask(&self, slot: u32) -> Option<&Ask> {
        (slot != NONE).then(|| self.asks.get(slot))
    }

    /// How far the position reaches on this side.
    pub(crate) fn reach(&self, position: u32, side: Side) -> i128 {
        self.positions.get(position).reach(side)
    }

    /// Sends a request on to its venue, or lets it wait for it; false if it waits.
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

    /// Notes that an order misses a venue sequence, from now on.
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
    /// The count that an order belongs to.
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
