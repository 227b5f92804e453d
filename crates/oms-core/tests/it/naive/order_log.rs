//! An order with all its events, and the state that follows from them.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, OrderType, Price, Quantity, Side,
    TimeInForce, VenueId, VenueOrderId,
};
use tickpath_oms_core::OrderView;

use super::contract::Contract;

/// An order with all its events.
pub struct OrderLog {
    pub new: NewOrder,
    pub id: u64,
    pub session: u16,
    pub venue: u16,
    /// State after the last event, recomputed from the first event each time.
    pub sum: LogState,
    first: LogState,
    events: Vec<LogEvent>,
}

/// An event of an order.
#[derive(Debug, Clone, Copy)]
pub enum LogEvent {
    /// A cancel (without a quantity) or a replace, from the order's client or from another session.
    Asked(LogRequest),
    /// The waiting request with this id was sent.
    Left(u64),
    /// The sent request with this id was returned unsent.
    Returned(u64),
    /// The waiting request with this id was rejected.
    Refused(u64),
    /// A waiting order was canceled before it was sent.
    TakenBack,
    /// A venue's report, and whether the venue numbers its events.
    Report(ExecutionReport, bool),
    /// The waiting request with this id may have been sent.
    MayHaveLeft(u64),
    /// New terms of an armed order: its price, if it has a limit, and its total.
    Rearmed(Option<i64>, i64),
    /// The trigger has fired: the order is sent, or waits for its venue.
    Fired { queued: bool, valued: i64 },
    /// The order was not sent and is armed again.
    ArmedAgain,
    /// A venue's answer to a status request, and whether the request was sent after the last doubt.
    Answer(ExecutionReport, bool),
    /// Requests or reports may be lost.
    Doubt { reports: bool },
    /// A venue sequence has been missing for too long.
    Missed,
    /// An operator's status and filled total.
    Resolved(OrdStatus, i64),
    /// The day has ended.
    DayEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRequest {
    pub id: u64,
    pub client: u64,
    /// Requesting session.
    pub by: u16,
    /// Total and price of a replace.
    pub replace: Option<(i64, i64)>,
    pub waits: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Denied,
    Armed,
    Queued,
    Sent,
    Lost,
    Open,
    Unknown,
    Expired,
    Canceled,
    Rejected,
}

/// State of an order after its events.
#[derive(Clone)]
pub struct LogState {
    pub phase: Phase,
    pub price: i64,
    pub valued: i64,
    pub quantity: i64,
    /// Quantity of each execution, and the venue sequence of its last amendment.
    pub fills: BTreeMap<u64, (i64, u64)>,
    pub filled: i64,
    pub net: i128,
    pub reported: i64,
    pub cancel: Option<LogRequest>,
    pub replace: Option<LogRequest>,
    pub highest: u64,
    pub venue_id: u64,
    numbers: BTreeSet<u64>,
    /// All numbers up to this one count as seen.
    skipped: u64,
    /// A number is missing that is too old to be waited for.
    hole: bool,
    terms: u64,
    /// The order ended by an event without a number.
    soft: bool,
    /// Messages may be lost, and no status request sent since is answered.
    pub doubted: bool,
    /// Quantity that an operator has booked and no fill has confirmed.
    pub(super) manual: i64,
}

impl OrderLog {
    pub fn new(new: NewOrder, id: u64, session: u16, venue: u16, queued: bool, valued: i64) -> Self {
        let first = LogState {
            phase: if queued { Phase::Queued } else { Phase::Sent },
            price: new.price.0,
            valued,
            quantity: new.quantity.0,
            fills: BTreeMap::new(),
            filled: 0,
            net: 0,
            reported: 0,
            cancel: None,
            replace: None,
            highest: 0,
            venue_id: 0,
            numbers: BTreeSet::new(),
            skipped: 0,
            hole: false,
            terms: 0,
            soft: false,
            doubted: false,
            manual: 0,
        };
        Self { new, id, session, venue, sum: first.clone(), first, events: Vec::new() }
    }

    /// Creates an order that waits for its trigger.
    pub fn armed(new: NewOrder, id: u64, session: u16, venue: u16, valued: i64) -> Self {
        let life = Self::new(new, id, session, venue, false, valued);
        let first = LogState { phase: Phase::Armed, ..life.first };
        Self { sum: first.clone(), first, ..life }
    }

    /// Adds an event; returns false if it changes nothing.
    pub fn record(&mut self, event: LogEvent) -> bool {
        self.events.push(event);
        let mut sum = self.first.clone();
        let mut has_effect = false;
        for &event in &self.events {
            has_effect = sum.apply(event);
        }
        self.sum = sum;
        has_effect
    }

