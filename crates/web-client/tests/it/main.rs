//! The clients against servers on loopback: real sockets, real TLS, and servers that misbehave.

mod exchange;
mod hostile;
mod https;
mod secrets;
mod server;
mod session;
