//! The public view of a running OMS: metrics for Prometheus, a live page, and the frames that `tickpath top` draws.
//!
//! ```text
//!   counters in shared memory ──> MeterReader ──┬──> /metrics, for Prometheus
//!                                               ├──> view, a frame ──> the page, `tickpath top`
//!   journal on the disk ──> JournalFollower ────┘
//!                                     the page's kill and cancel ──> a session of its admin with the OMS
//! ```
//!
//! A request needs a login (`logins.rs`), which limits it to its user's view (`rights.rs`); `guard.rs` has the other
//! checks.
//!
//! # Invariants
//!
//! * A reader costs the core nothing: the counters are words that one thread stores, and the journal is read from its
//!   files.
//! * A command that changes something goes by a session of the admin who asked for it, so the OMS itself checks the
//!   right.
//! * Neither the cookie nor the token of a login is worth anything alone (`logins.rs`, `guard.rs`).
//! * A user sees the data that its session may see; a stranger sees `/health` and the page's own files.
//! * Wrong passwords keep out the origin that they come from, and no other.

mod accept;
mod admin;
mod guard;
mod http;
mod journal_follower;
mod logins;
mod metrics;
mod origin;
mod page_state;
mod rights;
mod serve;
mod tls;
mod view;

pub use journal_follower::{JournalFollower, SessionActivity};
pub use metrics::{MEDIA_TYPE, METRICS, Metric, render};
pub use page_state::NotifyOperator;
pub use rights::{PageUser, PageUserLookup, Rights};
pub use serve::{Config, Endpoint, RunningEndpoints, ServeError, serve};
pub use tls::PageTlsFiles;
pub use view::{
    DisplayNames, FRAME_NS, HopRow, KillRow, LineRow, MAX_ORDERS, MAX_POSITIONS, OmsView, PageOrderRow,
    PagePositionRow, RecentReadings, SessionRow, duration,
};
