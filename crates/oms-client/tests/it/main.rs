//! The promises to a user's program, against an OMS whose frames each test writes.

mod connection;
mod fake_oms;
mod hostile;
mod logon;
mod reconnect;
