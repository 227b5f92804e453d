//! The vocabulary of trading: prices, quantities, ids, ticks, order requests and execution reports.
//!
//! Every message is a flat little-endian struct without padding. The same bytes lie in the log, on the wire and in
//! the journal; `schema/tickpath.xml` describes them in SBE. A test compares the two, and another test passes every
//! message through the codecs that the official SBE tool makes from the schema.
//!
//! | message            | kind | bytes | sender                        |
//! |--------------------|------|-------|-------------------------------|
//! | [`TopOfBook`]      | 16   | 48    | a market data feed            |
//! | [`Trade`]          | 17   | 40    | a market data feed            |
//! | [`BookLevel`]      | 18   | 48    | a market data feed            |
//! | [`FeedStatus`]     | 19   | 48    | a market data feed            |
//! | [`NewOrder`]       | 32   | 48    | a client, and the OMS to a venue |
//! | [`CancelOrder`]    | 33   | 40    | a client, and the OMS to a venue |
//! | [`ReplaceOrder`]   | 34   | 56    | a client, and the OMS to a venue |
//! | [`StatusRequest`]  | 35   | 40    | a client, and the OMS to a venue |
//! | [`MassCancel`]     | 36   | 32    | a client                      |
//! | [`ConditionalOrder`] | 37 | 88    | a client                      |
//! | [`ReplaceConditional`] | 38 | 88  | a client                      |
//! | [`ExtendedOrder`]  | 39   | 96    | a client                      |
//! | [`TextIdRequest`]  | 40   | 64    | a client                      |
//! | [`ExecutionReport`]| 48   | 104   | a venue, and the OMS to a client |
//! | [`OrderDenied`]    | 49   | 56    | the OMS to a client           |
//! | [`ReportDetail`]   | 50   | 128   | a venue, and the OMS to a client |
//! | [`OrderExtension`] | 51   | 64    | the OMS to a client           |
//!
//! ```
//! use tickpath_market::{AccountId, ClientOrderId, NewOrder, OrderType, Request, Side, SymbolId};
//!
//! let order = NewOrder {
//!     client_order_id: ClientOrderId(1),
//!     account: AccountId(7),
//!     symbol: SymbolId(3),
//!     price: "61800.25".parse()?,
//!     quantity: "0.5".parse()?,
//!     side: Side::Buy.code(),
//!     order_type: OrderType::Limit.code(),
//!     ..NewOrder::default()
//! };
//! let request = Request::New(order);
//! assert_eq!(request.as_bytes().len(), 48);
//! assert_eq!(Request::read(request.kind().code(), request.as_bytes())?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`OrderBook`] builds an instrument's book from [`BookLevel`] and [`FeedStatus`] messages, and reports why it is not
//! valid. [`replay`] reads and writes recordings of market data.
//!
//! Invariant: a price is an `i64` with eight decimals; no floating point comes near money.

mod book;
mod conditional;
mod extended;
mod market_data;
mod message;
mod number;
pub mod replay;
mod request;

pub use book::{BookChange, DepthLevel, Invalidity, OrderBook};
pub use conditional::{
    Condition, ConditionalOrder, ReplaceConditional, Trigger, TriggerDirection, TriggerJoin, TriggerPriceType,
};
pub use extended::{ExtendedOrder, OrderExtension, TextIdAction, TextIdRequest};
pub use market_data::{BookLevel, FeedStatus, TopOfBook, Trade};
pub use message::{
    CancelOrder, ExecType, ExecutionReport, FeedCondition, Kind, Liquidity, ManualOrderIndicator, MassCancel,
    MassCancelType, MessageError, NewOrder, OrdStatus, OrderDenied, OrderType, PositionEffect, ReplaceOrder,
    ReportDetail, SelfTradeMode, Side, StatusRequest, TimeInForce, TradeMode,
};
pub use number::{
    AccountId, ClientOrderId, Currency, CurrencyError, DECIMALS, DecimalError, ExecId, MAX_DECIMALS, Notional, OrderId,
    Price, Quantity, SCALE, Symbol, SymbolError, SymbolId, TextId, TextIdError, VenueId, VenueOrderId, decimal_text,
    parse_decimal, push_decimal, push_unsigned,
};
pub use request::Request;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
