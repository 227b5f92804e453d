//! One binary for all tests, because each further binary would be linked separately.

mod all_orders;
mod answers;
mod conformance;
mod connect;
mod credentials;
mod exchange;
mod fills;
mod harness;
mod properties;
mod pushes;
mod requests;
mod rows;
mod status;
mod upkeep;
