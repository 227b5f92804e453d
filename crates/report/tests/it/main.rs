//! The result file and its renderings.

mod example;
mod report;
mod screen;
