//! The suite of the contract, against the scripted exchange as a venue that reports no state of requests or reports. All
//! cases hold; two of them end early for such a venue, because it keeps nothing that a connect could report.

use tickpath_market::{ExecutionReport, SymbolId};
use tickpath_venue::Line;
use tickpath_venue::conformance::{TestVenue, VenueCapabilities, check};
use tickpath_venue_binance::{BinanceLine, BinanceLineConfig, RequestLimits};

use crate::driver::{config, instrument};
use crate::exchange::{Received, ScriptedExchange};
use crate::frames::{EventFrame, order_of, text_of};

/// A venue that takes every request and answers none.
struct SilentVenue {
    exchange: ScriptedExchange,
}

impl TestVenue for SilentVenue {
    fn line(&mut self) -> Box<dyn Line> {
        // The suite sends 200 orders at once.
        let limits = RequestLimits { orders_per_10_s: 1_000, ..RequestLimits::default() };
        let instruments = vec![instrument("BTCUSDT", SymbolId(0))];
        let config = BinanceLineConfig { instruments, limits, ..config(&self.exchange) };
        Box::new(BinanceLine::new(config).unwrap_or_else(|error| panic!("a line: {error}")))
    }

    fn received_requests(&mut self) -> Vec<u64> {
        self.exchange.received().iter().filter_map(request_id).collect()
    }

    fn send_report(&mut self, report: &ExecutionReport) {
        // The orders of the suite are of account zero.
        let text = text_of(report.order_id.0);
        let text = format!("{}0", &text[..text.len() - 1]);
        self.exchange.send(&EventFrame::new(&text, report.order_id.0 + 1).text());
    }

    fn disconnect(&mut self) {
        self.exchange.cut();
    }

    fn capabilities(&self) -> VenueCapabilities {
        VenueCapabilities { requests: false, reports: false }
    }
}

/// Returns the id of a request: a new order's text has it, and a cancel of the suite has the number before its id.
fn request_id(request: &Received) -> Option<u64> {
    match request.method() {
        "order.place" => Some(order_of(&request.param("newClientOrderId"))),
        "order.cancel" => Some(request.json["id"].as_u64()? + 1),
        _ => None,
    }
}

#[test]
fn a_line_keeps_the_contract() {
    check(|| SilentVenue { exchange: ScriptedExchange::start() });
}
