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
mod follow;
mod guard;
mod http;
mod logins;
mod metrics;
mod origin;
mod rights;
mod serve;
mod shown;
mod tls;
mod view;

pub use follow::{Follower, Session};
pub use metrics::{MEDIA_TYPE, METRICS, Metric, render};
pub use rights::{PageUser, Rights, UserDirectory};
pub use serve::{Config, Endpoint, ServeError, Serving, serve};
pub use shown::NotifyOperator;
pub use tls::TlsFiles;
pub use view::{
    FRAME_NS, HopRow, KillRow, LineRow, MOST_ORDERS, MOST_POSITIONS, Names, OrderRow, PositionRow, Recent, SessionRow,
    View, duration,
};