    pub fn is_open(&self) -> bool {
        self.sum.is_open()
    }

    pub fn side(&self) -> Side {
        Side::from_code(self.new.side).unwrap()
    }

    /// Returns whether its client may still name it: no day has ended for it without a report of its venue.
    pub fn has_its_name(&self) -> bool {
        !self.events.iter().any(|event| matches!(event, LogEvent::DayEnd))
    }

    pub fn is_good_till_cancel(&self) -> bool {
        self.new.time_in_force == TimeInForce::GoodTillCancel.code()
    }

    pub fn view(&self) -> OrderView {
        OrderView {
            id: OrderId(self.id),
            client_order_id: self.new.client_order_id,
            venue_order_id: VenueOrderId(self.sum.venue_id),
            session: self.session,
            account: self.new.account,
            symbol: self.new.symbol,
            side: self.side(),
            order_type: OrderType::from_code(self.new.order_type).unwrap(),
            time_in_force: TimeInForce::from_code(self.new.time_in_force).unwrap(),
            venue: VenueId(self.venue),
            price: Price(self.sum.price),
            quantity: Quantity(self.sum.quantity),
            cumulative: Quantity(self.sum.filled),
            leaves: Quantity(self.sum.leaves()),
            status: self.sum.status(),
            venue_sequence: self.sum.highest,
        }
    }

    /// Returns the fields that every report on this order shares.
    pub fn report_to(&self, client: u64) -> ExecutionReport {
        ExecutionReport {
            order_id: OrderId(self.id),
            client_order_id: ClientOrderId(client),
            venue_order_id: VenueOrderId(self.sum.venue_id),
            cumulative_quantity: Quantity(self.sum.filled),
            leaves_quantity: Quantity(self.sum.leaves()),
            price: Price(self.sum.price),
            symbol: self.new.symbol,
            account: self.new.account,
            status: self.sum.status().code(),
            side: self.new.side,
            ..Default::default()
        }
    }
}

impl LogState {
    pub fn is_live(&self) -> bool {
        use Phase::{Armed, Lost, Open, Queued, Sent, Unknown};
        matches!(self.phase, Armed | Queued | Sent | Lost | Open | Unknown)
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self.phase, Phase::Lost | Phase::Unknown)
    }

    /// Returns whether it is live and not filled; a filled order with an outstanding request counts as open.
    pub fn is_open(&self) -> bool {
        let is_filled = self.phase == Phase::Open && self.filled >= self.quantity;
        self.is_live() && !(is_filled && self.replace.is_none() && self.cancel.is_none())
    }

    pub fn leaves(&self) -> i64 {
        if self.is_live() { self.quantity.saturating_sub(self.filled.max(self.reported)).max(0) } else { 0 }
    }

    /// Returns the quantity that may still move the position, with or without an outstanding replace.
    pub fn exposure(&self, with_replace: bool) -> i64 {
        let asked = self.replace.filter(|_| with_replace).and_then(|asked| asked.replace);
        let total = self.quantity.max(asked.map_or(0, |(total, _)| total)).max(self.reported);
        if self.phase == Phase::Armed {
            return 0;
        }
        let total = if self.is_live() { total } else { self.reported };
        total.saturating_sub(self.filled).max(0)
    }

    /// Returns the value of the exposure.
    pub fn value(&self, with_replace: bool, contract: &Contract) -> i128 {
        let asked = self.replace.filter(|_| with_replace).and_then(|asked| asked.replace);
        let price = i128::from(self.valued).abs().max(i128::from(asked.map_or(0, |(_, price)| price)).abs());
        let points = price * i128::from(self.exposure(with_replace));
        contract.value(points).min(1 << 94)
    }

    /// Returns whether every number up to the highest was seen.
    pub fn is_complete(&self) -> bool {
        let from = self.skipped.max(self.highest.saturating_sub(64));
        !self.hole && (from + 1..=self.highest).all(|number| self.numbers.contains(&number))
    }

    /// Returns whether the fills equal the venue's total and do not exceed the order's quantity.
    pub fn adds_up(&self) -> bool {
        self.filled == self.reported && self.filled <= self.quantity
    }

    /// Returns the state that a client can see.
    pub fn seen(&self) -> (Phase, i64, i64, i64, Option<u64>, Option<u64>) {
        let id = |asked: Option<LogRequest>| asked.map(|asked| asked.id);
        (self.phase, self.price, self.quantity, self.leaves(), id(self.cancel), id(self.replace))
    }

