//! An order with all that was ever said of it, and what that comes to.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, OrderType, Price, Quantity, Side,
    TimeInForce, VenueId, VenueOrderId,
};
use tickpath_orders::OrderView;

/// An order with all that happened to it.
pub struct Life {
    pub new: NewOrder,
    pub id: u64,
    pub session: u16,
    pub venue: u16,
    /// What came of it, recounted from the beginning after each word.
    pub sum: Sum,
    first: Sum,
    words: Vec<Word>,
}

/// What can be said of an order.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    /// The client, or somebody for it, asks for a cancel (no quantity) or a replace.
    Asked(Asked),
    /// What waited here has left.
    Left(u64),
    /// What was sent never left.
    Returned(u64),
    /// What waited here was refused.
    Refused(u64),
    /// It waited here and was taken back.
    TakenBack,
    /// The venue reports an event; it numbers its events, or does not.
    Report(ExecutionReport, bool),
    /// What waited here may have left.
    MayHaveLeft(u64),
    /// Price, if it has a limit, and total of what waits for its trigger.
    Rearmed(Option<i64>, i64),
    /// Its trigger holds: it leaves, or waits for its venue.
    Fired { queued: bool, valued: i64 },
    /// It has not left after all.
    ArmedAgain,
    /// The venue answers a question, which was asked after the last doubt, or before it.
    Answer(ExecutionReport, bool),
    /// Requests may be lost, or reports.
    Doubt { reports: bool },
    /// A number is missing for too long.
    Missed,
    /// An operator says where it stands, and how much was filled.
    Resolved(OrdStatus, i64),
    /// The day has ended.
    DayEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub id: u64,
    pub client: u64,
    /// The session that asks.
    pub by: u16,
    /// Total and price, if it is a replace.
    pub replace: Option<(i64, i64)>,
    pub waits: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
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

/// What the words come to.
#[derive(Clone)]
pub struct Sum {
    pub stand: Stand,
    pub price: i64,
    pub valued: i64,
    pub quantity: i64,
    /// Quantity of each execution, and the number of the amendment that it comes from.
    pub fills: BTreeMap<u64, (i64, u64)>,
    pub filled: i64,
    pub net: i128,
    pub told: i64,
    pub cancel: Option<Asked>,
    pub replace: Option<Asked>,
    pub highest: u64,
    pub venue_id: u64,
    numbers: BTreeSet<u64>,
    /// All numbers up to this one count as seen.
    skipped: u64,
    /// A number is missing, and too old to be waited for.
    hole: bool,
    terms: u64,
    /// It ended by a word without a number.
    soft: bool,
    /// Messages of it may be lost, and no question that was asked since is answered.
    pub doubted: bool,
    /// What an operator has booked and no fill has accounted for.
    pub(super) word: i64,
}

impl Life {
    pub fn new(new: NewOrder, id: u64, session: u16, venue: u16, queued: bool, valued: i64) -> Self {
        let first = Sum {
            stand: if queued { Stand::Queued } else { Stand::Sent },
            price: new.price.0,
            valued,
            quantity: new.quantity.0,
            fills: BTreeMap::new(),
            filled: 0,
            net: 0,
            told: 0,
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
            word: 0,
        };
        Self { new, id, session, venue, sum: first.clone(), first, words: Vec::new() }
    }

    /// One that waits for its trigger.
    pub fn armed(new: NewOrder, id: u64, session: u16, venue: u16, valued: i64) -> Self {
        let life = Self::new(new, id, session, venue, false, valued);
        let first = Sum { stand: Stand::Armed, ..life.first };
        Self { sum: first.clone(), first, ..life }
    }

    /// Adds a word; false if it says nothing that is kept.
    pub fn tell(&mut self, word: Word) -> bool {
        self.words.push(word);
        let mut sum = self.first.clone();
        let mut says = false;
        for &word in &self.words {
            says = sum.take(word);
        }
        self.sum = sum;
        says
    }

    pub fn is_open(&self) -> bool {
        self.sum.is_open()
    }

    pub fn side(&self) -> Side {
        Side::from_code(self.new.side).unwrap()
    }

