//! Questions that admins send to venues, and the answers, which are kept until the admin fetches them.
//!
//! ```text
//!   QueryStatus  one order: its OrderStatus is the answer
//!   Reconcile    all orders: fills and OrderStatus of each, then an OrderStatus that names no order. Each report is
//!                applied as always; orders that a report changes, and orders missing at the end, are the differences
//! ```
//! A question is an admin command in the journal; the venue returns its id in the answer. Nothing here is journaled:
//! the reports of an answer are inputs like all reports, and a restart drops the questions.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use tickpath_market::{AccountId, ExecType, ExecutionReport, OrdStatus, OrderId, Quantity, Side, SymbolId, VenueId};
use tickpath_oms_core::{Core, OrderView};

/// Max questions that are kept, answered or not; beyond it the oldest is dropped.
const MAX_QUESTIONS: usize = 8;
/// Max differences, and max positions, that are kept of an answer; further differences are only counted.
const MAX_ROWS: usize = 1024;

/// Questions, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    list: VecDeque<VenueQuestion>,
    /// Whether any question waits for its answer.
    pub is_waiting: bool,
}

/// A question.
#[derive(Debug)]
struct VenueQuestion {
    /// Record of the admin command.
    record: u64,
    /// Id that the venue returns in the answer.
    id: u64,
    /// Venue that is asked for all orders; `None` if the question is about one order.
    all_of: Option<VenueId>,
    /// Comparison with the reports so far.
    comparison: OrderComparison,
    answer: Option<VenueAnswer>,
}

/// Comparison of an incomplete answer about all orders with the OMS's orders.
#[derive(Debug, Default)]
struct OrderComparison {
    /// Venue's id of the last report's order, and the order as it stood here before its first report.
    current: Option<(OrderId, Option<OrderView>)>,
    /// Orders of this OMS that were reported.
    reported: HashSet<OrderId>,
    orders: u64,
    differing: u64,
    differences: Vec<OrderDifference>,
    /// Quantities that the venue's orders have traded.
    traded: TradedQuantities,
}

/// Quantities bought and sold, by account and symbol.
type TradedQuantities = BTreeMap<(AccountId, SymbolId), [Quantity; 2]>;

/// A venue's answer to a question of an admin.
#[derive(Debug, Clone)]
pub struct VenueAnswer {
    /// The last report of the answer, as the venue sent it.
    pub last: ExecutionReport,
    /// Orders that the venue has reported, if it was asked for all.
    pub orders: u64,
    /// Number of orders in which the two sides differ; `differences` may hold fewer.
    pub differing: u64,
    /// The first differences.
    pub differences: Vec<OrderDifference>,
    /// Positions from the trades that each side's orders have, those that differ first.
    pub positions: Vec<PositionComparison>,
}

/// An order that the venue and the OMS hold in different states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderDifference {
    /// The order as the OMS had it before the answer; `None` if the OMS does not know the order.
    pub ours: Option<OrderView>,
    /// The order as the venue has it; `None` if the venue did not report the order.
    pub venues: Option<ExecutionReport>,
}

/// Quantities that the orders known to each side have bought and sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionComparison {
    /// The account.
    pub account: AccountId,
    /// The instrument.
    pub symbol: SymbolId,
    /// Quantities bought and sold by the orders that the OMS knows.
    pub ours: [Quantity; 2],
    /// Quantities bought and sold by the orders that the venue has reported.
    pub venues: [Quantity; 2],
}

impl Questions {
    /// Keeps a question that was sent.
    pub fn add(&mut self, record: u64, id: u64, all_of: Option<VenueId>) {
        if self.list.len() == MAX_QUESTIONS {
            self.list.pop_front();
        }
        self.list.push_back(VenueQuestion { record, id, all_of, comparison: OrderComparison::default(), answer: None });
        self.is_waiting = true;
    }

    /// Returns the answer to the question of this record, if it is complete.
    pub fn answer(&self, record: u64) -> Option<&VenueAnswer> {
        self.list.iter().find(|question| question.record == record)?.answer.as_ref()
    }

    /// Returns whether a question waits for this report.
    pub fn has_question_of(&mut self, report: &ExecutionReport) -> bool {
        self.question_of(report).is_some()
    }

    /// Adds a report that the core has applied to the question that it belongs to, with its order before and after. The
    /// last report completes the answer.
    pub fn add_report(
        &mut self,
        core: &Core,
        venue: VenueId,
        report: &ExecutionReport,
        before: Option<OrderView>,
        after: Option<OrderView>,
    ) {
        let Some(question) = self.question_of(report) else { return };
        if !question.add_report(report, before, after) {
            return;
        }
        let is_of_venue = |order: &OrderView| order.venue == venue;
        // Only an answer about all orders is held against all that are open.
        let is_about_all = question.all_of.is_some();
        let live = core.open_orders().filter(|_| is_about_all);
        let open = live.filter(is_of_venue).filter(|order| order.status != OrdStatus::Armed).collect();
        question.complete(report, open, core.all_orders().filter(is_of_venue));
        self.is_waiting = self.list.iter().any(|question| question.answer.is_none());
    }

