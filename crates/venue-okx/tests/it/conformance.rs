//! The line against the contract of lines, with the scripted exchange as its far end. OKX reports at a connect neither
//! the requests nor the reports that it has.

use serde_json::Value;
use tickpath_market::ExecutionReport;
use tickpath_venue::Line;
use tickpath_venue::conformance::{TestVenue, VenueCapabilities, check};
use tickpath_venue_okx::OkxLine;

use crate::exchange::ScriptedOkx;
use crate::harness::config;
use crate::rows::OrderRow;

struct ContractVenue {
    okx: ScriptedOkx,
}

impl ContractVenue {
    /// Returns the id of a request of the suite: that of the order, or that behind the order which it cancels.
    fn id_of(request: &Value) -> u64 {
        let name = request["args"][0]["clOrdId"].as_str().expect("a request names an order");
        let order = u64::from_str_radix(&name[16..], 16).expect("a name ends with the id");
        if request["op"] == "cancel-order" { order + 1 } else { order }
    }
}

impl TestVenue for ContractVenue {
    fn line(&mut self) -> Box<dyn Line> {
        Box::new(OkxLine::new(config(&self.okx)).expect("the configuration is in order"))
    }

    fn received_requests(&mut self) -> Vec<u64> {
        self.okx.work();
        self.okx.requests().iter().map(Self::id_of).collect()
    }

    fn send_report(&mut self, report: &ExecutionReport) {
        // The suite's orders have account zero.
        let row = OrderRow::live(report.order_id.0);
        let name = row.get("clOrdId").replacen("00000007", "00000000", 1);
        self.okx.send(&row.with("clOrdId", &name).push());
    }

    fn disconnect(&mut self) {
        self.okx.work();
        self.okx.cut();
    }

    fn capabilities(&self) -> VenueCapabilities {
        VenueCapabilities { requests: false, reports: false }
    }
}

#[test]
fn the_line_keeps_the_contract() {
    check(|| ContractVenue { okx: ScriptedOkx::start() });
}
