//! Guarantees to both ends of an order entry connection.

mod frames;
mod scram;
mod zeroized;
