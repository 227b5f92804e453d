//! The server with clients over loopback, with and without TLS, and hostile ones; the desk; the file of faults.

mod balances;
mod desk;
mod desk_setup;
mod faults;
mod hostile;
mod http;
mod raw;
mod running;
mod sockets;
