//! Warm-up: while the OMS is idle, a second OMS takes orders through the same code.
//!
//! ```text
//!   real        lanes ─> Inline::poll ─> journal, core ─> lanes        an order now and then
//!   warm-up     lanes ─> Inline::poll ─> journal, core ─> lanes        an order each hundred microseconds
//!               └─── private memory ───┘   └ no order of the real OMS
//! ```
//!
//! After milliseconds of spinning, an order runs cold: through code, cache lines and address translations that have not
//! been used. So the same functions run on a second OMS that shares only its code with the first, and the first OMS's
//! next cache lines are read. No warm-up order can reach the first OMS's journal, lanes, digest or counts: the second
//! OMS has its own, and the first is only a shared reference. Design: `docs/design/warm-up.md`.

use std::hint::black_box;

use tickpath_clock::{Clock, RequestRate, TokenBucket, Wait};
use tickpath_log::Writer;
use tickpath_market::{
    AccountId, ClientOrderId, Kind, NewOrder, OrderType, Price, Quantity, Side, SymbolId, TimeInForce, TopOfBook,
    VenueId,
};
use tickpath_oms_core::{
    AccountLimits, Boot, Config, Core, FirmLimits, Grant, Input, Instrument, OrderView, SessionRules,
};
use tickpath_oms_journal::journal::Journal;
use tickpath_oms_journal::{JournalError, LaneKind};
use zerocopy::IntoBytes;

use crate::OmsError;
use crate::lane_source::LaneSource;
use crate::outbound::Outbound;
use crate::sequencer::Sequencer;
use crate::triggers::ReferencePrices;

/// Orders that the second core keeps before it drops them.
const ORDERS: u64 = 256;

/// Client of a second OMS.
pub(crate) struct WarmUpClient {
    requests: Writer,
    order: NewOrder,
    /// Number of orders sent.
    pub(crate) sent: u64,
}

impl<C: Clock> Sequencer<C> {
    /// Returns a second OMS like this one, the lane that it reads, and the client that sends on it; `None` if nothing
    /// can be traded. The path by a line is warmed only as far as the journal and the core.
    fn warm_up_oms(&self) -> Result<Option<(Self, LaneSource, WarmUpClient)>, OmsError> {
        let real = self;
        let Some((session, order, venue)) = first_order(real) else { return Ok(None) };
        let lane = real.release.venues.log(venue).and_then(Outbound::log).unwrap_or(real.journal.log());
        let like = |log: &Writer| log.warm_up_log().map_err(JournalError::Disk);
        let journal = Journal::for_warm_up(like(real.journal.log())?.writer, &real.journal);
        let mut second = Sequencer::bare(real.clock.clone(), journal, Core::new(Config::default()));
        second.release.venues.install(venue, Outbound::new(like(lane)?.writer));
        let reports = real.release.sessions.get(usize::from(session)).and_then(Outbound::log).map(like).transpose()?;
        second.release.sessions.extend(reports.map(|made| Outbound::new(made.writer)));
        second.market.sees_ticks = real.market.sees_ticks;
        let calibration = *real.clock.calibration();
        let (ticks_per_second, boot_id) = (calibration.ticks_per_second, calibration.boot_id);
        let now = real.clock.ticks();
        let utc_ns = calibration.utc_ns_of(now);
        second.apply_and_release(now, &Input::Boot(Boot { epoch: 1, boot_id, ticks_per_second, utc_ns }))?;
        for definition in real.definitions.all().filter_map(|input| adapted_definition(input, session, &order)) {
            second.apply_and_release(now, &definition)?;
        }
        let requests = like(lane)?;
        let bucket = TokenBucket::new(RequestRate::default(), &calibration, now);
        let source = LaneSource::new(LaneKind::Requests(0), Some(requests.reader), bucket, false);
        Ok(Some((second, source, WarmUpClient { requests: requests.writer, order, sent: 0 })))
    }

    /// Returns a second OMS if the configuration asks for it and the thread spins. Without a second OMS, for lack of
    /// memory for instance, only an order after a silence takes longer.
    pub(crate) fn warm_up_for(&self, config: &crate::Config) -> Option<(Self, LaneSource, WarmUpClient)> {
        let is_wanted = config.warm_up && matches!(config.wait, Wait::Busy | Wait::Adaptive);
        is_wanted.then(|| self.warm_up_oms().ok().flatten()).flatten()
    }

    /// Reads the memory that an order like this one needs next.
    fn prefetch(&self, like: &OrderView) {
        if let Some(lane) = self.release.venues.log(like.venue).and_then(Outbound::log) {
            lane.warm_up(size_of::<NewOrder>());
        }
        if let Some(log) = self.release.sessions.get(usize::from(like.session)).and_then(Outbound::log) {
            log.warm_up(size_of::<tickpath_market::ExecutionReport>());
        }
        self.core.prefetch_order(self.journal.tail().sequence, like);
        // The next outputs overwrite the last ones.
        self.outputs.iter().for_each(|output| {
            black_box(*output);
        });
        black_box((self.reference(like.symbol, 0), self.release.prefetch(like.session)));
        self.journal.prefetch();
    }
}

