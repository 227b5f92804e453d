//! One binary for all tests: each more of them would be linked again.

mod address;
mod conformance;
mod hostile;