    fn apply(&mut self, event: LogEvent) -> bool {
        match event {
            LogEvent::Asked(asked) if asked.replace.is_some() => self.replace = Some(asked),
            LogEvent::Asked(asked) => self.cancel = Some(asked),
            LogEvent::Left(id) => self.moved(id, false),
            LogEvent::Returned(id) => self.moved(id, true),
            LogEvent::Refused(id) if self.replace.is_some_and(|asked| asked.id == id) => self.replace = None,
            LogEvent::Refused(_) => self.end(Phase::Denied),
            LogEvent::TakenBack => {
                self.end(Phase::Canceled);
                self.soft = true;
            }
            LogEvent::Report(report, numbered) => return self.apply_report(&report, numbered),
            LogEvent::MayHaveLeft(id) => self.moved(id, false),
            LogEvent::Rearmed(terms, quantity) => {
                self.quantity = quantity;
                if let Some(price) = terms {
                    (self.price, self.valued) = (price, price);
                }
            }
            LogEvent::Fired { queued, valued } => {
                self.phase = if queued { Phase::Queued } else { Phase::Sent };
                self.valued = valued;
            }
            LogEvent::ArmedAgain => (self.phase, self.doubted) = (Phase::Armed, false),
            LogEvent::Answer(report, is_since) => {
                self.doubted &= !is_since;
                return self.answer(&report);
            }
            LogEvent::Doubt { reports } => {
                let is_asked = [self.cancel, self.replace].into_iter().flatten().any(|asked| !asked.waits);
                if reports {
                    self.miss()
                } else {
                    self.lose()
                }
                self.doubted |= self.is_unknown() && (reports || is_asked);
            }
            LogEvent::Missed => self.miss(),
            LogEvent::Resolved(status, filled) => self.resolve(status, filled),
            LogEvent::DayEnd => self.end(Phase::Expired),
        }
        true
    }

    fn end(&mut self, phase: Phase) {
        self.phase = phase;
        (self.cancel, self.replace) = (None, None);
    }

    /// Records that a request was sent or waits.
    fn moved(&mut self, id: u64, waits: bool) {
        for asked in [&mut self.cancel, &mut self.replace].into_iter().flatten() {
            if asked.id == id {
                asked.waits = waits;
                return;
            }
        }
        self.phase = if waits { Phase::Queued } else { Phase::Sent };
    }

    fn miss(&mut self) {
        if self.is_live() && !matches!(self.phase, Phase::Queued | Phase::Armed) {
            self.phase = Phase::Unknown;
        }
    }

    fn lose(&mut self) {
        self.phase = match self.phase {
            Phase::Sent | Phase::Lost => Phase::Lost,
            Phase::Open | Phase::Unknown => Phase::Unknown,
            other => other,
        };
    }

    fn resolve(&mut self, status: OrdStatus, filled: i64) {
        self.net += i128::from(filled) - i128::from(self.filled);
        self.manual = self.manual.saturating_add(filled.saturating_sub(self.filled));
        (self.filled, self.reported) = (filled, filled);
        self.end(match status {
            OrdStatus::Canceled => Phase::Canceled,
            OrdStatus::Expired => Phase::Expired,
            OrdStatus::Rejected => Phase::Rejected,
            _ => Phase::Open,
        });
        self.soft = self.phase != Phase::Open;
        self.doubted = false;
        self.skip(self.highest);
    }

    fn skip(&mut self, number: u64) {
        self.highest = self.highest.max(number);
        self.skipped = self.highest;
        self.hole = false;
    }

    /// Notes a number; returns false if it was seen. A number 64 or more behind counts as new, because the core no
    /// longer knows it.
    fn note(&mut self, number: u64) -> bool {
        if self.highest.saturating_sub(number) >= 64 {
            return true;
        }
        let is_new = number > self.skipped && self.numbers.insert(number);
        self.highest = self.highest.max(number);
        let gone = self.skipped + 1..=self.highest.saturating_sub(64);
        self.hole |= gone.into_iter().any(|number| !self.numbers.contains(&number));
        is_new
    }

