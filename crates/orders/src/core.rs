//! The state, and the one way to change it.

use tickpath_market::{AccountId, OrderId, Side, SymbolId};

use crate::desk::Desk;
use crate::digest::Tally;
use crate::index::{Index, tag};
use crate::order::{Ask, Fill, NONE, Order};
use crate::page::{ORDERS, Pages};
use crate::position::Positions;
use crate::state::Phase;
use crate::{Digest, Input, OrderView, Outputs, Page, PositionView};

/// Cancels and replaces in one page.
const ASKS: usize = 1024;
/// In the index of client ids: the slot is that of a cancel or replace, not of an order.
const ASK: u32 = 1 << 31;
/// Tables are laid out for at most so many orders ahead; more orders still find room.
const MOST_EXPECTED: usize = 1 << 26;

/// How a core is laid out. It changes nothing in what the core says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Orders expected before the next start.
    pub expected_orders: usize,
}

/// Where and when an input was written to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The journal sequence, rising, from 1. A new order's is its id.
    pub sequence: u64,
    /// T1: when the input was seen, in ticks of the host's clock.
    pub stamp: u64,
}

/// Orders by where they stand, and what came in that is worth an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Orders on their way to the venue.
    pub sending: u64,
    /// Orders that the venue works.
    pub working: u64,
    /// Orders that are filled, canceled or expired.
    pub done: u64,
    /// Orders that the venue refused.
    pub rejected: u64,
    /// New orders that were denied here. Their client ids are used up.
    pub denied: u64,
    /// Orders whose state cannot be known. Alarm.
    pub unknown: u64,
    /// Requests of any kind that were denied here.
    pub denied_requests: u64,
    /// Reports that changed nothing: they came before, or a later one said as much.
    pub duplicates: u64,
    /// Reports for orders that are not known here. Alarm.
    pub strangers: u64,
    /// Reports that cannot be true: unknown codes, negative quantities, fills without an id. Alarm.
    pub malformed: u64,
    /// Definitions and switches that cannot be taken. Alarm.
    pub ignored: u64,
}

/// The order management core.
///
/// ```
/// use tickpath_market::{AccountId, ClientOrderId, NewOrder, Price, Quantity, Request, SymbolId};
/// use tickpath_orders::{At, Config, Core, Denial, Envelope, Input, Output, Outputs};
///
/// let mut core = Core::new(Config { expected_orders: 1000 });
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
    pub(crate) orders: Pages<Order, ORDERS>,
    pub(crate) asks: Pages<Ask, ASKS>,
    pub(crate) fills: Pages<Fill, ORDERS>,
    pub(crate) by_id: Index,
    pub(crate) by_client: Index,
    pub(crate) by_exec: Index,
    pub(crate) desk: Desk,
    pub(crate) positions: Positions,
    pub(crate) counts: Counts,
    /// The highest journal sequence of a request.
    pub(crate) last_request: u64,
    tally: Tally,
}

impl Core {
    /// A core that knows nothing: no instrument, no account, no order.
    pub fn new(config: Config) -> Self {
        let expected = config.expected_orders.min(MOST_EXPECTED);
        Self {
            orders: Pages::new(Order::EMPTY, expected),
            asks: Pages::new(Ask::EMPTY, expected),
            fills: Pages::new(Fill::EMPTY, expected),
            by_id: Index::with_expected(expected),
            by_client: Index::with_expected(expected),
            by_exec: Index::with_expected(expected),
            desk: Desk::default(),
            positions: Positions::new(),
            counts: Counts::default(),
            last_request: 0,
            tally: Tally::default(),
        }
    }

    /// Takes one input and leaves what it has to say in `out`, which is cleared first. Never panics, whatever the
    /// input.
    pub fn apply(&mut self, at: At, input: &Input, out: &mut Outputs) {
        out.clear();
        match input {
            Input::Instrument(instrument) => self.counts.ignored += u64::from(!self.desk.instrument(instrument)),
            Input::Account(limits) => self.counts.ignored += u64::from(!self.desk.account(limits)),
            Input::Kill(kill) => self.counts.ignored += u64::from(!self.desk.kill(kill)),
            Input::Request { envelope, request } => self.request(at, envelope, request, out),
            Input::Report(report) => self.report(report, out),
        }
        self.tally.add(at.sequence, out.as_slice());
    }

    /// The digest over all outputs so far.
    pub fn digest(&self) -> Digest {
        self.tally.digest()
    }

