//! Tests of the venue through its public interface.

mod commands;
mod compare;
mod faults;
mod guard;
mod invariants;
mod lanes;
mod naive;
mod operator;
mod owners;
mod quotes;
mod restart;
mod rules;
mod script;
mod server;
mod settings;
mod sockets;
mod world;
