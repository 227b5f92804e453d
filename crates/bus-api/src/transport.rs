//! What a transport is, for who has no connection yet: each adapter tells it in one [`Transport`].

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

/// What was looked at on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What.
    pub name: &'static str,
    /// How it is there; or why it does not tell.
    pub value: Result<String, String>,
    /// What that costs; none if it is as it should be, or not known.
    pub cost: Option<Cost>,
}

/// What a setting costs or risks, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// It costs time.
    Latency {
        /// What it costs.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// It can lose messages.
    Safety {
        /// What it risks.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

impl Advice {
    /// As it should be.
    pub fn good(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: Ok(value.into()), cost: None }
    }

    /// It costs time.
    pub fn latency(name: &'static str, value: impl Into<String>, why: &'static str, remedy: &'static str) -> Self {
        Self { name, value: Ok(value.into()), cost: Some(Cost::Latency { why, remedy }) }
    }

    /// It can lose messages.
    pub fn safety(name: &'static str, value: impl Into<String>, why: &'static str, remedy: &'static str) -> Self {
        Self { name, value: Ok(value.into()), cost: Some(Cost::Safety { why, remedy }) }
    }

    /// The server does not tell, and why.
    pub fn unknown(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, value: Err(why.into()), cost: None }
    }
}
