//! Order entry for users' programs: a session with an OMS over a Unix socket, TCP or TLS, which survives the loss of its
//! connection.
//!
//! ```no_run
//! use tickpath_oms_client::{Client, Config, Event};
//! use tickpath_market::{AccountId, ClientOrderId, NewOrder, OrderType, Request, Side, SymbolId};
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
//!         if let Event::Report { number, report, .. } = event {
//!             println!("{number}: {report:?}");
//!         }
//!     })?;
//! }
//! # }
//! ```
//!
//! # Polled or blocking
//!
//! [`Client::poll`] reads once and never waits: a program that spins calls nothing else. [`Client::wait`] sleeps until
//! there may be an event. Either way a client must be polled more often than its heartbeat time, or the OMS takes it as
//! dead; the only thread in the background is the one that reconnects. A program whose own output blocks calls
//! [`Client::keep_alive`] meanwhile, which sends heartbeats and reads nothing.
//!
//! # What is lost with a connection
//!
//! Nothing. Reports are numbered: a client that reconnects asks for the first report that it lacks, and a hole is an
//! [`ClientEvent::Gap`]. Requests are numbered, too, and the OMS reports which number it expects next: requests that it took
//! are never sent again, and those that it did not take come back as [`ClientEvent::NotTaken`]. The client does not send
//! these again by itself: they were made for the market of their moment, and only the program knows if they still hold.

mod address;
mod client;
mod config;
mod connection;
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
