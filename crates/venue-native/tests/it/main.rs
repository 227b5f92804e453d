//! One binary for all tests, because each further binary would be linked separately.

mod address;
mod conformance;
mod hostile;
