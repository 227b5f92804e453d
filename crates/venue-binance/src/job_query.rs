//! Queries by which the exchange is asked for the state of orders.

use crate::budget::{RequestCost, Urgency};
use crate::encode::{ListFrom, OrderRef, RequestEncoder, RequestId};
use crate::identity::OrderText;

/// A query about orders of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobQuery {
    /// An order by the exchange's id.
    OrderById(u64),
    /// An order by its text.
    OrderByText(OrderText),
    /// All open orders.
    OpenOrders,
    /// All orders from a time or an id on.
    AllOrders(ListFrom),
    /// Fills from a time or an id on; of one order if it is named.
    Trades { order_id: Option<u64>, from: Option<ListFrom> },
}

/// Progress of a job after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobProgress {
    /// The next query may leave.
    Continue,
    /// The next query waits for a while.
    Pause,
    /// The job has reported its result.
    Done,
}

impl JobQuery {
    /// Returns the cost of the query.
    pub(crate) fn cost(&self) -> RequestCost {
        let weight = match self {
            Self::OrderById(_) | Self::OrderByText(_) => 4,
            Self::OpenOrders => 6,
            Self::Trades { order_id: Some(_), .. } => 5,
            Self::AllOrders(_) | Self::Trades { order_id: None, .. } => 20,
        };
        RequestCost::weight(Urgency::Query, weight)
    }

    /// Writes the query.
    pub(crate) fn write(&self, encoder: &mut RequestEncoder, id: RequestId, symbol: &str, timestamp_ms: u64) {
        match self {
            Self::OrderById(order_id) => encoder.status(id, symbol, OrderRef::Id(*order_id), timestamp_ms),
            Self::OrderByText(text) => encoder.status(id, symbol, OrderRef::Text(text.as_str()), timestamp_ms),
            Self::OpenOrders => encoder.open_orders(id, symbol, timestamp_ms),
            Self::AllOrders(from) => encoder.all_orders(id, symbol, *from, timestamp_ms),
            Self::Trades { order_id, from } => encoder.trades(id, symbol, *order_id, *from, timestamp_ms),
        }
    }
}
