//! The exchanges that can be simulated with their own protocols.

use std::net::SocketAddr;

use tickpath_exchanges::OrderExchange;
use tickpath_venue_sim_binance::BinanceExchange;
use tickpath_venue_sim_okx::OkxExchange;
use tickpath_venue_sim_web::{SimDesk, WebFaults, WebService};

/// A simulated exchange.
pub enum SimulatedExchange {
    Okx(Box<OkxExchange>),
    Binance(Box<BinanceExchange>),
}

impl SimulatedExchange {
    pub fn new(protocol: OrderExchange, desk: SimDesk, faults: WebFaults) -> Self {
        match protocol {
            OrderExchange::Okx => Self::Okx(Box::new(OkxExchange::new(desk, faults))),
            OrderExchange::Binance => Self::Binance(Box::new(BinanceExchange::new(desk, faults))),
        }
    }

    /// Returns the desk, to move its market.
    pub fn desk(&mut self) -> &mut SimDesk {
        match self {
            Self::Okx(exchange) => exchange.desk(),
            Self::Binance(exchange) => exchange.desk(),
        }
    }

    /// Returns the protocol, for the server.
    pub fn service(&mut self) -> &mut dyn WebService {
        match self {
            Self::Okx(exchange) => &mut **exchange,
            Self::Binance(exchange) => &mut **exchange,
        }
    }
}

/// Returns the fee rates of makers and takers, in 10⁻⁶ of the notional: those of the lowest tier.
pub fn fees_e6(exchange: OrderExchange) -> (i64, i64) {
    match exchange {
        OrderExchange::Okx => (800, 1_000),
        OrderExchange::Binance => (1_000, 1_000),
    }
}

/// Returns the addresses of the interfaces, each with its name.
pub fn urls(exchange: OrderExchange, address: SocketAddr, has_tls: bool) -> Vec<(&'static str, String)> {
    let (web_socket, rest) = if has_tls { ("wss", "https") } else { ("ws", "http") };
    let rest = ("rest", format!("{rest}://{address}"));
    let web_socket = |name: &'static str, path: &str| (name, format!("{web_socket}://{address}{path}"));
    match exchange {
        OrderExchange::Okx => {
            vec![web_socket("public", "/ws/v5/public"), web_socket("private", "/ws/v5/private"), rest]
        }
        OrderExchange::Binance => vec![web_socket("streams", ""), web_socket("private", "/ws-api/v3"), rest],
    }
}
