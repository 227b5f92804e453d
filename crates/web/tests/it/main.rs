//! What is shown, and to whom: the metrics' text, and a page that does nothing for other sites, other users and no login.

mod attacks;
mod metrics;
mod origins;
mod port;
mod requests;
mod tls;
