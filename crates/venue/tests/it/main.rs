//! One binary for all tests: each more of them would be linked again.

mod text;
