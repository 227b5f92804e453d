//! The promises of the checks, tested from outside.

mod page;
