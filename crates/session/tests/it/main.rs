//! What both ends of an order entry connection may rely on.

mod frames;
mod scram;
mod wiped;
