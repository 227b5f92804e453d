//! What a bench starts for itself: a Redis server on a free port, and a Python with pinned packages. Both end with it.
//! [`about`] is what such a server says beyond what the bus asks of any (`Connection::about`): counts of its commands.

pub mod about;
pub mod python;
pub mod redis;
