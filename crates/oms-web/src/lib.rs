//! The public view of a running OMS, which costs its core's thread nothing.
//!
//! ```text
//!   counters in shared memory ──> Meters ──┬──> /metrics, for Prometheus
//!                                          ├──> View, a frame ──> the page, `tickpath top`
//!   journal on the disk ──> Follower ──────┘
//!                                     the page's kill and cancel ──> a session of its admin with the OMS
//! ```
//!
//! A request needs a login (`logins`), which limits it to its user's view (`rights`); `guard` has the other checks.

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
