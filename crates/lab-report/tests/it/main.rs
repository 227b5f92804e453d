//! The result file and its renderings.

mod example;
mod own_hops;
mod report;
mod screen;
