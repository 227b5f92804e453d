//! What a bench starts for itself: a Redis server on a free port, and a Python with pinned packages. Both end with it.

pub mod about;
pub mod python;
pub mod redis;
