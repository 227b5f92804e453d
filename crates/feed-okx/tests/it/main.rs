//! One binary for all tests, because each further binary would be linked separately.

mod agreement;
mod conformance;
mod connection;
mod exchange;
mod frames;
mod hostile;
mod instruments;
mod messages;
mod sbe;
