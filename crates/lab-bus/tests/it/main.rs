//! Ends in other languages, whose results are known beforehand.

mod go;
mod python;
