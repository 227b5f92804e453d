//! Arguments of a session's calls, converted to requests: names of orders, text ids and names of instruments.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ConditionalOrder, ExtendedOrder, NewOrder, Request, StatusRequest, SymbolId,
    TextId, TextIdAction, TextIdError, TextIdRequest, Trigger,
};
use tickpath_oms_client::InstrumentRow;

/// Order that a request is about.
#[derive(Clone, Copy)]
pub enum OrderName {
    /// The session's own id.
    Id(ClientOrderId),
    /// The text id.
    Text(TextId),
}

impl OrderName {
    /// Returns the name of an order, given as one of two.
    pub fn of(id: Option<u64>, client_id: Option<&str>) -> PyResult<Self> {
        match (id, client_id) {
            (Some(id), None) => Ok(Self::Id(ClientOrderId(id))),
            (None, Some(text)) => text_id(text).map(Self::Text),
            _ => Err(PyValueError::new_err("name one order: give the id that submit returned, or a client_id")),
        }
    }

    /// Builds a request to cancel the order.
    pub fn cancel(self, client_order_id: ClientOrderId, account: AccountId, cause: u64) -> Request {
        match self {
            Self::Id(original) => {
                Request::Cancel(CancelOrder { client_order_id, original, account, cause, ..CancelOrder::default() })
            }
            Self::Text(text_id) => by_text_id(client_order_id, account, text_id, TextIdAction::Cancel, cause),
        }
    }

    /// Builds a request for the state of the order.
    pub fn status(self, client_order_id: ClientOrderId, account: AccountId) -> Request {
        match self {
            Self::Id(original) => {
                Request::Status(StatusRequest { client_order_id, original, account, ..StatusRequest::default() })
            }
            Self::Text(text_id) => by_text_id(client_order_id, account, text_id, TextIdAction::Status, 0),
        }
    }
}

fn by_text_id(
    client_order_id: ClientOrderId,
    account: AccountId,
    text_id: TextId,
    action: TextIdAction,
    cause: u64,
) -> Request {
    let action = action.code();
    Request::ByTextId(TextIdRequest { client_order_id, cause, account, text_id, action, ..TextIdRequest::default() })
}

/// Reads a text id.
pub fn text_id(text: &str) -> PyResult<TextId> {
    text.parse().map_err(|e: TextIdError| PyValueError::new_err(e.to_string()))
}

/// Returns the text id of a new order. An order with a trigger has none.
pub fn new_text_id(client_id: Option<&str>, has_trigger: bool) -> PyResult<Option<TextId>> {
    if client_id.is_some() && has_trigger {
        return Err(PyValueError::new_err("an order with a trigger has no client_id; leave one of the two out"));
    }
    client_id.map(text_id).transpose()
}

/// Builds the request for a new order.
pub fn new_request(order: NewOrder, trigger: Option<Trigger>, text_id: Option<TextId>) -> Request {
    match (trigger, text_id) {
        (Some(trigger), _) => Request::Conditional(ConditionalOrder { order, trigger }),
        (None, Some(text_id)) => Request::Extended(ExtendedOrder { order, text_id, ..ExtendedOrder::default() }),
        (None, None) => Request::New(order),
    }
}

/// Merges the symbol names of the OMS with those of the caller.
pub fn symbols_of(
    given: Option<HashMap<String, u32>>,
    rows: Option<Vec<InstrumentRow>>,
) -> PyResult<HashMap<String, SymbolId>> {
    let named = |row: InstrumentRow| (row.name().to_owned(), SymbolId(row.symbol));
    let mut symbols: HashMap<String, SymbolId> = rows.unwrap_or_default().into_iter().map(named).collect();
    for (name, number) in given.unwrap_or_default() {
        if let Some(SymbolId(has)) = symbols.insert(name.clone(), SymbolId(number)).filter(|has| has.0 != number) {
            return Err(PyValueError::new_err(format!(
                "{name} is symbol {has} at the OMS and {number} in symbols=; leave symbols out, or give the instruments \
                 of this OMS"
            )));
        }
    }
    Ok(symbols)
}
