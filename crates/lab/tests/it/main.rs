//! The result file and its renderings.

mod doctor;
mod example;
mod proxy;
mod report;
