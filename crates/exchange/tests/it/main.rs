//! The venue through its public interface.

mod commands;
mod invariants;
mod naive;
mod rules;
