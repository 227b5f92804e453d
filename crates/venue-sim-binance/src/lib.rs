//! A simulated Binance spot, so close to the real one that programs written for the real one work with it unchanged. It
//! is a service of the server of [`tickpath_venue_sim_web`], around its [`SimDesk`](tickpath_venue_sim_web::SimDesk).
//!
//! ```text
//!   /stream, /ws ──> stream_session ───────────────────────────────┐
//!   /ws-api/v3 ────> api_session ─┐                                │ subscriptions
//!   /api/v3, /sapi > rest ────────┴─> spot_api ──> calls ──┐       ▼
//!                                                          ▼   market_streams ──> messages
//!                     SimDesk <── orders, account, market_data      ▲
//!                        └── DeskEvent ──> spot, ledger, tape ──────┴──> user_events ──> sessions
//! ```
//!
//! ```
//! use tickpath_venue_sim_binance::BinanceExchange;
//! use tickpath_venue_sim_web::{SimDesk, SimDeskConfig, WebFaults, WebServer, WebServerConfig};
//!
//! let desk = SimDeskConfig { instruments: vec![], accounts: vec![], maker_fee_e6: 1_000, taker_fee_e6: 1_000 };
//! let mut exchange = BinanceExchange::new(SimDesk::new(desk), WebFaults::none());
//! let listen = "127.0.0.1:0".parse()?;
//! let config = WebServerConfig { listen, tls: true, max_connections: 64, max_message_bytes: 1 << 20 };
//! let mut server = WebServer::open(&config)?;
//! server.poll(0, &mut exchange);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Addresses
//!
//! | Client | Its setting | Value |
//! |---|---|---|
//! | streams | base | `wss://HOST:PORT`, with `/stream?streams=a/b`, `/ws/a/b` or `/ws` |
//! | WebSocket API | URL | `wss://HOST:PORT/ws-api/v3`, `?returnRateLimits=false`, `?timeUnit=MICROSECOND` |
//! | REST | base | `https://HOST:PORT` |
//! | ccxt | `urls['api']['public']`, `['private']` | `https://HOST:PORT/api/v3` |
//! | ccxt | `urls['api']['sapi']` | `https://HOST:PORT/sapi/v1` |
//! | ccxt | `urls['api']['ws']['spot']` | `wss://HOST:PORT/stream` |
//! | ccxt | `urls['api']['ws']['ws-api']['spot']` | `wss://HOST:PORT/ws-api/v3` |
//! | ccxt | `options` | `{'defaultType': 'spot', 'fetchMarkets': {'types': ['spot']}}` |
//!
//! The key of an account is its `api_key`; its `secret` is an HMAC secret, or an Ed25519 public key as PEM.
//!
//! # What it has
//!
//! * **Orders**: LIMIT (GTC, IOC, FOK), LIMIT_MAKER and MARKET, by quantity or by amount; self-trade prevention by
//!   EXPIRE_TAKER, EXPIRE_MAKER, EXPIRE_BOTH. No stop, iceberg or pegged orders, no order lists.
//! * **Streams**: `bookTicker`, `trade`, `aggTrade`, `ticker`, `miniTicker`, `depth` and `depth5`, `10`, `20`, both
//!   each 100 ms or 1,000 ms. No klines. Other names are accepted, and stay silent.
//! * **Limits**: weight 6,000 a minute, 300 connects in five minutes, 100 unfilled orders in ten seconds and 200,000 a
//!   day, five messages a second on a stream connection. All clients share one address. No client is banned.
//!
//! # Faults
//!
//! | Fault | Effect |
//! |---|---|
//! | `cut_after_ack` | the connection ends behind the answer to a request that changes orders, before its events |
//! | `duplicate_push`, `late_push_ms` | events of accounts come twice, or late |
//! | `ambiguous`, `ambiguous_placed` | a placement is answered by -1007, the next by -1006, with or without an order |
//! | `rate_limited` | 429 with -1003, `retryAfter`, and over HTTP `Retry-After` |
//! | `html_answers` | 403 with a page of HTML over HTTP |
//! | `announce_maintenance_after_ms` | event `serverShutdown`, and the end after as much time again |
//! | `reset_sequence_every` | each so-many-th `depthUpdate` is left out, so that `U` does not follow `u` |
//! | `clock_drift_ms` | the exchange's clock is apart from the host's |
//! | `suspended` | status HALT, and new orders are refused with -1013 |
//!
//! `zero_fill_push`, `amend_fails_later` and `listen_key_ms` have no counterpart here.
//!
//! # Invariants
//!
//! * An answer comes before the events of its request on the same connection.
//! * The `U` of a `depthUpdate` is one more than the `u` of the one before, and `u` is the `lastUpdateId` of that book.
//! * The state of an order moves only from NEW over PARTIALLY_FILLED to one end.
//! * A signed request with a parameter that it does not have is refused with -1104.

mod account;
mod api_session;
mod calls;
mod cancel_replace;
mod codes;
mod commissions;
mod connection;
mod decimals;
mod depth_updates;
mod exchange;
mod filters;
mod json;
mod ledger;
mod limits;
mod market_data;
mod market_events;
mod market_streams;
mod new_order;
mod order_views;
mod orders;
mod params;
mod rest;
mod self_trade;
mod sign;
mod spot;
mod spot_api;
mod stamps;
mod stream_session;
mod stream_topics;
mod tape;
mod user_events;

pub use connection::ConnectionTimes;
pub use exchange::BinanceExchange;
pub use spot::FeeRates;