    fn apply_report(&mut self, report: &ExecutionReport, numbered: bool) -> bool {
        let before = self.clone();
        let number = report.venue_sequence;
        let is_new = number == 0 || self.note(number);
        if report.status == OrdStatus::Unknown.code() {
            self.lose();
            return true;
        }
        let what = ExecType::from_code(report.exec_type).unwrap();
        let is_about_fill = matches!(what, ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel);
        let booked = if is_about_fill { self.fill(what, report, is_new) } else { None };
        let fills = booked.is_some();
        let is_new = is_new || booked.is_some_and(|(_, was_booked)| was_booked);
        let says_nothing = match what {
            _ if is_about_fill => !fills && (number == 0 || !is_new),
            ExecType::Rejected if number == 0 => numbered && !before.is_live(),
            _ => !is_new,
        };
        if says_nothing {
            *self = before;
            return false;
        }
        self.read_figures(&before, booked.map_or(0, |(quantity, _)| quantity), what, report);
        let answers = self.read_answer(&before, what, report);
        let is_conflict = match number {
            0 => self.contradicts(&before, what, report, answers, numbered),
            _ => !is_new || (self.is_complete() && !self.adds_up()),
        };
        let is_amendment = matches!(what, ExecType::TradeCancel | ExecType::TradeCorrect);
        // A venue may amend a fill of an ended order.
        let lives = match is_amendment && before.phase != Phase::Rejected {
            true => report.leaves_quantity.0 > 0,
            false => is_about_fill || matches!(what, ExecType::New | ExecType::Replaced),
        };
        self.phase = match is_conflict || (lives && before.soft) {
            true => Phase::Unknown,
            false => before.after(what, number > before.highest),
        };
        self.soft |= self.phase == Phase::Rejected && what == ExecType::Rejected && number == 0;
        if !self.is_live() {
            (self.cancel, self.replace) = (None, None);
        }
        true
    }

    /// Takes the total and the venue's id from a report.
    fn read_figures(&mut self, before: &LogState, booked: i64, what: ExecType, report: &ExecutionReport) {
        let (number, reported) = (report.venue_sequence, report.cumulative_quantity.0);
        let is_latest = number > before.highest;
        if report.venue_order_id.0 != 0 && (number == 0 || is_latest || self.venue_id == 0) {
            self.venue_id = report.venue_order_id.0;
        }
        if is_latest {
            self.reported = reported;
        } else if number == 0 {
            let is_amendment = matches!(what, ExecType::TradeCorrect | ExecType::TradeCancel);
            let taken_back = if is_amendment { booked.min(0) } else { 0 };
            self.reported = before.reported.saturating_add(taken_back).max(reported);
        }
    }

    /// Takes a report's effect on outstanding requests and on the terms; returns true if it answers the replace.
    fn read_answer(&mut self, before: &LogState, what: ExecType, report: &ExecutionReport) -> bool {
        let number = report.venue_sequence;
        let is_answered = |asked: &LogRequest| asked.id == report.client_order_id.0;
        let to_cancel = before.cancel.as_ref().is_some_and(is_answered);
        let to_replace = !to_cancel && before.replace.as_ref().is_some_and(is_answered);
        if what == ExecType::CancelRejected && to_cancel {
            self.cancel = None;
        }
        if matches!(what, ExecType::CancelRejected | ExecType::Replaced) && to_replace {
            self.replace = None;
        }
        let tells_terms = match what {
            ExecType::Replaced if number == 0 => to_replace,
            ExecType::Replaced => number > before.terms,
            ExecType::TradeCorrect | ExecType::TradeCancel => {
                let ends = [OrdStatus::Canceled, OrdStatus::Expired, OrdStatus::Rejected].map(OrdStatus::code);
                number > before.terms && !ends.contains(&report.status)
            }
            _ => false,
        };
        if tells_terms {
            self.read_terms(report);
        }
        to_replace
    }

    fn read_terms(&mut self, report: &ExecutionReport) {
        self.price = report.price.0;
        self.valued = if report.price.0 == 0 { self.valued } else { report.price.0 };
        self.quantity = total(report);
        self.terms = self.terms.max(report.venue_sequence);
    }

    /// Returns whether a report without a number contradicts the known state.
    fn contradicts(
        &self,
        before: &LogState,
        what: ExecType,
        report: &ExecutionReport,
        answers_replace: bool,
        numbered: bool,
    ) -> bool {
        let asked = before.replace.and_then(|asked| asked.replace).map_or(0, |(total, _)| total);
        let most = before.quantity.max(asked);
        match what {
            ExecType::Trade => match before.phase {
                Phase::Rejected => true,
                Phase::Expired | Phase::Canceled => self.filled > before.reported,
                _ => self.filled > most,
            },
            ExecType::TradeCorrect | ExecType::TradeCancel => self.filled > most,
            ExecType::Expired | ExecType::Canceled => report.cumulative_quantity.0 < self.filled,
            ExecType::Rejected => numbered || self.filled > 0 || matches!(before.phase, Phase::Open | Phase::Unknown),
            ExecType::Replaced => {
                let is_news = (before.price, before.quantity) != (report.price.0, total(report));
                before.is_live() && !answers_replace && is_news
            }
            _ => false,
        }
    }