    /// Returns the question that this report belongs to.
    fn question_of(&mut self, report: &ExecutionReport) -> Option<&mut VenueQuestion> {
        let is_asked =
            |question: &&mut VenueQuestion| question.id == report.client_order_id.0 && question.answer.is_none();
        self.list.iter_mut().find(is_asked)
    }
}

impl VenueQuestion {
    /// Adds a report that was applied, with its order before and after. Returns whether it was the last report of the
    /// answer.
    fn add_report(&mut self, report: &ExecutionReport, before: Option<OrderView>, after: Option<OrderView>) -> bool {
        let is_status = report.exec_type == ExecType::OrderStatus.code();
        if self.all_of.is_none() || report.ends_status_answer() {
            return is_status;
        }
        let comparison = &mut self.comparison;
        let before = match comparison.current {
            Some((order, before)) if order == report.order_id => before,
            _ => before,
        };
        comparison.current = Some((report.order_id, before));
        if is_status {
            comparison.compare(report, before, after);
        }
        false
    }

    /// Ends the answer with its last report. `open` are the orders of this OMS that the venue should work, `kept` all
    /// orders of the venue that the OMS knows.
    fn complete(&mut self, last: &ExecutionReport, open: Vec<OrderView>, kept: impl Iterator<Item = OrderView>) {
        let mut comparison = std::mem::take(&mut self.comparison);
        let (mut positions, can_list) = (Vec::new(), self.all_of.is_some() && last.reason == 0);
        if can_list {
            // Orders that were sent after the question are not in its answer.
            let id = self.id;
            let missing = open.into_iter().filter(|order| order.id.0 < id && !comparison.reported.contains(&order.id));
            for ours in missing.collect::<Vec<_>>() {
                comparison.add_difference(OrderDifference { ours: Some(ours), venues: None });
            }
            positions = comparison.positions(kept);
        }
        let OrderComparison { orders, differing, differences, .. } = comparison;
        self.answer = Some(VenueAnswer { last: *last, orders, differing, differences, positions });
    }
}

impl OrderComparison {
    /// Compares the venue's status of an order with the order here.
    fn compare(&mut self, report: &ExecutionReport, before: Option<OrderView>, after: Option<OrderView>) {
        self.orders += 1;
        add(&mut self.traded, (report.account, report.symbol), report.side, report.cumulative_quantity);
        let venues = Some(*report);
        match before.zip(after) {
            Some((before, after)) => {
                self.reported.insert(after.id);
                if differ(&before, &after) || after.status == OrdStatus::Unknown {
                    self.add_difference(OrderDifference { ours: Some(before), venues });
                }
            }
            // An order that is over and has never traded need not be known here.
            None if report.leaves_quantity.0 == 0 && report.cumulative_quantity.0 == 0 => {}
            None => self.add_difference(OrderDifference { ours: None, venues }),
        }
    }

    fn add_difference(&mut self, difference: OrderDifference) {
        self.differing += 1;
        if self.differences.len() < MAX_ROWS {
            self.differences.push(difference);
        }
    }

    /// Returns the quantities that the venue's orders have traded, beside those of the given orders.
    fn positions(&self, orders: impl Iterator<Item = OrderView>) -> Vec<PositionComparison> {
        let mut ours = TradedQuantities::new();
        orders.for_each(|order| add(&mut ours, (order.account, order.symbol), order.side.code(), order.cumulative));
        let all: BTreeSet<(AccountId, SymbolId)> = self.traded.keys().chain(ours.keys()).copied().collect();
        let of = |traded: &TradedQuantities, key: &(AccountId, SymbolId)| traded.get(key).copied().unwrap_or_default();
        let position = |key: &(AccountId, SymbolId)| PositionComparison {
            account: key.0,
            symbol: key.1,
            ours: of(&ours, key),
            venues: of(&self.traded, key),
        };
        let mut positions: Vec<PositionComparison> = all.iter().map(position).collect();
        positions.sort_by_key(|position| position.ours == position.venues);
        positions.truncate(MAX_ROWS);
        positions
    }
}

/// Returns whether two states of an order differ for a client.
fn differ(before: &OrderView, after: &OrderView) -> bool {
    let seen = |order: &OrderView| (order.status, order.cumulative, order.leaves, order.price, order.quantity);
    seen(before) != seen(after)
}

/// Adds the quantity that an order has traded.
fn add(traded: &mut TradedQuantities, key: (AccountId, SymbolId), side: u8, quantity: Quantity) {
    if quantity.0 == 0 {
        return;
    }
    let sums = traded.entry(key).or_default();
    let sum = &mut sums[usize::from(side == Side::Sell.code())];
    *sum = Quantity(sum.0.saturating_add(quantity.0));
}