    /// Its client may still name it: its day has not ended without its venue's word.
    pub fn has_its_name(&self) -> bool {
        !self.words.iter().any(|word| matches!(word, Word::DayEnd))
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

    /// What any report says of it.
    pub fn told(&self, client: u64) -> ExecutionReport {
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

impl Sum {
    pub fn is_live(&self) -> bool {
        use Stand::{Armed, Lost, Open, Queued, Sent, Unknown};
        matches!(self.stand, Armed | Queued | Sent | Lost | Open | Unknown)
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self.stand, Stand::Lost | Stand::Unknown)
    }

    /// May still be filled, and is not filled; one that still waits for an answer to something is not.
    pub fn is_open(&self) -> bool {
        let is_filled = self.stand == Stand::Open && self.filled >= self.quantity;
        self.is_live() && !(is_filled && self.replace.is_none() && self.cancel.is_none())
    }

    pub fn leaves(&self) -> i64 {
        if self.is_live() { self.quantity.saturating_sub(self.filled.max(self.told)).max(0) } else { 0 }
    }

    /// What may still move the position, with a replace on its way or without.
    pub fn exposure(&self, with_replace: bool) -> i64 {
        let asked = self.replace.filter(|_| with_replace).and_then(|asked| asked.replace);
        let total = self.quantity.max(asked.map_or(0, |(total, _)| total)).max(self.told);
        if self.stand == Stand::Armed {
            return 0;
        }
        let most = if self.is_live() { total } else { self.told };
        most.saturating_sub(self.filled).max(0)
    }

    /// What that is worth.
    pub fn value(&self, with_replace: bool, multiplier: i64) -> i128 {
        let asked = self.replace.filter(|_| with_replace).and_then(|asked| asked.replace);
        let price = i128::from(self.valued).abs().max(i128::from(asked.map_or(0, |(_, price)| price)).abs());
        let points = price * i128::from(self.exposure(with_replace));
        points.checked_mul(multiplier.into()).unwrap_or(i128::MAX).min(1 << 94)
    }

    /// Every number up to the highest was seen.
    pub fn is_complete(&self) -> bool {
        let from = self.skipped.max(self.highest.saturating_sub(64));
        !self.hole && (from + 1..=self.highest).all(|number| self.numbers.contains(&number))
    }

    /// The fills are what the venue says, and no more than was asked for.
    pub fn adds_up(&self) -> bool {
        self.filled == self.told && self.filled <= self.quantity
    }

    /// What a client can see of it.
    pub fn seen(&self) -> (Stand, i64, i64, i64, Option<u64>, Option<u64>) {
        let id = |asked: Option<Asked>| asked.map(|asked| asked.id);
        (self.stand, self.price, self.quantity, self.leaves(), id(self.cancel), id(self.replace))
    }

    fn take(&mut self, word: Word) -> bool {
        match word {
            Word::Asked(asked) if asked.replace.is_some() => self.replace = Some(asked),
            Word::Asked(asked) => self.cancel = Some(asked),
            Word::Left(id) => self.moved(id, false),
            Word::Returned(id) => self.moved(id, true),
            Word::Refused(id) if self.replace.is_some_and(|asked| asked.id == id) => self.replace = None,
            Word::Refused(_) => self.end(Stand::Denied),
            Word::TakenBack => {
                self.end(Stand::Canceled);
                self.soft = true;
            }
            Word::Report(report, numbered) => return self.hear(&report, numbered),
            Word::MayHaveLeft(id) => self.moved(id, false),
            Word::Rearmed(terms, quantity) => {
                self.quantity = quantity;
                if let Some(price) = terms {
                    (self.price, self.valued) = (price, price);
                }
            }
            Word::Fired { queued, valued } => {
                self.stand = if queued { Stand::Queued } else { Stand::Sent };
                self.valued = valued;
            }
            Word::ArmedAgain => (self.stand, self.doubted) = (Stand::Armed, false),
            Word::Answer(report, is_since) => {
                self.doubted &= !is_since;
                return self.answer(&report);
            }
            Word::Doubt { reports } => {
                let is_asked = [self.cancel, self.replace].into_iter().flatten().any(|asked| !asked.waits);
                if reports {
                    self.miss()
                } else {
                    self.lose()
                }
                self.doubted |= self.is_unknown() && (reports || is_asked);
            }
            Word::Missed => self.miss(),
            Word::Resolved(status, filled) => self.resolve(status, filled),
            Word::DayEnd => self.end(Stand::Expired),
        }
        true
    }

    fn end(&mut self, stand: Stand) {
        self.stand = stand;
        (self.cancel, self.replace) = (None, None);
    }

    /// A request left, or waits here.
    fn moved(&mut self, id: u64, waits: bool) {
        for asked in [&mut self.cancel, &mut self.replace].into_iter().flatten() {
            if asked.id == id {
                asked.waits = waits;
                return;
            }
        }
        self.stand = if waits { Stand::Queued } else { Stand::Sent };
    }

    fn miss(&mut self) {
        if self.is_live() && !matches!(self.stand, Stand::Queued | Stand::Armed) {
            self.stand = Stand::Unknown;
        }
    }

    fn lose(&mut self) {
        self.stand = match self.stand {
            Stand::Sent | Stand::Lost => Stand::Lost,
            Stand::Open | Stand::Unknown => Stand::Unknown,
            other => other,
        };
    }

    fn resolve(&mut self, status: OrdStatus, filled: i64) {
        self.net += i128::from(filled) - i128::from(self.filled);
        self.word = self.word.saturating_add(filled.saturating_sub(self.filled));
        (self.filled, self.told) = (filled, filled);
        self.end(match status {
            OrdStatus::Canceled => Stand::Canceled,
            OrdStatus::Expired => Stand::Expired,
            OrdStatus::Rejected => Stand::Rejected,
            _ => Stand::Open,
        });
        self.soft = self.stand != Stand::Open;
        self.doubted = false;
        self.skip(self.highest);
    }

    fn skip(&mut self, number: u64) {
        self.highest = self.highest.max(number);
        self.skipped = self.highest;
        self.hole = false;
    }

    /// Notes a number; false if it was seen. What is more than 64 behind counts as new, for nobody knows.
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

    fn hear(&mut self, report: &ExecutionReport, numbered: bool) -> bool {
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
        let is_new = is_new || booked.is_some_and(|(_, was_said)| was_said);
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
        // A venue may change a fill of what has ended.
        let lives = match is_amendment && before.stand != Stand::Rejected {
            true => report.leaves_quantity.0 > 0,
            false => is_about_fill || matches!(what, ExecType::New | ExecType::Replaced),
        };
        self.stand = match is_conflict || (lives && before.soft) {
            true => Stand::Unknown,
            false => before.after(what, number > before.highest),
        };
        self.soft |= self.stand == Stand::Rejected && what == ExecType::Rejected && number == 0;
        if !self.is_live() {
            (self.cancel, self.replace) = (None, None);
        }
        true
    }

    /// What a report tells of the quantities and of the venue's id.
    fn read_figures(&mut self, before: &Sum, booked: i64, what: ExecType, report: &ExecutionReport) {
        let (number, told) = (report.venue_sequence, report.cumulative_quantity.0);
        let is_latest = number > before.highest;
        if report.venue_order_id.0 != 0 && (number == 0 || is_latest || self.venue_id == 0) {
            self.venue_id = report.venue_order_id.0;
        }
        if is_latest {
            self.told = told;
        } else if number == 0 {
            let is_amendment = matches!(what, ExecType::TradeCorrect | ExecType::TradeCancel);
            let taken_back = if is_amendment { booked.min(0) } else { 0 };
            self.told = before.told.saturating_add(taken_back).max(told);
        }
    }

    /// What a report makes of the requests on their way and of the terms; true if it answers the replace.
    fn read_answer(&mut self, before: &Sum, what: ExecType, report: &ExecutionReport) -> bool {
        let number = report.venue_sequence;
        let is_meant = |asked: &Asked| asked.id == report.client_order_id.0;
        let to_cancel = before.cancel.as_ref().is_some_and(is_meant);
        let to_replace = !to_cancel && before.replace.as_ref().is_some_and(is_meant);
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

    /// Whether a report without a number cannot be true together with what was known.
    fn contradicts(
        &self,
        before: &Sum,
        what: ExecType,
        report: &ExecutionReport,
        answers_replace: bool,
        numbered: bool,
    ) -> bool {
        let asked = before.replace.and_then(|asked| asked.replace).map_or(0, |(total, _)| total);
        let most = before.quantity.max(asked);
        match what {
            ExecType::Trade => match before.stand {
                Stand::Rejected => true,
                Stand::Expired | Stand::Canceled => self.filled > before.told,
                _ => self.filled > most,
            },
            ExecType::TradeCorrect | ExecType::TradeCancel => self.filled > most,
            ExecType::Expired | ExecType::Canceled => report.cumulative_quantity.0 < self.filled,
            ExecType::Rejected => numbered || self.filled > 0 || matches!(before.stand, Stand::Open | Stand::Unknown),
            ExecType::Replaced => {
                let is_news = (before.price, before.quantity) != (report.price.0, total(report));
                before.is_live() && !answers_replace && is_news
            }
            _ => false,
        }
    }

    /// Where an order stands after a report that contradicts nothing.
    fn after(&self, what: ExecType, is_latest: bool) -> Stand {
        match (what, self.stand) {
            (_, Stand::Queued | Stand::Armed) => Stand::Unknown,
            (ExecType::New | ExecType::Trade | ExecType::Replaced, Stand::Sent | Stand::Lost) => Stand::Open,
            (ExecType::New | ExecType::Trade | ExecType::Replaced, Stand::Unknown) if is_latest && !self.doubted => {
                Stand::Open
            }
            (ExecType::Rejected, _) => Stand::Rejected,
            (ExecType::Canceled, Stand::Rejected) => Stand::Rejected,
            (ExecType::Canceled, _) => Stand::Canceled,
            (ExecType::Expired, Stand::Rejected | Stand::Canceled) => self.stand,
            (ExecType::Expired, _) => Stand::Expired,
            _ => self.stand,
        }
    }

    /// Takes a venue's answer to a question; false if it says nothing new.
    fn answer(&mut self, report: &ExecutionReport) -> bool {
        let status = OrdStatus::from_code(report.status).unwrap();
        let number = report.venue_sequence;
        if status == OrdStatus::Rejected && number == 0 && report.side == 0 {
            return self.is_not_there(report);
        }
        let stand = match status {
            OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled => Stand::Open,
            OrdStatus::Canceled => Stand::Canceled,
            OrdStatus::Expired | OrdStatus::DoneForDay => Stand::Expired,
            OrdStatus::Rejected => Stand::Rejected,
            _ => return false,
        };
        if matches!(self.stand, Stand::Queued | Stand::Armed) {
            return false;
        }
        let knows_more = number > self.highest || (number == self.highest && number > 0 && !self.is_complete());
        let settles_doubt = self.is_unknown() && number >= self.highest;
        if knows_more || settles_doubt {
            self.stand_as(stand, report);
            return true;
        }
        let has_known_terms = (self.price, self.quantity) == (report.price.0, total(report));
        let is_as_known = if number == 0 { stand == Stand::Open && has_known_terms } else { number == self.highest };
        if is_as_known {
            self.forget_decided(report);
        }
        is_as_known
    }

    fn stand_as(&mut self, stand: Stand, report: &ExecutionReport) {
        self.told = report.cumulative_quantity.0;
        if report.venue_order_id.0 != 0 {
            self.venue_id = report.venue_order_id.0;
        }
        if stand == Stand::Open {
            self.read_terms(report);
        } else if self.filled == self.told && self.filled > self.quantity {
            self.quantity = self.filled;
            if let Some((quantity, price)) = self.replace.and_then(|asked| asked.replace)
                && quantity >= self.filled
            {
                (self.quantity, self.price) = (quantity, price);
            }
        }
        self.skip(report.venue_sequence);
        self.soft = false;
        // What works by an answer from before a loss may be done by now.
        let may_be_done = stand == Stand::Open && self.is_unknown() && self.doubted;
        self.stand = if self.adds_up() && !may_be_done { stand } else { Stand::Unknown };
        self.forget_decided(report);
    }

    /// The venue says that it has no such order.
    fn is_not_there(&mut self, report: &ExecutionReport) -> bool {
        let heard = self.highest > 0 || self.filled > 0 || self.told > 0 || self.venue_id > 0;
        match self.stand {
            Stand::Lost | Stand::Unknown if !heard => (self.stand, self.soft) = (Stand::Rejected, true),
            Stand::Open => self.stand = Stand::Unknown,
            _ => return false,
        }
        self.forget_decided(report);
        true
    }

    /// What was asked before the question was decided before its answer.
    fn forget_decided(&mut self, report: &ExecutionReport) {
        let is_decided = |asked: &Asked| !asked.waits && asked.id < report.client_order_id.0;
        self.cancel = self.cancel.filter(|asked| self.is_live() && !is_decided(asked));
        self.replace = self.replace.filter(|asked| self.is_live() && !is_decided(asked));
    }
}

/// The total quantity that a report tells.
fn total(report: &ExecutionReport) -> i64 {
    report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)
}
