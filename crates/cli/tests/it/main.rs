//! What the binary does, and the rules of the house.

mod broken;
mod brokers;
mod browser;
mod logs;
mod program;
mod reports;
mod server;
mod tidy;
mod usage;
