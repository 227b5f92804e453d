//! A request of any kind.

use zerocopy::{FromBytes, IntoBytes};

use crate::message::{CancelOrder, Kind, MassCancel, MessageError, NewOrder, ReplaceOrder, StatusRequest};
use crate::{AccountId, ClientOrderId, ConditionalOrder, ExtendedOrder, ReplaceConditional, SymbolId, TextIdRequest};

/// A request from a client or to a venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A new order.
    New(NewOrder),
    /// A cancel.
    Cancel(CancelOrder),
    /// A replace.
    Replace(ReplaceOrder),
    /// A status request.
    Status(StatusRequest),
    /// A cancel of all orders.
    MassCancel(MassCancel),
    /// A new order with a trigger. It is sent to the venue as a new order.
    Conditional(ConditionalOrder),
    /// New terms and another trigger for an armed order.
    ReplaceConditional(ReplaceConditional),
    /// A new order with a text id. It is sent to the venue as a new order.
    Extended(ExtendedOrder),
    /// A cancel or a status request of an order by its text id. It never goes to a venue.
    ByTextId(TextIdRequest),
}

/// Reads a field that every request has; that of a conditional or extended order is in its order.
macro_rules! field {
    ($request:expr, $field:ident) => {
        match $request {
            Request::New(m) => m.$field,
            Request::Cancel(m) => m.$field,
            Request::Replace(m) => m.$field,
            Request::Status(m) => m.$field,
            Request::MassCancel(m) => m.$field,
            Request::Conditional(m) => m.order.$field,
            Request::ReplaceConditional(m) => m.$field,
            Request::Extended(m) => m.order.$field,
            Request::ByTextId(m) => m.$field,
        }
    };
}

impl Request {
    /// Copies a request out of a frame, so that its writer cannot change it afterwards, and checks its codes.
    pub fn read(kind: u8, bytes: &[u8]) -> Result<Self, MessageError> {
        let length = MessageError::Length { kind, length: bytes.len() };
        match Kind::from_code(kind) {
            Some(Kind::NewOrder) => {
                let new = NewOrder::read_from_bytes(bytes).map_err(|_| length)?;
                new.check()?;
                Ok(Self::New(new))
            }
            Some(Kind::CancelOrder) => CancelOrder::read_from_bytes(bytes).map(Self::Cancel).map_err(|_| length),
            Some(Kind::ReplaceOrder) => ReplaceOrder::read_from_bytes(bytes).map(Self::Replace).map_err(|_| length),
            Some(Kind::StatusRequest) => StatusRequest::read_from_bytes(bytes).map(Self::Status).map_err(|_| length),
            Some(Kind::MassCancel) => {
                let all = MassCancel::read_from_bytes(bytes).map_err(|_| length)?;
                all.check()?;
                Ok(Self::MassCancel(all))
            }
            Some(Kind::ConditionalOrder) => {
                let new = ConditionalOrder::read_from_bytes(bytes).map_err(|_| length)?;
                new.check()?;
                Ok(Self::Conditional(new))
            }
            Some(Kind::ReplaceConditional) => {
                let replace = ReplaceConditional::read_from_bytes(bytes).map_err(|_| length)?;
                replace.trigger.check()?;
                Ok(Self::ReplaceConditional(replace))
            }
            Some(Kind::ExtendedOrder) => {
                let new = ExtendedOrder::read_from_bytes(bytes).map_err(|_| length)?;
                new.check()?;
                Ok(Self::Extended(new))
            }
            Some(Kind::TextIdRequest) => {
                let request = TextIdRequest::read_from_bytes(bytes).map_err(|_| length)?;
                request.check()?;
                Ok(Self::ByTextId(request))
            }
            _ => Err(MessageError::Kind(kind)),
        }
    }

    /// Returns the frame kind of this request.
    pub fn kind(&self) -> Kind {
        match self {
            Self::New(_) => Kind::NewOrder,
            Self::Cancel(_) => Kind::CancelOrder,
            Self::Replace(_) => Kind::ReplaceOrder,
            Self::Status(_) => Kind::StatusRequest,
            Self::MassCancel(_) => Kind::MassCancel,
            Self::Conditional(_) => Kind::ConditionalOrder,
            Self::ReplaceConditional(_) => Kind::ReplaceConditional,
            Self::Extended(_) => Kind::ExtendedOrder,
            Self::ByTextId(_) => Kind::TextIdRequest,
        }
    }

    /// Returns the bytes of this request, as they lie in a frame.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::New(m) => m.as_bytes(),
            Self::Cancel(m) => m.as_bytes(),
            Self::Replace(m) => m.as_bytes(),
            Self::Status(m) => m.as_bytes(),
            Self::MassCancel(m) => m.as_bytes(),
            Self::Conditional(m) => m.as_bytes(),
            Self::ReplaceConditional(m) => m.as_bytes(),
            Self::Extended(m) => m.as_bytes(),
            Self::ByTextId(m) => m.as_bytes(),
        }
    }

    /// Returns the sender's id of this request.
    pub fn client_order_id(&self) -> ClientOrderId {
        field!(self, client_order_id)
    }

    /// Returns the account.
    pub fn account(&self) -> AccountId {
        field!(self, account)
    }

    /// Returns the instrument.
    pub fn symbol(&self) -> SymbolId {
        field!(self, symbol)
    }

    /// Checks the code fields.
    pub fn check(&self) -> Result<(), MessageError> {
        match self {
            Self::New(new) => new.check(),
            Self::MassCancel(all) => all.check(),
            Self::Conditional(new) => new.check(),
            Self::ReplaceConditional(replace) => replace.trigger.check(),
            Self::Extended(new) => new.check(),
            Self::ByTextId(request) => request.check(),
            Self::Cancel(_) | Self::Replace(_) | Self::Status(_) => Ok(()),
        }
    }

    /// Returns the stamp of the tick that caused the request; zero if none did.
    pub fn cause(&self) -> u64 {
        field!(self, cause)
    }
}
