//! What is shown, and to whom: the metrics' text, and a page that does nothing for other sites.

mod metrics;
mod requests;
