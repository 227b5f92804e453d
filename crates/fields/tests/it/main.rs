//! What a person or a program reads of messages, and what a person may write.

mod lines;
mod written;
