//! What the checks promise, seen from outside.

mod page;