/// Counter of idle turns, of which one now and then is for a warm-up.
pub(crate) struct IdleTurns {
    turns: u32,
    /// Idle turns between two warm-ups: some hundred microseconds, of which a warm-up takes one, and the message of a
    /// line three more. Four times as often gains nothing, and four times as seldom costs the order after a long silence
    /// a tenth.
    every: u32,
}

impl IdleTurns {
    /// A turn that reads memory alone takes some fifty nanoseconds.
    const OF_MEMORY: u32 = 2048;
    /// A turn that polls sockets takes a microsecond or two.
    const OF_SOCKETS: u32 = 64;

    /// Returns the counter of a thread that polls sockets in each turn, or none.
    pub(crate) fn new(polls_sockets: bool) -> Self {
        Self { turns: 0, every: if polls_sockets { Self::OF_SOCKETS } else { Self::OF_MEMORY } }
    }

    /// Notes the amount of work of a turn. A turn with work restarts the count, because more work may be near.
    #[inline(always)]
    pub(crate) fn note_work(&mut self, work: usize) {
        self.turns *= u32::from(work == 0);
    }

    /// Notes that the thread has slept: the next idle turn is for a warm-up.
    pub(crate) fn note_sleep(&mut self) {
        self.turns = self.every - 1;
    }

    /// Counts an idle turn; returns true if the turn is for a warm-up.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(self.every)
    }
}

impl WarmUpClient {
    /// Number of warm-ups at a start, so that the first order runs as warm as the second.
    pub(crate) const WARM_UPS: u32 = 300;

    /// Sends the last tick and an order to the second OMS, and reads the memory that the real OMS's next order needs.
    pub(crate) fn send_order<C: Clock>(
        &mut self,
        real: &Sequencer<C>,
        second: &mut Sequencer<C>,
    ) -> Result<(), OmsError> {
        if self.sent.is_multiple_of(ORDERS) {
            second.core.clear_orders();
        }
        self.sent += 1;
        if let Some(newest) = real.core.latest_order() {
            real.prefetch(&newest);
            if newest.symbol == self.order.symbol {
                (self.order.price, self.order.quantity) = (newest.price, newest.quantity);
                self.order.order_type = newest.order_type.code();
            }
        }
        let symbol = self.order.symbol;
        if let Some(&ReferencePrices { price, stamp, bid, ask, .. }) = real.market.known(symbol) {
            second.apply_top_of_book(stamp, &TopOfBook { bid, ask, symbol, ..TopOfBook::default() })?;
            // Before the first order the reference price is as good as any.
            if self.order.price == Price::ZERO {
                self.order.price = price;
            }
        }
        self.order.client_order_id = ClientOrderId(self.sent);
        let sent = self.requests.publish(real.clock.ticks(), Kind::NewOrder.code(), self.order.as_bytes());
        sent.map(drop).map_err(OmsError::Lane)
    }
}

/// Returns an order that the real OMS might take, with its session and venue.
fn first_order<C: Clock>(real: &Sequencer<C>) -> Option<(u16, NewOrder, VenueId)> {
    if let Some(newest) = real.core.latest_order() {
        let order = new_order(newest.symbol, newest.account, newest.price, newest.quantity);
        return Some((newest.session, order, newest.venue));
    }
    let instrument = real.definitions.instruments_from(SymbolId(0)).next()?;
    let account = real.definitions.all().find_map(|input| match input {
        Input::Account(account) => Some(account.account),
        _ => None,
    })?;
    let session = real.definitions.all().find_map(|input| match input {
        Input::Session(rules) => Some(rules.session),
        _ => None,
    });
    // The reference price replaces zero once it is known.
    let (price, quantity) = (Price::ZERO, instrument.lot.max(Quantity(1)));
    Some((session.unwrap_or(0), new_order(instrument.symbol, account, price, quantity), instrument.venue))
}

fn new_order(symbol: SymbolId, account: AccountId, price: Price, quantity: Quantity) -> NewOrder {
    NewOrder {
        price,
        quantity,
        symbol,
        account,
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        time_in_force: TimeInForce::ImmediateOrCancel.code(),
        ..NewOrder::default()
    }
}

/// Returns a definition for the second OMS if it concerns the order. Rate limits are removed, because the second OMS
/// takes more messages, and the session becomes its only session, 0.
fn adapted_definition(input: &Input, session: u16, order: &NewOrder) -> Option<Input> {
    let (symbol, account) = (order.symbol, order.account);
    match *input {
        Input::Instrument(new) if new.symbol == symbol => Some(Input::Instrument(Instrument { rate_limit: 0, ..new })),
        Input::Account(new) if new.account == account => {
            Some(Input::Account(AccountLimits { rate_limit: 0, order_trade_ratio: 0, order_trade_free: 0, ..new }))
        }
        Input::Session(new) if new.session == session => {
            Some(Input::Session(SessionRules { session: 0, rate_limit: 0, ..new }))
        }
        Input::Grant(new) if new.session == session => Some(Input::Grant(Grant { session: 0, ..new })),
        Input::SymbolLimits(new) if new.symbol == symbol && new.account == account => Some(Input::SymbolLimits(new)),
        Input::Venue(new) => Some(Input::Venue(new)),
        Input::Firm(new) => Some(Input::Firm(FirmLimits { rate_limit: 0, ..new })),
        _ => None,
    }
}
