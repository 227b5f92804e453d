//! The containers of slots, seen from outside.

mod index;
mod queue;
