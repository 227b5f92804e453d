//! The result file and its renderings.

mod example;
mod own;
mod report;
mod screen;
