//! All that a line does over REST while it is up: questions about orders, and the renewal of the dead man's switch.

use tickpath_clock::{Clock, HostClock};
use tickpath_market::StatusRequest;

use crate::all_orders::AllOrders;
use crate::config::{OkxLineConfig, OkxLineError};
use crate::dead_man_switch::DeadManSwitch;
use crate::inquiries::{Inquiries, InquiryTimes};
use crate::order_ledger::OrderLedger;
use crate::order_table::OrderEntry;
use crate::order_update::OrderUpdate;
use crate::signed_rest::SignedRest;

/// Time beyond its expiry after which an order that is absent at OKX never was there.
const EXPIRY_MARGIN_NS: u64 = 2_000_000_000;
/// Time for which the states of a connect answer status requests, so that the OMS's questions after a connect cost ten
/// requests for a thousand orders.
const FOUND_NS: u64 = 10_000_000_000;

/// Work over REST.
#[derive(Debug)]
pub(crate) struct RestWork {
    pub rest: SignedRest,
    clock: HostClock,
    inquiries: Inquiries,
    all_orders: AllOrders,
    dead_man: Option<DeadManSwitch>,
    /// Times in ticks.
    expiry: u64,
    fills_pause: u64,
    line_began: u64,
    found_until: u64,
}

impl RestWork {
    /// Makes the work of a line.
    pub fn new(config: &OkxLineConfig, instruments: usize, clock: HostClock) -> Result<Self, OkxLineError> {
        let expiry_ns = u64::from(config.valid_ms) * 1_000_000 + EXPIRY_MARGIN_NS;
        Ok(Self {
            rest: SignedRest::new(config, instruments, clock)?,
            clock,
            inquiries: Inquiries::default(),
            all_orders: AllOrders::default(),
            dead_man: config.cancel_all_after_s.map(|seconds| DeadManSwitch::new(seconds, clock.calibration())),
            expiry: clock.calibration().ticks_of_ns(expiry_ns),
            fills_pause: clock.calibration().ticks_of_ns(config.fills_pause_ns),
            line_began: clock.ticks(),
            found_until: 0,
        })
    }

    /// Begins with a connection that is up; `found` are the open orders. Fills that OKX has reported in sum, now or
    /// before, are asked for.
    pub fn begin(&mut self, found: Vec<OrderUpdate>, ledger: &mut OrderLedger) {
        let times = self.times();
        let now = times.now;
        for state in &found {
            ledger.orders.enter(state);
        }
        self.inquiries.begin(found);
        for (order, entry) in ledger.orders.lacking_fills() {
            self.inquiries.ask_for_fills(order, entry, &times);
        }
        self.all_orders = AllOrders::default();
        self.found_until = now + self.clock.calibration().ticks_of_ns(FOUND_NS);
        if let Some(switch) = &mut self.dead_man {
            switch.begin(now);
        }
    }

    /// Takes a status request.
    pub fn ask(&mut self, request: &StatusRequest, ledger: &mut OrderLedger) {
        match request.asks_for_all_orders() {
            true => self.all_orders.ask(request),
            false => self.inquiries.ask(request, ledger),
        }
    }

    /// Notes that a request or a row may have changed an order.
    #[inline]
    pub fn note_change(&mut self, order: u64) {
        self.inquiries.note_change(order);
        self.all_orders.note_change(order);
    }

    /// Asks for the missing fills of an order.
    pub fn ask_for_fills(&mut self, order: u64, entry: &OrderEntry) {
        let times = self.times();
        self.inquiries.ask_for_fills(order, entry, &times);
    }

    /// Takes all work further. Returns the amount of work done; the error is the reason why the line is lost.
    pub fn advance(&mut self, ledger: &mut OrderLedger) -> Result<usize, String> {
        let times = self.times();
        if times.now > self.found_until {
            self.inquiries.forget_found();
        }
        let Self { rest, inquiries, all_orders, dead_man, .. } = self;
        let venue_ns = rest.venue_ns(times.now);
        let mut done = inquiries.advance(rest, ledger, &times)?;
        done += all_orders.advance(rest, ledger, inquiries, venue_ns)?;
        if let Some(switch) = dead_man {
            done += switch.advance(rest, times.now)?;
        }
        Ok(done)
    }

    fn times(&self) -> InquiryTimes {
        let Self { expiry, line_began, fills_pause: pause, .. } = *self;
        InquiryTimes { now: self.clock.ticks(), expiry, line_began, pause }
    }
}
