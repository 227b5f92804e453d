//! The result file and its renderings.

mod compare;
mod doctor;
mod example;
mod proxy;
mod report;
