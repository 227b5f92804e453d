//! The view of an OMS and its access rules: the metrics' text, and a page that does nothing for other sites, other
//! users and requests without a login.

mod attacks;
mod metrics;
mod origins;
mod port;
mod requests;
mod tls;
