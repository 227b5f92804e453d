//! Questions that admins have venues asked, and the answers, which are kept until the admin fetches them.
//!
//! ```text
//!   Inquire    one order: its OrderStatus is the answer
//!   Reconcile  all orders: fills and OrderStatus of each, then an OrderStatus that names no order. Each report is applied as
//!              always; what an order was before and is behind it, and what is missing at the end, are the differences
//! ```
//! A question is an admin command in the journal; the venue gives its id back in the answer. Nothing here is journaled: what
//! follows from an answer is an input like every report, and a restart forgets the questions.

mod asked;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use tickpath_market::{AccountId, ExecType, ExecutionReport, OrdStatus, OrderId, Quantity, Side, SymbolId, VenueId};
use tickpath_orders::OrderView;

/// Questions that are kept, answered or not; of more the oldest is forgotten.
const MOST: usize = 8;
/// Differences, and positions, that are kept of an answer; more are only counted.
const MOST_ROWS: usize = 1024;

/// Questions, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    list: VecDeque<Question>,
    /// Whether any of them waits.
    is_waiting: bool,
}

/// A question.
#[derive(Debug)]
struct Question {
    /// The record of the command.
    record: u64,
    /// The id that the venue gives back.
    id: u64,
    /// The venue that is asked for all orders; none if the question is after one order.
    all_of: Option<VenueId>,
    /// What the answer has brought so far.
    so_far: Comparison,
    answer: Option<Answer>,
}

/// An answer about all orders that has not ended.
#[derive(Debug, Default)]
struct Comparison {
    /// The order that the last report was of, as the venue calls it, and how it stood here before the first.
    current: Option<(OrderId, Option<OrderView>)>,
    /// Orders of this OMS that were reported.
    told: HashSet<OrderId>,
    orders: u64,
    differing: u64,
    differences: Vec<Difference>,
    /// What the venue's orders have traded.
    traded: Traded,
}

/// What was bought and sold by account and symbol.
type Traded = BTreeMap<(AccountId, SymbolId), [Quantity; 2]>;

/// A venue's answer to a question of an admin.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The last report of the answer, as the venue sent it.
    pub last: ExecutionReport,
    /// Orders that the venue has reported, if it was asked for all.
    pub orders: u64,
    /// Orders in which the two sides differed; not all of them need be among the `differences`.
    pub differing: u64,
    /// The first differences.
    pub differences: Vec<Difference>,
    /// Positions by what both sides' orders have traded, those that differ first.
    pub positions: Vec<Position>,
}

/// An order in which a venue and the OMS differed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// How the OMS had it before the answer; none if the OMS does not know the order.
    pub ours: Option<OrderView>,
    /// How the venue has it; none if the venue did not report the order.
    pub venues: Option<ExecutionReport>,
}

/// What the orders that each side knows have bought and sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The account.
    pub account: AccountId,
    /// The instrument.
    pub symbol: SymbolId,
    /// Bought and sold by the orders that the OMS knows.
    pub ours: [Quantity; 2],
    /// Bought and sold by the orders that the venue has reported.
    pub venues: [Quantity; 2],
}

impl Questions {
    /// Keeps a question that has been asked.
    pub fn ask(&mut self, record: u64, id: u64, all_of: Option<VenueId>) {
        if self.list.len() == MOST {
            self.list.pop_front();
        }
        self.list.push_back(Question { record, id, all_of, so_far: Comparison::default(), answer: None });
        self.is_waiting = true;
    }

    /// Whether a question waits for its answer.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// The answer to the question of this record, if it has come.
    pub fn answer(&self, record: u64) -> Option<&Answer> {
        self.list.iter().find(|question| question.record == record)?.answer.as_ref()
    }

    /// The question that this report belongs to.
    fn of(&mut self, report: &ExecutionReport) -> Option<&mut Question> {
        let is_meant = |question: &&mut Question| question.id == report.client_order_id.0 && question.answer.is_none();
        self.list.iter_mut().find(is_meant)
    }

    /// Looks again whether any question waits.
    fn look(&mut self) {
        self.is_waiting = self.list.iter().any(|question| question.answer.is_none());
    }
}

impl Question {
    /// Whether the venue was asked for all its orders.
    pub fn is_about_all(&self) -> bool {
        self.all_of.is_some()
    }

