//! A line to OKX (API v5): orders over one private WebSocket connection, and their status over HTTPS. Design:
//! `docs/design/exchange-lines.md`.
//!
//! ```text
//!   Line::send ──> rates ──> request_writer ──> WebSocketClient ──> OKX
//!                    │ refused here                                  │ answers, orders channel
//!   Line::poll <── report_outbox <── order_ledger <── frames, push_scan
//!                                        ^
//!                    status requests ──> inquiries, all_orders ──> signed_rest ──> HttpsClient ──> OKX
//! ```
//!
//! ```no_run
//! use tickpath_market::{Quantity, SymbolId, VenueId};
//! use tickpath_venue::{Line, LineEvent, ResumeState};
//! use tickpath_venue_okx::{ApiCredentials, LineInstrument, OkxLine, OkxLineConfig};
//!
//! let credentials = ApiCredentials::read("okx.toml".as_ref())?;
//! let (name, symbol, contract) = ("BTC-USDT".to_owned(), SymbolId(1), Quantity::from_whole(1));
//! let spot = LineInstrument { name, symbol, code: 3, lot: Quantity::ZERO, contract, is_derivative: false };
//! let mut line = OkxLine::new(OkxLineConfig::new(VenueId(2), credentials, vec![spot]))?;
//! line.connect(&ResumeState::default());
//! let mut is_up = false;
//! while !is_up {
//!     line.poll(&mut |event| is_up |= matches!(event, LineEvent::Up { .. }))?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A connection
//!
//! OKX's time, the login and its acknowledgement, the subscription of the orders channel and its acknowledgement, the
//! lists of open orders and of missed fills: only then the line is up. OKX keeps no state of requests, so that the line
//! is up with `None`: the OMS puts requests without an answer in doubt, and asks for each of its open orders.
//!
//! # Invariants
//!
//! * No request is sent twice. After an ambiguous answer the order is in doubt, and the OMS asks for it. The absence of
//!   an order at OKX is final once its expiry and a margin are over, and not before.
//! * Each event of an order is reported once, in whatever order and however often OKX sends it. A fill that OKX has
//!   reported in sum is asked for until OKX lists it.
//! * Each cancel and each amendment is answered once: by its own report, or by the end of an order with an open rest.
//! * Receipt is proven by OKX's answers, which carry the number of their request. A status request needs no proof: it
//!   changes nothing, and the OMS asks again after a loss.
//! * Quantities become OKX's sizes in one place ([`LineInstrument`]). A quantity that is no multiple of the lot is
//!   refused here.
//! * OKX's rate limits are kept here: a request beyond them finds the line full. Cancels have limits of their own.
//!   After a refusal for its rate a connect waits, longer after each one.
//! * Reports have no stamps and no sequence: OKX's clock is another one, and it counts no events. Its own times are in
//!   the details.
//! * No error, no `Debug` form, no URL and no log shows a secret.
//!
//! # Reasons of reports
//!
//! | reason          | meaning                                                                             |
//! |-----------------|-------------------------------------------------------------------------------------|
//! | 3, 4, 5         | refused by the line: not supported, unknown instrument, no multiple of the lot      |
//! | 7, 8            | a cancel or a replace of an order that OKX does not have, or that has ended there   |
//! | 99              | a code of OKX that is out of range                                                  |
//! | 100 to 9999     | OKX's code minus 50,000: 1008 is 51008, too little money                            |
//! | 10000 to 10099  | OKX's code minus 40,000, for its codes 50000 to 50099: 10011 is 50011, a rate limit |
//! | 20000 to 24999  | OKX's code minus 40,000, for its codes 60000 to 64999, errors of the connection     |
//! | 30000 and above | OKX has canceled the order, for the `cancelSource` that remains: 30031 is post-only |
//!
//! # Limits
//!
//! * Prices and quantities have eight decimals at most. Positions are in net mode. An order for the day works until it
//!   is canceled.
//! * OKX lists fills for three months, and forgets a canceled order without fills after two hours: an order that was
//!   open before a longer outage may stay in doubt, and an operator resolves it.
//! * The status of all orders lacks orders that ended without a fill in an earlier process.

mod all_orders;
mod clock_check;
mod config;
mod connect_check;
mod connect_pacer;
mod credentials;
mod dead_man_switch;
mod decimal;
mod fill_row;
mod frames;
mod inquiries;
mod line;
mod line_warm_up;
mod order_encoder;
mod order_ledger;
mod order_limits;
mod order_naming;
mod order_table;
mod order_update;
mod outstanding;
mod page_walk;
mod ping_timer;
mod push_scan;
mod reasons;
mod reconciliation;
mod report_maker;
mod report_outbox;
mod request_window;
mod request_writer;
mod rest_work;
mod session;
mod signature;
mod signed_rest;
mod stable_hash;
mod traded_instruments;

pub use config::{DEMO_PRIVATE_URL, LineInstrument, OkxLineConfig, OkxLineError, PRIVATE_URL, REST_URL};
pub use credentials::{ApiCredentials, CredentialsError};
pub use line::OkxLine;
pub use order_encoder::OrderEncoder;
pub use reasons::{CANCELED_BY_OKX, NO_MULTIPLE, NOT_SUPPORTED, OTHER_CODE, UNKNOWN_INSTRUMENT};
pub use signature::signature;
