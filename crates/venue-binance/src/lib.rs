//! A line to Binance spot: orders and user events over one connection of the exchange's WebSocket API. Design:
//! `docs/design/exchange-lines.md`.
//!
//! ```text
//!   OMS ── Line::send ──> BinanceLine ── order.place, … ──────────────> exchange
//!   OMS <── reports ───── BinanceLine <── answers, executionReport ──── exchange
//! ```
//!
//! # Credentials
//!
//! An Ed25519 key (PEM) logs the connection on once (`session.logon`), and its requests need no signature. A secret key
//! of HMAC-SHA-256 signs each request, which then carries the API key, too. The secret's form decides.
//!
//! # Connect
//!
//! Time, logon, subscription and the open orders of each instrument are acknowledged before the line is up; after a loss
//! also the fills since the last event, whose reports follow `Up`. The exchange numbers nothing, so `Up` has no numbers:
//! the OMS puts its open orders in doubt and asks for each. `oms.toml` needs `numbered = false`, and no
//! `expires_day_orders`: a day order is sent as good till canceled.
//!
//! # Orders
//!
//! * **Ids.** `newClientOrderId` is a text of 36 characters at most, with a tag of the OMS, the order id, the account,
//!   and for a replaced order its generation and the quantity filled before. A line reads it without a memory. Orders
//!   with other texts are another program's, and no reports of them are passed on.
//! * **Replace.** A lower total at the same price is an amendment, which keeps the place in the book. Another price or a
//!   larger total makes a new generation: by `order.cancelReplace` where no fill is known, which the exchange carries
//!   out for an unfilled order only (`ONLY_NEW`); otherwise by a cancel, whose answer has the filled quantity, and then a
//!   new order for the rest. So no fill in between is bought twice. A cancel during a replace waits for its end.
//! * **Partial failure.** Where the cancel has worked and the new order was refused, the order is `Canceled`.
//! * **Doubt.** An answer that leaves the outcome open (-1000, -1001, -1006, -1007, status 5xx) is reported as
//!   `OrdStatus::Unknown`: the OMS asks, and nothing is ever sent again. A connection that swallows an answer is lost.
//! * **Cancel refused** (-2011): the order is asked for, and the reason is [`UNKNOWN_ORDER`] or [`TOO_LATE`]; 2011 if it
//!   works all the same. No cancel is repeated. A replace in flight when its order ends is [`TOO_LATE`] at once.
//! * **End.** The event of an end is passed on once, also behind a status that shows the end.
//! * **Unreadable.** An event or a fill that cannot be read, such as one with a number out of range, is named once in a
//!   detail and puts its order in doubt. The end of such an order is a doubt as well: the status shows what is missing.
//! * **Status.** The order is found by the exchange's id or by its texts, with its fills as far as they were not
//!   reported. -2013 is final once `recv_window_ms` and a margin have passed since the last request that may have
//!   placed it; until then the line asks again. All orders: those of the exchange's day and the open ones.
//! * **Fills.** An execution id is made of instrument, trade id and side: `(symbol + 1) << 41 | trade << 1 | is_sell`.
//!   Details carry fee, role and times; `New` has none. A fill from an answer has no time of sending.
//! * **Reasons** are the exchange's codes without their minus (2010), [`REFUSED_BY_LINE`], or those of the contract.
//!
//! # Limits and time
//!
//! Orders in ten seconds and a day, and weight in a minute, are counted in sliding windows before the exchange refuses.
//! An order beyond them is refused with the exchange's own reason (1015, 1003), so that the cancels behind it leave.
//! `send` returns `Full` only where no cancel could leave either. Queries leave a fifth of the weight to others, orders
//! a tenth, cancels nothing. After 429 or 418, at a handshake too, all requests and connects wait as long as demanded.
//!
//! Requests carry the exchange's time by an offset that each connect measures, and -1021 once more. Silence of 60 s ends
//! a connection; after 23 h 50 min, or at `serverShutdown`, it ends once all answers have arrived.
//!
//! # Invariants
//!
//! * No event is reported before `Up`, and none twice; the first end of an order holds.
//! * A report's contents come from its own event, so that late and repeated events end in the same reports.
//! * No error, log line or debug text shows a key, a secret or a signature.
//! * The in-place reader and the complete reader agree on each frame that the first accepts.
//!
//! [`UNKNOWN_ORDER`]: tickpath_venue::UNKNOWN_ORDER
//! [`TOO_LATE`]: tickpath_venue::TOO_LATE

mod answers;
mod budget;
mod config;
mod connect_steps;
mod credentials;
mod encode;
mod events;
mod exchange_clock;
mod identity;
mod instruments;
mod job_query;
mod jobs;
mod json;
mod line;
mod line_warm_up;
mod list_job;
mod message;
mod order_encoder;
mod order_job;
mod orders;
mod outbox;
mod outgoing;
mod pending;
mod queries;
mod reports;
mod requests;
mod scan;
mod session;
mod signer;
mod terms;

pub use config::{BinanceLineConfig, LineInstrument, RequestLimits, SPOT_ORDERS};
pub use credentials::{ApiCredentials, CredentialsError};
pub use line::{BinanceLine, BinanceLineError};
pub use order_encoder::OrderEncoder;
pub use requests::REFUSED_BY_LINE;
pub use signer::RequestSigner;
