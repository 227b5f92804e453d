//! What the binary does, and the rules of the house.

mod tidy;
