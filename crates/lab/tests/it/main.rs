//! What can be tried without a run.

mod compare;
mod doctor;
mod proxy;
