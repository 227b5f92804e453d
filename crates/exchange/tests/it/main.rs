//! The venue through its public interface.

mod commands;
mod compare;
mod faults;
mod invariants;
mod lanes;
mod naive;
mod operator;
mod quotes;
mod restart;
mod rules;
mod script;
mod server;
mod settings;
mod world;
