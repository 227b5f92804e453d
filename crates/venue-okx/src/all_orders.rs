//! The status of all orders of the OMS: the open ones, those with fills of the last day, and those that have ended
//! since this process began. OKX lists no others without a request for each type of instrument, and forgets a canceled
//! order without fills after two hours.

use std::collections::{BTreeMap, HashSet, VecDeque};

use tickpath_market::{AccountId, ClientOrderId, StatusRequest};
use tickpath_venue::UNKNOWN_ORDER;

use crate::fill_row::FillRow;
use crate::inquiries::Inquiries;
use crate::order_ledger::OrderLedger;
use crate::order_update::OrderUpdate;
use crate::page_walk::PageWalk;
use crate::reasons::reason_of;
use crate::signed_rest::{RestFailure, SignedRest};

/// Age of the fills that belong to the answer.
const DAY_NS: u64 = 86_400_000_000_000;

/// Requests for the status of all orders, answered one after the other.
#[derive(Debug, Default)]
pub(crate) struct AllOrders {
    questions: VecDeque<StatusRequest>,
    step: AllOrdersStep,
    /// Orders that may have changed since the question was begun.
    changed: HashSet<u64>,
}

#[derive(Debug, Default)]
enum AllOrdersStep {
    #[default]
    Idle,
    OpenOrders(PageWalk<OrderUpdate>),
    Fills(Vec<OrderUpdate>, PageWalk<FillRow>),
    /// These orders are asked for.
    Orders(HashSet<u64>),
}

/// An order of the answer, with its state and its fills as far as they are known.
struct KnownOrder {
    account: AccountId,
    instrument: usize,
    state: Option<OrderUpdate>,
    fills: Vec<FillRow>,
}

impl AllOrders {
    /// Takes a question.
    pub fn ask(&mut self, request: &StatusRequest) {
        self.questions.push_back(*request);
    }

    /// Notes that an order may have changed.
    #[inline]
    pub fn note_change(&mut self, order: u64) {
        if !self.questions.is_empty() {
            self.changed.insert(order);
        }
    }

    /// Takes the answer further. Returns the amount of work done; the error is the reason why the line is lost.
    pub fn advance(
        &mut self,
        rest: &mut SignedRest,
        ledger: &mut OrderLedger,
        inquiries: &mut Inquiries,
        venue_ns: u64,
    ) -> Result<usize, String> {
        let Some(question) = self.questions.front().copied() else { return Ok(0) };
        let next = match &mut self.step {
            AllOrdersStep::Idle => {
                self.changed.clear();
                Ok(Some(AllOrdersStep::OpenOrders(PageWalk::of_open_orders())))
            }
            AllOrdersStep::OpenOrders(walk) => walk.advance(rest, ledger).map(|open| {
                let fills = || PageWalk::of_fills_since(venue_ns.saturating_sub(DAY_NS));
                open.map(|open| AllOrdersStep::Fills(open, fills()))
            }),
            AllOrdersStep::Fills(open, walk) => walk.advance(rest, ledger).map(|fills| {
                let known = fills.map(|fills| known_orders(std::mem::take(open), fills, &self.changed));
                known.map(|known| ask_for_each(&question, known, ledger, inquiries))
            }),
            AllOrdersStep::Orders(asked) if inquiries.open_parts() == 0 => {
                let ended: Vec<u64> = ledger.orders.ended().map(|(order, _)| order).collect();
                for order in ended.into_iter().filter(|order| !asked.contains(order)) {
                    ledger.report_ended(order, question.client_order_id.0);
                }
                ledger.end_statuses(&question, 0);
                self.questions.pop_front();
                Ok(Some(AllOrdersStep::Idle))
            }
            AllOrdersStep::Orders(_) => Ok(None),
        };
        match next {
            Ok(Some(step)) => self.step = step,
            Ok(None) => return Ok(0),
            Err(failure) => return self.handle_failure(&failure, &question, rest, ledger),
        }
        Ok(1)
    }

    fn handle_failure(
        &mut self,
        failure: &RestFailure,
        question: &StatusRequest,
        rest: &SignedRest,
        ledger: &mut OrderLedger,
    ) -> Result<usize, String> {
        let reason = match failure {
            RestFailure::Passing(_) => return rest.give_up(failure).map_or(Ok(1), Err),
            RestFailure::Refused { code, .. } => reason_of(*code),
            RestFailure::Absent => UNKNOWN_ORDER,
        };
        ledger.end_statuses(question, reason);
        self.questions.pop_front();
        self.step = AllOrdersStep::Idle;
        Ok(1)
    }
}

/// Returns the orders of the answer, by their ids.
fn known_orders(open: Vec<OrderUpdate>, fills: Vec<FillRow>, changed: &HashSet<u64>) -> BTreeMap<u64, KnownOrder> {
    let mut known = BTreeMap::new();
    for state in open {
        let (order, account, instrument) = (state.order, state.account, state.instrument);
        let state = Some(state).filter(|_| !changed.contains(&order));
        known.insert(order, KnownOrder { account, instrument, state, fills: Vec::new() });
    }
    for row in fills {
        let (account, instrument) = (row.account, row.instrument);
        let new = || KnownOrder { account, instrument, state: None, fills: Vec::new() };
        known.entry(row.order).or_insert_with(new).fills.push(row);
    }
    known
}

/// Asks for each order, as part of the answer to a question.
fn ask_for_each(
    question: &StatusRequest,
    known: BTreeMap<u64, KnownOrder>,
    ledger: &OrderLedger,
    inquiries: &mut Inquiries,
) -> AllOrdersStep {
    let asked = known.keys().copied().collect();
    for (order, KnownOrder { account, instrument, state, fills }) in known {
        let symbol = ledger.instruments.get(instrument).symbol;
        let request = StatusRequest { original: ClientOrderId(order), symbol, account, ..*question };
        inquiries.ask_for_all(request, instrument, state, Some(fills));
    }
    AllOrdersStep::Orders(asked)
}
