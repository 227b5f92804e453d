//! A simulated exchange that speaks OKX API v5, so that clients of OKX work with it unchanged, and with the faults that
//! a real exchange has on bad days.
//!
//! ```text
//!   WebServer ── http ──> rest ───────────┐
//!       │                                 ├──> orders ──> SimDesk ── DeskEvent ──> pushes, market
//!       └─ text ──> gateway, session ─────┘                                             │
//!   connections <── audience <── late, twice, cut ──────────────────────────────────────┘
//! ```
//!
//! [`OkxExchange`] is a [`WebService`](tickpath_venue_sim_web::WebService) on a
//! [`SimDesk`](tickpath_venue_sim_web::SimDesk), for a [`WebServer`](tickpath_venue_sim_web::WebServer) to drive.
//!
//! | interface         | has                                                                                  |
//! |-------------------|--------------------------------------------------------------------------------------|
//! | `/ws/v5/public`   | `bbo-tbt`, `trades`, `tickers`, `books`, `books5`, `instruments`; after a login also |
//! |                   | `books-l2-tbt`                                                                       |
//! | `/ws/v5/private`  | `orders`, `fills`, `account`, `positions`, `balance_and_position`; order operations  |
//! | `/ws/v5/business` | logins, and no channel                                                               |
//! | `/api/v5/public`  | `time`, `instruments`                                                                |
//! | `/api/v5/market`  | `ticker`, `tickers`, `books`, `trades`                                               |
//! | `/api/v5/account` | `balance`, `positions`, `config`, `trade-fee`, `instruments`                         |
//! | `/api/v5/asset`   | `currencies`                                                                         |
//! | `/api/v5/trade`   | orders alone and in batches, `orders-pending`, histories, fills, `cancel-all-after`  |
//!
//! The account is in futures mode with net positions: spot without margin, derivatives with it. A derivative is a swap
//! if its name ends with `-SWAP`; all of them are linear. Orders with attached stops, algorithmic orders, options and
//! spreads are refused as OKX refuses what an account may not do, or are unknown paths.
//!
//! # Invariants
//!
//! * Each interface changes orders through the same operations, and shares OKX's limits: 60 requests in two seconds for
//!   an account, instrument and operation, and 1,000 new orders and amendments for an account.
//! * A push comes behind the acknowledgement of its request on the same connection, and pushes keep their order.
//! * Each update of a book names the sequence number of the message before it on its channel, also behind a reset.
//! * All times are of the exchange's own clock, which an injected drift moves.
//! * Input of a client cannot make the exchange panic; a signature is compared in constant time.

mod account_rows;
mod audience;
mod cancel_timers;
mod channels;
mod codes;
mod depth_stream;
mod exchange;
mod exchange_clock;
mod fields;
mod gateway;
mod instruments;
mod limits;
mod market;
mod order_rows;
mod orders;
mod place_terms;
mod positions;
mod pushes;
mod queries;
mod records;
mod rest;
mod rest_auth;
mod session;
mod sign;
mod trading_desk;

pub use exchange::OkxExchange;
