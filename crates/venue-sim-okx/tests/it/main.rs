//! One binary for all tests, because each further binary would be linked separately.

mod accounts;
mod books;
mod faults;
mod feed;
mod hostile;
mod limits;
mod logins;
mod market;
mod orders;
mod refusals;
mod rest;
mod stage;
mod vectors;
