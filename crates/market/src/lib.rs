//! The vocabulary of trading: prices, quantities, ids, ticks, order requests and execution reports.
//!
//! Every message is a flat little-endian struct without padding. The same bytes lie in the log, on the wire and in
//! the journal; `schema/tickpath.xml` describes them in SBE and a test holds the two together.
//!
//! | message            | kind | bytes | sender                        |
//! |--------------------|------|-------|-------------------------------|
//! | [`TopOfBook`]      | 16   | 48    | a market data feed            |
//! | [`Trade`]          | 17   | 40    | a market data feed            |
//! | [`NewOrder`]       | 32   | 48    | a client, and the OMS to a venue |
//! | [`CancelOrder`]    | 33   | 40    | a client, and the OMS to a venue |
//! | [`ReplaceOrder`]   | 34   | 56    | a client, and the OMS to a venue |
//! | [`StatusRequest`]  | 35   | 40    | a client, and the OMS to a venue |
//! | [`MassCancel`]     | 36   | 32    | a client                      |
//! | [`ConditionalOrder`] | 37 | 88    | a client                      |
//! | [`ReplaceConditional`] | 38 | 88  | a client                      |
//! | [`ExecutionReport`]| 48   | 104   | a venue, and the OMS to a client |
//! | [`OrderDenied`]    | 49   | 56    | the OMS to a client           |

mod conditional;
mod message;
mod number;
pub mod replay;
mod request;

pub use conditional::{
    Condition, ConditionalOrder, ReplaceConditional, Trigger, TriggerDirection, TriggerJoin, TriggerPriceType,
};
pub use message::{
    CancelOrder, ExecType, ExecutionReport, Kind, ManualOrderIndicator, MassCancel, MassCancelType, MessageError,
    NewOrder, OrdStatus, OrderDenied, OrderType, PositionEffect, ReplaceOrder, Side, StatusRequest, TimeInForce,
    TopOfBook, Trade,
};
pub use number::{
    AccountId, ClientOrderId, DecimalError, ExecId, Notional, OrderId, Price, Quantity, SCALE, Symbol, SymbolError,
    SymbolId, VenueId, VenueOrderId,
};
pub use request::Request;
