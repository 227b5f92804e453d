//! The exchanges that take orders: their names, and the addresses of their interfaces.

use std::fmt;

use clap::ValueEnum;

use crate::feeds::FeedExchange;

/// Hosts of OKX's private channels, each with the address of its REST interface.
const OKX_HOSTS: [(&str, &str); 6] = [
    ("ws.okx.com", "https://openapi.okx.com"),
    ("wspap.okx.com", "https://openapi.okx.com"),
    ("wseea.okx.com", "https://eea.okx.com"),
    ("wseeapap.okx.com", "https://eea.okx.com"),
    ("wsus.okx.com", "https://us.okx.com"),
    ("wsuspap.okx.com", "https://us.okx.com"),
];
/// Hosts of Binance's WebSocket API, each with the address of its REST interface.
const BINANCE_HOSTS: [(&str, &str); 2] = [
    ("ws-api.binance.com", "https://api.binance.com"),
    ("ws-api.testnet.binance.vision", "https://testnet.binance.vision"),
];

/// An exchange whose protocol a line of orders speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderExchange {
    /// OKX, API v5
    Okx,
    /// Binance spot
    Binance,
}

impl OrderExchange {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Okx, Self::Binance];

    /// Returns the name on the command line, which also begins the URL of a line, before the `+`.
    pub fn name(self) -> &'static str {
        self.feed().name()
    }

    /// Returns the exchange as the commands for market data name it.
    pub fn feed(self) -> FeedExchange {
        match self {
            Self::Okx => FeedExchange::Okx,
            Self::Binance => FeedExchange::Binance,
        }
    }

    /// Returns the address of the REST interface that belongs to an address of the WebSocket: the exchange's own for a
    /// host of the exchange, and the same host and port for any other. None for an unknown host of OKX, whose accounts
    /// belong to one REST interface.
    pub fn rest_url(self, url: &str) -> Option<String> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?']).next()?;
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let (hosts, own_domain) = match self {
            Self::Okx => (&OKX_HOSTS[..], ".okx.com"),
            Self::Binance => (&BINANCE_HOSTS[..], ".binance.com"),
        };
        match hosts.iter().find(|(known, _)| *known == host) {
            Some((_, rest_url)) => Some((*rest_url).to_owned()),
            None if host.ends_with(own_domain) => None,
            None => Some(format!("{}://{authority}", if scheme == "ws" { "http" } else { "https" })),
        }
    }
}

impl fmt::Display for OrderExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Okx => "OKX",
            Self::Binance => "Binance",
        })
    }
}
