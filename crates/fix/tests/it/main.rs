//! The crate through its public interface: the codec against naive parsers, dictionaries, sessions, schedules, logons,
//! and the session definitions of QuickFIX.

mod definitions;
mod dictionary;
mod fields;
mod frames;
mod logon_recipe;
mod schedule;
mod session;
mod validation;
mod writer;
