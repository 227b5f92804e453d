//! The market crate through its public interface: messages, the published schema, order books, and recordings.

mod book;
mod message;
mod replay;
mod schema;
