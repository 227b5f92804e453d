//! Tests of the venue through its public interface.

mod compare;
mod faults;
mod hostile_peers;
mod invariants;
mod lanes;
mod naive;
mod operator;
mod owners;
mod quotes;
mod random_commands;
mod restart;
mod rules;
mod script;
mod server;
mod settings;
mod sockets;
mod world;