    /// An order by the core's id; denied new orders too.
    pub fn order(&self, id: OrderId) -> Option<OrderView> {
        self.find_order(id.0).map(|slot| self.orders.get(slot).view())
    }

    /// The position of an account in a symbol; flat if it never traded.
    pub fn position(&self, account: AccountId, symbol: SymbolId) -> PositionView {
        self.positions.find(account, symbol).map(|slot| *self.positions.get(slot)).unwrap_or_default()
    }

    /// Orders by where they stand, and alarms.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether a [`Page`] should be given soon. Without one the core builds its own when it needs it.
    pub fn wants_page(&self) -> bool {
        self.orders.wants_page()
    }

    /// Takes memory for the next orders. The results are the same with it and without.
    pub fn give_page(&mut self, page: Page) {
        self.orders.give_page(page.orders);
        self.fills.give_page(page.fills);
        for (turn, buckets) in page.buckets.into_iter().enumerate() {
            match turn % 3 {
                0 => self.by_id.give_page(buckets),
                1 => self.by_client.give_page(buckets),
                _ => self.by_exec.give_page(buckets),
            }
        }
    }

    pub(crate) fn find_order(&self, id: u64) -> Option<u32> {
        self.by_id.find(tag(0, id), |slot| self.orders.get(slot).id == id)
    }

    /// The order that a client names, if the id is that of a new order.
    pub(crate) fn find_original(&self, session: u16, client: u64) -> Option<u32> {
        self.find_client(session, client).filter(|slot| slot & ASK == 0)
    }

    /// What used a client's id up: an order's slot, or a cancel's or replace's with a mark.
    pub(crate) fn find_client(&self, session: u16, client: u64) -> Option<u32> {
        self.by_client.find(tag(session.into(), client), |slot| {
            if slot & ASK == 0 {
                let order = self.orders.get(slot);
                order.client == client && order.session == session
            } else {
                let ask = self.asks.get(slot & !ASK);
                ask.client == client && ask.session == session
            }
        })
    }

    /// Keeps a new order, denied or sent.
    pub(crate) fn keep_order(&mut self, order: Order) {
        let slot = self.orders.push(order);
        self.by_id.insert(tag(0, order.id), slot);
        self.by_client.insert(tag(order.session.into(), order.client), slot);
        *self.counts.stand(&order) += 1;
        if order.position != NONE {
            self.positions.expose(order.position, order.side, 0, order.exposure(0));
        }
    }

    /// Keeps a cancel or a replace, denied or sent.
    pub(crate) fn keep_ask(&mut self, ask: Ask) -> u32 {
        let slot = self.asks.push(ask);
        self.by_client.insert(tag(ask.session.into(), ask.client), slot | ASK);
        slot
    }

    /// Puts an order's new state in place; position and counts follow.
    pub(crate) fn settle(&mut self, slot: u32, next: Order) {
        let before = *self.orders.get(slot);
        *self.orders.get_mut(slot) = next;
        let exposed = before.exposure(self.replacing(&before));
        let exposes = next.exposure(self.replacing(&next));
        self.positions.expose(next.position, next.side, exposed, exposes);
        *self.counts.stand(&before) -= 1;
        *self.counts.stand(&next) += 1;
    }

    pub(crate) fn book(&mut self, order: &Order, quantity: i64) {
        self.positions.fill(order.position, order.side, quantity);
    }

    /// The total that a replace on its way asks for; zero if there is none.
    pub(crate) fn replacing(&self, order: &Order) -> i64 {
        self.ask(order.replace).map_or(0, |ask| ask.quantity)
    }

    pub(crate) fn ask(&self, slot: u32) -> Option<&Ask> {
        (slot != NONE).then(|| self.asks.get(slot))
    }

    /// How far the position reaches on this side.
    pub(crate) fn reach(&self, position: u32, side: Side) -> i128 {
        self.positions.get(position).reach(side)
    }
}

impl Counts {
    /// The count that an order belongs to.
    fn stand(&mut self, order: &Order) -> &mut u64 {
        match order.phase {
            Phase::Denied => &mut self.denied,
            Phase::Sent => &mut self.sending,
            Phase::Lost | Phase::Unknown => &mut self.unknown,
            Phase::Open if order.filled > 0 && order.filled >= order.quantity => &mut self.done,
            Phase::Open => &mut self.working,
            Phase::Expired | Phase::Canceled => &mut self.done,
            Phase::Rejected => &mut self.rejected,
        }
    }
}
