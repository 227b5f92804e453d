//! Order entry for users' programs: a session with an OMS over a Unix socket, TCP or TLS, which survives the loss of
//! its connection.
//!
//! ```no_run
//! use tickpath_market::{AccountId, ClientOrderId, NewOrder, OrderType, Request, Side, SymbolId};
//! use tickpath_oms_client::{Client, ClientEvent, Config};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::connect(Config::new("unix:///run/tickpath/oms.sock", "anna", "correct horse"))?;
//! let order = NewOrder {
//!     client_order_id: ClientOrderId(1),
//!     account: AccountId(7),
//!     symbol: SymbolId(0),
//!     price: "101.5".parse()?,
//!     quantity: "1".parse()?,
//!     side: Side::Buy.code(),
//!     order_type: OrderType::Limit.code(),
//!     ..NewOrder::default()
//! };
//! client.send(&Request::New(order))?;
//! loop {
//!     client.wait(1_000_000_000);
//!     client.poll(|event| {
//!         if let ClientEvent::Report { number, report, .. } = event {
//!             println!("{number}: {report:?}");
//!         }
//!     })?;
//! }
//! # }
//! ```
//!
//! [`Client::poll`] reads once and never waits: a program that spins calls nothing else. [`Client::wait`] sleeps until
//! there may be an event. Either way a client must be polled more often than its heartbeat time, or the OMS takes it as
//! dead; the only thread in the background is the one that reconnects. A program whose own output blocks calls
//! [`Client::keep_alive`] meanwhile, which sends heartbeats and reads nothing.
//!
//! # Invariants
//!
//! * No report is lost with a connection, and none is passed on twice or out of order: a client that reconnects asks
//!   for the first report that it lacks, and a hole is a [`ClientEvent::Gap`]. The same holds for the details beside
//!   reports; a client that begins with [`Since::Report`] receives those behind the report before it.
//! * The client never resends a request by itself. The OMS states which number it expects next: requests that it did
//!   not take come back as [`ClientEvent::NotTaken`], because they were made for the market of their moment.
//! * A session stays alive while its program takes no reports ([`Client::keep_alive`]).

mod address;
mod client;
mod config;
mod connection;
mod detail_numbers;
mod error;
mod event;
mod logon;
mod reconnect;
mod sequence_numbers;
mod socket;
mod tls;

pub use client::Client;
pub use config::{ClientPassword, Config, Since};
pub use error::{ClientError, ClientSendError};
pub use event::{ClientCounts, ClientEvent, CopiedReport, UNNUMBERED};
pub use tickpath_oms_protocol::InstrumentRow;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
