//! Orders and positions of a venue beside those of the OMS: rows in pairs, as an OMS sends them to an admin, and a line
//! for each difference.

use tickpath_market::{ExecutionReport, OrdStatus, Quantity, Side, SymbolId};

use crate::field::{code_name, order_id};

/// A pair of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconciliationPair {
    /// An order of the venue that the OMS does not know.
    Foreign(ExecutionReport),
    /// An order of this session, with its state in the OMS, that the venue has not reported.
    NotReported(u16, ExecutionReport),
    /// An order of this session: its state in the OMS before the venue's answer, and its state at the venue.
    Order(u16, ExecutionReport, ExecutionReport),
    /// Bought and sold quantities by the orders of the OMS, and by those of the venue.
    Position(ExecutionReport, ExecutionReport),
}

impl ReconciliationPair {
    /// Reads a pair of rows: the row of the OMS with its session, and the row of the venue.
    pub fn of((session, own): (u16, ExecutionReport), venues: ExecutionReport) -> Self {
        let is_at_venue = venues.order_id.0 != 0 || venues.venue_order_id.0 != 0;
        match (own.order_id.0 != 0, is_at_venue) {
            (false, false) => Self::Position(own, venues),
            (false, true) => Self::Foreign(venues),
            (true, false) => Self::NotReported(session, own),
            (true, true) => Self::Order(session, own, venues),
        }
    }

    /// Returns the line, without its end; `name` returns the name of an instrument. None for a position that is equal
    /// on both sides.
    pub fn line(&self, name: impl Fn(SymbolId) -> String) -> Option<String> {
        Some(match self {
            Self::Foreign(report) => foreign(report, &name(report.symbol)),
            Self::NotReported(session, own) => {
                let (id, state) = (order_id(own.order_id), order_state(own));
                format!("order {id} of session {session}: in the OMS {state}; the venue has not reported it")
            }
            Self::Order(session, own, venues) => {
                let (id, own, venues) = (order_id(own.order_id), order_state(own), order_state(venues));
                format!("order {id} of session {session}: in the OMS {own}; at the venue {venues}")
            }
            Self::Position(own, venues) => {
                let traded = |side: &ExecutionReport| (side.cumulative_quantity, side.leaves_quantity);
                if traded(own) == traded(venues) {
                    return None;
                }
                let text = |(bought, sold): (Quantity, Quantity)| format!("{bought} bought and {sold} sold");
                let (account, symbol) = (own.account.0, name(own.symbol));
                let (own, venues) = (text(traded(own)), text(traded(venues)));
                format!("position of account {account} in {symbol}: {own} in the OMS, {venues} at the venue")
            }
        })
    }
}

/// Returns the state of an order by a report, in words.
pub fn order_state(report: &ExecutionReport) -> String {
    let status = OrdStatus::from_code(report.status).map_or_else(|| report.status.to_string(), code_name);
    format!("{status}, {} filled, {} open", report.cumulative_quantity, report.leaves_quantity)
}

/// Returns the line of an order unknown to the OMS, with the command that enters it while it is open.
fn foreign(report: &ExecutionReport, symbol: &str) -> String {
    let id = order_id(report.order_id);
    let side = Side::from_code(report.side).map_or_else(|| report.side.to_string(), code_name);
    let total = Quantity(report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0));
    let (account, price, own, state) = (report.account.0, report.price, report.venue_order_id.0, order_state(report));
    if report.leaves_quantity.0 == 0 {
        return format!("order {id} of account {account} is unknown to the OMS and has ended; at the venue {state}");
    }
    // A market order has no limit.
    let limit = if price.0 == 0 { String::new() } else { format!(" {price}") };
    let terms = format!("{symbol} {side} {total}{limit} --sent-as {id} --venue-order-id {own} --account {account}");
    format!(
        "order {id} is unknown to the OMS; at the venue {state}; tickpath oms enter order {terms} --session N --reason \
         TEXT"
    )
}
