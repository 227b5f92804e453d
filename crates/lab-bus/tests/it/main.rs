//! Ends in other languages: what a run says of them is known beforehand.

mod go;
mod python;
