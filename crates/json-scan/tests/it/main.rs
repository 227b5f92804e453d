//! A scan against complete parsers: it reads the same values from all that it accepts, and refuses the rest in place.

mod numbers;
mod texts;
