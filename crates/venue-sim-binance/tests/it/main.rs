//! The simulated exchange over its real server, with real clients.

mod books;
mod faults;
mod feed;
mod limits;
mod orders;
mod refusals;
mod rest;
mod self_trades;
mod sessions;
mod signatures;
mod streams;
mod traders;
mod trial;
