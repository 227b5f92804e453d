//! The venue through its public interface.

mod commands;
mod compare;
mod invariants;
mod lanes;
mod naive;
mod operator;
mod restart;
mod rules;
mod script;
mod world;
