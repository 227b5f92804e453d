//! New orders with a client's own text id or an end time, and requests that name an order by its text id.
//!
//! ```text
//!   0          48          56        92     96
//!   │ NewOrder │ expire_ns │ text_id │ zero │   ExtendedOrder
//! ```
//!
//! The fields stand beside the order, so that an order without them keeps its 48 bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::message::{check_code, codes};
use crate::{AccountId, ClientOrderId, MessageError, NewOrder, OrderId, SymbolId, TextId, TimeInForce};

codes! {
    /// Action of a [`TextIdRequest`].
    TextIdAction {
        /// Cancels the order.
        Cancel = 1,
        /// Reports the state of the order.
        Status = 2,
    }
}

/// A new order with a text id, an end time, or both. An OMS keeps them, and sends its venue a plain [`NewOrder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExtendedOrder {
    /// The order.
    pub order: NewOrder,
    /// End time of a good-till-date order, in nanoseconds since the Unix epoch; zero for any other order.
    pub expire_ns: u64,
    /// The client's own text id, unique among the open orders of the account; empty if the order has none.
    pub text_id: TextId,
    /// Zero.
    pub reserved_end: [u8; 4],
}

/// A request to cancel an order, or to report its state, by its text id: the latest order of the account with this text
/// id, of any session, if the sender's session may trade for the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TextIdRequest {
    /// The sender's own id of this request; the answer carries it.
    pub client_order_id: ClientOrderId,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument; not read.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// Text id of the order.
    pub text_id: TextId,
    /// [`TextIdAction`] as its code.
    pub action: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

/// The text id and the end time of an order, beside its reports: an OMS sends them to the order's session before the
/// order's first report, and before each answer to a status request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OrderExtension {
    /// The OMS's id of the order.
    pub order_id: OrderId,
    /// The id of the request that the next report answers, as its receiver knows it.
    pub client_order_id: ClientOrderId,
    /// End time of the order, in nanoseconds since the Unix epoch; zero if it has none.
    pub expire_ns: u64,
    /// Account of the order.
    pub account: AccountId,
    /// Text id of the order; empty if it has none.
    pub text_id: TextId,
}

impl TextId {
    /// Returns whether the bytes are a text id: printable ASCII characters without spaces, then zeros.
    pub fn is_valid(&self) -> bool {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let (text, padding) = self.0.split_at(length);
        !text.is_empty() && text.iter().all(u8::is_ascii_graphic) && padding.iter().all(|&byte| byte == 0)
    }
}

impl ExtendedOrder {
    /// Checks the code fields, the end time and the text id, one of which the order must have.
    pub fn check(&self) -> Result<(), MessageError> {
        self.venue_order().check()?;
        if self.is_dated() != (self.expire_ns != 0) {
            return Err(MessageError::EndTime);
        }
        if self.is_dated() && self.text_id == TextId::default() { Ok(()) } else { check_text_id(&self.text_id) }
    }

    /// Returns the order for a venue that knows no end times: the OMS cancels it at its end.
    pub fn venue_order(&self) -> NewOrder {
        let time_in_force = match self.is_dated() {
            true => TimeInForce::GoodTillCancel.code(),
            false => self.order.time_in_force,
        };
        NewOrder { time_in_force, ..self.order }
    }

    /// Returns whether the order is good till date.
    pub fn is_dated(&self) -> bool {
        self.order.time_in_force == TimeInForce::GoodTillDate.code()
    }
}

impl TextIdRequest {
    /// Checks the code field and the text id.
    pub fn check(&self) -> Result<(), MessageError> {
        check_text_id(&self.text_id)?;
        check_code("action", self.action, TextIdAction::from_code(self.action).is_some())
    }

    /// Returns whether the request asks for the state of the order, which uses up no id.
    pub fn is_status(&self) -> bool {
        self.action == TextIdAction::Status.code()
    }
}

fn check_text_id(text_id: &TextId) -> Result<(), MessageError> {
    if text_id.is_valid() { Ok(()) } else { Err(MessageError::TextId) }
}
