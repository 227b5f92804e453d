//! What a running OMS shows to others, without a word to its core's thread.
//!
//! ```text
//!   counters in shared memory ──> Meters ──┬──> /metrics, for Prometheus
//!                                          ├──> View, a frame ──> the page, `tickpath top`
//!   journal on the disk ──> Follower ──────┘
//!                                     the page's kill and cancel ──> a session of its admin with the OMS
//! ```

mod admin;
mod follow;
mod http;
mod metrics;
mod serve;
mod shown;
mod view;

pub use follow::{Follower, Session};
pub use metrics::{MEDIA_TYPE, METRICS, Metric, render};
pub use serve::{Config, ServeError, Serving, serve};
pub use view::{
    FRAME_NS, HopRow, KillRow, LineRow, MOST_ORDERS, MOST_POSITIONS, Names, OrderRow, PositionRow, Recent, SessionRow,
    View, duration,
};
