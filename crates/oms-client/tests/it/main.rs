//! The promises to a user's program, against an OMS whose frames each test writes.

mod hostile;
mod logon;
mod losses;
mod oms;
mod talk;
