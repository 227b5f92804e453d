//! Text and JSON of messages, and the text forms that a user types.

mod lines;
mod user_input;