    /// Takes a report that was applied, with how its order stood before and stands behind it. Returns whether it was the
    /// last of the answer.
    fn hear(&mut self, report: &ExecutionReport, before: Option<OrderView>, after: Option<OrderView>) -> bool {
        let is_status = report.exec_type == ExecType::OrderStatus.code();
        if self.all_of.is_none() || report.ends_answer() {
            return is_status;
        }
        let so_far = &mut self.so_far;
        let before = match so_far.current {
            Some((order, before)) if order == report.order_id => before,
            _ => before,
        };
        so_far.current = Some((report.order_id, before));
        if is_status {
            so_far.compare(report, before, after);
        }
        false
    }

    /// Ends the answer with its last report. `open` are the orders of this OMS that the venue should work, `kept` all that
    /// the OMS knows of the venue.
    fn end(&mut self, last: &ExecutionReport, open: Vec<OrderView>, kept: impl Iterator<Item = OrderView>) {
        let mut so_far = std::mem::take(&mut self.so_far);
        let (mut positions, can_list) = (Vec::new(), self.all_of.is_some() && last.reason == 0);
        if can_list {
            // What was sent behind the question is not in its answer.
            let id = self.id;
            let missing = open.into_iter().filter(|order| order.id.0 < id && !so_far.told.contains(&order.id));
            for ours in missing.collect::<Vec<_>>() {
                so_far.note(Difference { ours: Some(ours), venues: None });
            }
            positions = so_far.positions(kept);
        }
        let Comparison { orders, differing, differences, .. } = so_far;
        self.answer = Some(Answer { last: *last, orders, differing, differences, positions });
    }
}

impl Comparison {
    /// Takes the venue's status of an order.
    fn compare(&mut self, report: &ExecutionReport, before: Option<OrderView>, after: Option<OrderView>) {
        self.orders += 1;
        add(&mut self.traded, (report.account, report.symbol), report.side, report.cumulative_quantity);
        let venues = Some(*report);
        match before.zip(after) {
            Some((before, after)) => {
                self.told.insert(after.id);
                if differ(&before, &after) || after.status == OrdStatus::Unknown {
                    self.note(Difference { ours: Some(before), venues });
                }
            }
            // An order that is over and has never traded lacks nothing here.
            None if report.leaves_quantity.0 == 0 && report.cumulative_quantity.0 == 0 => {}
            None => self.note(Difference { ours: None, venues }),
        }
    }

    fn note(&mut self, difference: Difference) {
        self.differing += 1;
        if self.differences.len() < MOST_ROWS {
            self.differences.push(difference);
        }
    }

    /// Sets what the venue's orders have traded beside what these orders have.
    fn positions(&self, orders: impl Iterator<Item = OrderView>) -> Vec<Position> {
        let mut ours = Traded::new();
        orders.for_each(|order| add(&mut ours, (order.account, order.symbol), order.side.code(), order.cumulative));
        let all: BTreeSet<(AccountId, SymbolId)> = self.traded.keys().chain(ours.keys()).copied().collect();
        let of = |traded: &Traded, key: &(AccountId, SymbolId)| traded.get(key).copied().unwrap_or_default();
        let position = |key: &(AccountId, SymbolId)| Position {
            account: key.0,
            symbol: key.1,
            ours: of(&ours, key),
            venues: of(&self.traded, key),
        };
        let mut positions: Vec<Position> = all.iter().map(position).collect();
        positions.sort_by_key(|position| position.ours == position.venues);
        positions.truncate(MOST_ROWS);
        positions
    }
}

/// Whether the two differ in what a client sees of an order.
fn differ(before: &OrderView, after: &OrderView) -> bool {
    let seen = |order: &OrderView| (order.status, order.cumulative, order.leaves, order.price, order.quantity);
    seen(before) != seen(after)
}

/// Adds what an order has traded.
fn add(traded: &mut Traded, key: (AccountId, SymbolId), side: u8, quantity: Quantity) {
    if quantity.0 == 0 {
        return;
    }
    let sums = traded.entry(key).or_default();
    let sum = &mut sums[usize::from(side == Side::Sell.code())];
    *sum = Quantity(sum.0.saturating_add(quantity.0));
}
