//! Arguments of a session's calls, converted to requests: names of orders, text ids and names of instruments.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ConditionalOrder, ExtendedOrder, NewOrder, Request, StatusRequest, SymbolId,
    TextId, TextIdAction, TextIdError, TextIdRequest, TimeInForce, Trigger,
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

/// The text id and the end time of a new order; an empty text id and zero for none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderFields {
    text_id: TextId,
    expire_ns: u64,
}

impl OrderFields {
    /// Returns the fields of a new order. An order with a trigger has none, and an end time belongs to 'gtd'.
    pub fn of(
        client_id: Option<&str>,
        expire_ns: Option<u64>,
        time_in_force: TimeInForce,
        has_trigger: bool,
    ) -> PyResult<Self> {
        let wrong = |sentence: &'static str| Err(PyValueError::new_err(sentence));
        if (time_in_force == TimeInForce::GoodTillDate) != (expire_ns.unwrap_or(0) != 0) {
            return wrong("an order whose time_in_force is 'gtd' has an expire_ns above 0, and no other order has one");
        }
        if has_trigger && (client_id.is_some() || expire_ns.is_some()) {
            return wrong("an order with a trigger has no client_id and no expire_ns; leave them or the trigger out");
        }
        let text_id = client_id.map_or(Ok(TextId::default()), text_id)?;
        Ok(Self { text_id, expire_ns: expire_ns.unwrap_or(0) })
    }

    /// Builds the request for a new order.
    pub fn request(self, order: NewOrder, trigger: Option<Trigger>) -> Request {
        let Self { text_id, expire_ns } = self;
        match trigger {
            Some(trigger) => Request::Conditional(ConditionalOrder { order, trigger }),
            None if self == Self::default() => Request::New(order),
            None => Request::Extended(ExtendedOrder { order, expire_ns, text_id, ..ExtendedOrder::default() }),
        }
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