    /// Returns the state after a report that contradicts nothing.
    fn after(&self, what: ExecType, is_latest: bool) -> Phase {
        match (what, self.phase) {
            (_, Phase::Queued | Phase::Armed) => Phase::Unknown,
            (ExecType::New | ExecType::Trade | ExecType::Replaced, Phase::Sent | Phase::Lost) => Phase::Open,
            (ExecType::New | ExecType::Trade | ExecType::Replaced, Phase::Unknown) if is_latest && !self.doubted => {
                Phase::Open
            }
            (ExecType::Rejected, _) => Phase::Rejected,
            (ExecType::Canceled, Phase::Rejected) => Phase::Rejected,
            (ExecType::Canceled, _) => Phase::Canceled,
            (ExecType::Expired, Phase::Rejected | Phase::Canceled) => self.phase,
            (ExecType::Expired, _) => Phase::Expired,
            _ => self.phase,
        }
    }

    /// Takes a venue's answer to a status request; returns false if it brings nothing new.
    fn answer(&mut self, report: &ExecutionReport) -> bool {
        let status = OrdStatus::from_code(report.status).unwrap();
        let number = report.venue_sequence;
        if status == OrdStatus::Rejected && number == 0 && report.side == 0 {
            return self.is_not_there(report);
        }
        let phase = match status {
            OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled => Phase::Open,
            OrdStatus::Canceled => Phase::Canceled,
            OrdStatus::Expired | OrdStatus::DoneForDay => Phase::Expired,
            OrdStatus::Rejected => Phase::Rejected,
            _ => return false,
        };
        if matches!(self.phase, Phase::Queued | Phase::Armed) {
            return false;
        }
        let knows_more = number > self.highest || (number == self.highest && number > 0 && !self.is_complete());
        let settles_doubt = self.is_unknown() && number >= self.highest;
        if knows_more || settles_doubt {
            self.stand_as(phase, report);
            return true;
        }
        let has_known_terms = (self.price, self.quantity) == (report.price.0, total(report));
        let is_as_known = if number == 0 { phase == Phase::Open && has_known_terms } else { number == self.highest };
        if is_as_known {
            self.forget_decided(report);
        }
        is_as_known
    }

    fn stand_as(&mut self, phase: Phase, report: &ExecutionReport) {
        self.reported = report.cumulative_quantity.0;
        if report.venue_order_id.0 != 0 {
            self.venue_id = report.venue_order_id.0;
        }
        if phase == Phase::Open {
            self.read_terms(report);
        } else if self.filled == self.reported && self.filled > self.quantity {
            self.quantity = self.filled;
            if let Some((quantity, price)) = self.replace.and_then(|asked| asked.replace)
                && quantity >= self.filled
            {
                (self.quantity, self.price) = (quantity, price);
            }
        }
        self.skip(report.venue_sequence);
        self.soft = false;
        // An order that worked before the loss may have ended since.
        let may_be_done = phase == Phase::Open && self.is_unknown() && self.doubted;
        self.phase = if self.adds_up() && !may_be_done { phase } else { Phase::Unknown };
        self.forget_decided(report);
    }

    /// Takes the answer that the venue has no such order.
    fn is_not_there(&mut self, report: &ExecutionReport) -> bool {
        let was_reported = self.highest > 0 || self.filled > 0 || self.reported > 0 || self.venue_id > 0;
        match self.phase {
            Phase::Lost | Phase::Unknown if !was_reported => (self.phase, self.soft) = (Phase::Rejected, true),
            Phase::Open => self.phase = Phase::Unknown,
            _ => return false,
        }
        self.forget_decided(report);
        true
    }

    /// Removes the requests that were decided before the answer: those sent before the status request.
    fn forget_decided(&mut self, report: &ExecutionReport) {
        let is_decided = |asked: &LogRequest| !asked.waits && asked.id < report.client_order_id.0;
        self.cancel = self.cancel.filter(|asked| self.is_live() && !is_decided(asked));
        self.replace = self.replace.filter(|asked| self.is_live() && !is_decided(asked));
    }
}

/// Returns the total quantity of a report.
fn total(report: &ExecutionReport) -> i64 {
    report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)
}
