//! Clients of web servers for threads that poll: a WebSocket that never waits, and HTTPS requests on threads of their
//! own.
//!
//! ```text
//!   kernel ── recvmsg, receive time ──> TLS ──> WebSocket ── WebSocketEvent, FrameArrival ──> WebSocketClient::poll
//!
//!   Rehearsal: the same two layers, in memory, for the warm-up of an idle thread
//!
//!   HttpsClient::start ── request ──> thread ── response ──> PendingResponse::try_take
//! ```
//!
//! ```no_run
//! use tickpath_web_client::{WebSocketClient, WebSocketConfig, WebSocketEvent};
//!
//! let mut client = WebSocketClient::new(WebSocketConfig::new("wss://stream.example.com/ws"))?;
//! client.connect();
//! let mut messages = 0;
//! while messages < 100 {
//!     let mut is_up = false;
//!     client.poll(&mut |event| match event {
//!         WebSocketEvent::Up => is_up = true,
//!         WebSocketEvent::Text(text, arrival) => {
//!             println!("{} bytes, read at tick {}", text.len(), arrival.read);
//!             messages += 1;
//!         }
//!         _ => {}
//!     })?;
//!     if is_up {
//!         client.send_text(r#"{"method":"SUBSCRIBE","params":["btcusdt@bookTicker"]}"#)?;
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! * No call waits, except for the name lookup in [`WebSocketClient::connect`], and [`HttpsClient::fetch`].
//! * A connect is bounded in time, and the memory of a connection by the size of a message and of the unsent output.
//! * A frame has the receive time of the packet that completed it ([`FrameArrival`]): bytes are read from the kernel
//!   only while no complete frame is left.
//! * A URL without TLS is accepted for this host's own loopback only.
//! * No error and no `Debug` form shows the query of a URL, the value of a header or the body of a request, which may
//!   be keys. Text of a server is shown without control characters, 200 characters of it at most.

mod config;
mod connect;
mod error;
mod https;
mod rehearsal;
mod secure_stream;
mod sentence;
mod target;
mod timed_stream;
mod websocket;

pub use config::WebSocketConfig;
pub use error::{HttpError, WebClientError, WebSocketLost, WebSocketSendError};
pub use https::{HttpRequest, HttpResponse, HttpsClient, PendingResponse};
pub use rehearsal::Rehearsal;
pub use timed_stream::{FrameArrival, TimedStream};
pub use websocket::{UpgradeRefusal, WebSocketClient, WebSocketEvent};
