//! The market crate through its public interface: messages, the published schema, and recordings.

mod message;
mod replay;
mod schema;
