//! Facts about a transport before a connection exists: each adapter exports them as one [`Transport`].

use crate::advice::Advice;
use crate::connection::{Connection, ServerDescription};
use crate::error::ConnectError;

/// Static description of a transport.
#[derive(Debug, Clone, Copy)]
pub struct Transport {
    /// Common name.
    pub name: &'static str,
    /// URL schemes, without `://`; the usual one first.
    pub schemes: &'static [&'static str],
    /// URL syntax, shown after a URL that names no transport; empty if it is not to be shown.
    pub url_syntax: &'static str,
    /// Modes, as its URLs end: the plain one, which is empty, and others like `?streams`.
    pub modes: &'static [&'static str],
    /// Default port of its servers; none if it needs no server, but this host alone.
    pub port: Option<u16>,
    /// Connects to the place that a URL names.
    pub connect: fn(&str) -> Result<Box<dyn Connection>, ConnectError>,
    /// Returns the settings of a server that cost latency or safety, from its description.
    pub advise: fn(&ServerDescription) -> Vec<Advice>,
}

impl Transport {
    /// Returns whether a server carries the messages.
    pub const fn is_server(&self) -> bool {
        self.port.is_some()
    }
}
