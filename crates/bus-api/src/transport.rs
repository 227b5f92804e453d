//! What a transport is, for who has no connection yet: each adapter tells it in one [`Transport`].

use crate::advice::Advice;
use crate::connection::{About, Connection};
use crate::error::ConnectError;

/// A transport.
#[derive(Debug, Clone, Copy)]
pub struct Transport {
    /// What people call it.
    pub name: &'static str,
    /// What its URLs begin with, without `://`; the usual one first.
    pub schemes: &'static [&'static str],
    /// How its URLs are written, for who wrote none of any transport; empty if that is not to be told.
    pub form: &'static str,
    /// The ways to use it, as its URLs end: the plain one, which is empty, and others like `?streams`.
    pub ways: &'static [&'static str],
    /// Where its servers listen if nobody says otherwise; none if it needs no server, but this host alone.
    pub port: Option<u16>,
    /// Connects to where such a URL says.
    pub connect: fn(&str) -> Result<Box<dyn Connection>, ConnectError>,
    /// What of a server that says this of itself costs latency or safety.
    pub advise: fn(&About) -> Vec<Advice>,
}

impl Transport {
    /// Whether a server carries the messages.
    pub const fn is_server(&self) -> bool {
        self.port.is_some()
    }
}
