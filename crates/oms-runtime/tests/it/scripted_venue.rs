//! A venue whose reports a test chooses, and the requests that it receives.

use tickpath_clock::SimulatedClock;
use tickpath_market::{ClientOrderId, ExecId, ExecType, ExecutionReport, OrderId, Price, Quantity, Side};
use tickpath_oms_runtime::layout::Inline;
use zerocopy::IntoBytes;

use crate::{Client, Clock, Kind, Request, Scene, VENUE, VenueLanes, WIDE, limit, poll, top};

/// A venue that sends only the reports that a test gives it.
pub struct ScriptedVenue {
    pub lanes: VenueLanes,
    clock: SimulatedClock,
}

impl ScriptedVenue {
    pub fn join(scene: &Scene) -> Self {
        Self { lanes: scene.venue_lanes(), clock: scene.clock.clone() }
    }

    /// Returns all requests since the last call.
    pub fn receive(&mut self) -> Vec<Request> {
        let mut received = Vec::new();
        while let crate::Next::Message(message) = self.lanes.requests.next().expect("the lane is sound") {
            received.push(Request::read(message.kind, message.payload).expect("the OMS writes requests"));
        }
        received
    }

    pub fn send(&mut self, report: &ExecutionReport) {
        let kind = Kind::ExecutionReport.code();
        self.lanes.reports.publish(self.clock.ticks(), kind, report.as_bytes()).expect("the OMS reads this lane");
    }
}

/// Returns a report on a limit order of the wide account, by its id at the venue.
pub fn report(id: u64, exec_type: ExecType, sequence: u64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(id),
        venue_sequence: sequence,
        cumulative_quantity: Quantity::from_whole(cumulative),
        leaves_quantity: Quantity::from_whole(leaves),
        price: Price::from_whole(90),
        account: WIDE,
        venue: VENUE,
        exec_type: exec_type.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    }
}

pub fn fill(id: u64, sequence: u64, exec: u64, last: i64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        exec_id: ExecId(exec),
        client_order_id: ClientOrderId(0),
        last_quantity: Quantity::from_whole(last),
        last_price: Price::from_whole(90),
        ..report(id, ExecType::Trade, sequence, cumulative, leaves)
    }
}

pub fn new_orders(requests: &[Request]) -> Vec<u64> {
    let of = |request: &Request| match request {
        Request::New(order) => Some(order.client_order_id.0),
        _ => None,
    };
    requests.iter().filter_map(of).collect()
}

pub fn questions(requests: &[Request]) -> Vec<u64> {
    let of = |request: &Request| match request {
        Request::Status(status) => Some(status.original.0),
        _ => None,
    };
    requests.iter().filter_map(of).collect()
}

/// Returns a scene with the market at 99 to 101 and an order of five at the venue, without a report yet.
pub fn with_one_order() -> (Scene, Inline<SimulatedClock>, ScriptedVenue, Client, u64) {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let id = new_orders(&venue.receive())[0];
    (scene, oms, venue, client, id)
}

pub fn informed(scene: &Scene) -> Inline<SimulatedClock> {
    let mut oms = Inline::open(scene.clock.clone(), &scene.config, None).unwrap_or_else(|e| panic!("it opens: {e}"));
    oms.sequencer().apply_top_of_book(scene.clock.ticks(), &top(99, 101)).expect("nothing waits for it");
    oms
}
