//! Parts of a simulated exchange with a web protocol: a server of HTTP and WebSocket, a desk with accounts and orders
//! around the matching engine, and faults to inject. The protocol of an exchange is a [`WebService`] on top of them.
//!
//! ```text
//!   TCP ── TLS ── HTTP ──────> WebService::http, upgrade ─┐
//!                  └─ WebSocket > WebService::text ───────┤         protocol of an exchange
//!   clients <── WebSender <────── WebService::turn ───────┘
//!                                      │      ▲
//!                     place, cancel, …│      │ DeskEvent
//!                                      ▼      │
//!                                    SimDesk ──> SimVenue
//! ```
//!
//! ```
//! use tickpath_venue_sim_web::{
//!     ConnectionId, WebAnswer, WebRequest, WebSender, WebServer, WebServerConfig, WebService,
//! };
//!
//! struct Echo;
//!
//! impl WebService for Echo {
//!     fn http(&mut self, request: &WebRequest<'_>) -> WebAnswer {
//!         WebAnswer::json(format!("{{\"path\":\"{}\"}}", request.path))
//!     }
//!     fn upgrade(&mut self, _id: ConnectionId, request: &WebRequest<'_>) -> Result<(), WebAnswer> {
//!         if request.path == "/ws" { Ok(()) } else { Err(WebAnswer::status(404, "no such stream")) }
//!     }
//!     fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
//!         out.text(id, text);
//!     }
//!     fn closed(&mut self, _id: ConnectionId) {}
//!     fn turn(&mut self, _out: &mut WebSender<'_>) -> usize {
//!         0
//!     }
//! }
//!
//! let listen = "127.0.0.1:0".parse()?;
//! let config = WebServerConfig { listen, tls: true, max_connections: 64, max_message_bytes: 1 << 20 };
//! let mut server = WebServer::open(&config)?;
//! assert!(server.authority_pem().is_some_and(|pem| pem.contains("BEGIN CERTIFICATE")));
//! server.poll(0, &mut Echo);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! * No call of the server waits longer than the timeout of [`WebServer::poll`]. A turn of a connection is bounded in
//!   bytes and messages, so that none delays the others.
//! * A connection is bounded in memory: a head of 16 KiB and a body of 1 MiB, a WebSocket message of the configured
//!   size, and 8 MiB of unsent output, plus the message that passes this limit.
//! * Input of a client can end its own connection only, and makes nothing panic.
//! * The service learns of the end of each WebSocket that it accepted, once, and gets no message of it afterwards.
//! * The desk has no I/O and no clock, and the same calls give the same events.

pub mod desk;
mod error;
pub mod faults;
mod http_exchange;
mod identity;
mod peer;
mod peer_stream;
mod received_request;
mod sender;
mod server;
mod service;
mod web_message;

pub use desk::{
    DeskEvent, DeskFill, DeskOrder, DeskRefusal, DeskState, NewDeskOrder, OrderName, PublicTrade, SimAccount, SimDesk,
    SimDeskConfig, SimInstrument,
};
pub use error::WebServerError;
pub use faults::{FaultDice, WebFaults};
pub use sender::{ConnectionId, WebSender};
pub use server::{WebServer, WebServerConfig};
pub use service::WebService;
pub use web_message::{WebAnswer, WebRequest};
