//! One binary for all tests, because each further binary would be linked separately.

mod book_order;
mod race;
mod text;
