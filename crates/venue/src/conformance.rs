//! The suite that checks a line against the contract: an adapter's test implements [`TestVenue`] for the far end of its
//! line, a real exchange or a counterpart that speaks its protocol, and calls [`check`].

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::{
    CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, OrderType, Request, Side,
};

use crate::{Line, LineEvent, LineSendError, ResumeState};

/// Timeout of every wait.
const TIMEOUT_NS: i64 = 30_000_000_000;

/// The far end of a line, controlled by a test.
pub trait TestVenue {
    /// Returns a line to the venue that was never connected, always with the same identity there.
    fn line(&mut self) -> Box<dyn Line>;

    /// Returns the ids of the requests that the venue has taken since it was created, in order. Does pending work
    /// first.
    fn received_requests(&mut self) -> Vec<u64>;

    /// Sends a report to the line.
    fn send_report(&mut self, report: &ExecutionReport);

    /// Ends the connection; the venue keeps its state.
    fn disconnect(&mut self);

    /// Returns the venue's promises beyond the required ones.
    fn capabilities(&self) -> VenueCapabilities;
}

/// State that a venue can report at a connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VenueCapabilities {
    /// The venue reports which requests it has.
    pub requests: bool,
    /// The venue keeps the reports that it made while no line was connected.
    pub reports: bool,
}

/// A promise, tested against a new venue; panics with a sentence if it is broken.
pub type LineCase = fn(&mut dyn TestVenue);

/// All promises, with their names.
pub const CASES: &[(&str, LineCase)] = &[
    ("nothing is sent while the line is down", nothing_is_sent_while_down),
    ("requests arrive once and in order", requests_arrive),
    ("receipt is proven", receipt_is_proven),
    ("reports arrive once and in order", reports_arrive),
    ("a loss is reported once", loss_is_reported_once),
    ("a connect reports the state of the venue", connect_reports_venue_state),
    ("numbers may be left out", numbers_may_be_left_out),
    ("missed reports are replayed", missed_reports_are_replayed),
];

/// Runs all cases, each against a new venue.
pub fn check<V: TestVenue>(mut venue: impl FnMut() -> V) {
    for (name, case) in CASES {
        println!("{name}");
        case(&mut venue());
    }
}

/// A line, and the events that it has reported.
struct LineUnderTest<'a> {
    clock: HostClock,
    venue: &'a mut dyn TestVenue,
    line: Box<dyn Line>,
    up: Option<(Option<u64>, Option<u64>)>,
    received: u64,
    reports: Vec<(u64, u64)>,
    losses: u32,
}

impl<'a> LineUnderTest<'a> {
    fn new(venue: &'a mut dyn TestVenue) -> Self {
        let clock = HostClock::get().expect("this host has a clock");
        let line = venue.line();
        Self { clock, venue, line, up: None, received: 0, reports: Vec::new(), losses: 0 }
    }

    fn connected(venue: &'a mut dyn TestVenue) -> Self {
        let mut test = Self::new(venue);
        test.connect(0, 0);
        test
    }

    fn connect(&mut self, next_request: u64, next_report: u64) -> (Option<u64>, Option<u64>) {
        self.up = None;
        self.line.connect(&ResumeState { journal: 7, oms: 5, incarnation: 1, next_request, next_report });
        self.wait_until("it is up", |test| test.up.is_some());
        self.up.expect("the line is up")
    }

    /// Ends the connection at the venue, and waits until the line has reported the loss.
    fn disconnect(&mut self) {
        let losses = self.losses;
        self.venue.disconnect();
        self.wait_until("the loss is reported", |test| test.losses > losses);
        assert_eq!(self.losses, losses + 1, "a loss is reported once");
    }

    fn send(&mut self, number: u64, request: &Request) {
        let mut sent = false;
        self.wait_until("the line takes a request", |test| {
            sent |= !sent && test.line.send(number, 1, request).is_ok();
            sent
        });
    }

    fn poll_once(&mut self) {
        let Self { line, up, received, reports, .. } = self;
        let polled = line.poll(&mut |event| match event {
            LineEvent::Up { next_request, next_report } => {
                assert!(up.is_none(), "a connection is up once");
                *up = Some((next_request, next_report));
            }
            LineEvent::Acknowledged(number) => {
                assert!(up.is_some(), "no event precedes the end of the connect");
                assert!(number >= *received, "proof of receipt is never taken back");
                *received = number;
            }
            LineEvent::Report { number, report, .. } => {
                assert!(up.is_some(), "no event precedes the end of the connect");
                reports.push((number, report.order_id.0));
            }
            LineEvent::Detail { .. } => assert!(up.is_some(), "no event precedes the end of the connect"),
        });
        self.losses += u32::from(polled.is_err());
        self.venue.received_requests();
    }

    fn wait_until(&mut self, condition: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let began = self.clock.ticks();
        while !holds(self) {
            self.poll_once();
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(waited < TIMEOUT_NS, "timed out waiting until {condition}");
            sleep_ns(20_000);
        }
    }

    fn wait_for_requests(&mut self, ids: &[u64]) {
        self.wait_until("the venue has all requests", |test| test.venue.received_requests().len() >= ids.len());
        assert_eq!(self.venue.received_requests(), ids, "requests at the venue, and requests sent");
    }
}

fn nothing_is_sent_while_down(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::new(venue);
    assert_eq!(test.line.send(0, 1, &order(1)), Err(LineSendError::Down), "a line that never was connected");
    assert_eq!(test.line.poll(&mut |_| panic!("nothing happened")), Ok(0));
    test.connect(0, 0);
    test.disconnect();
    assert_eq!(test.line.send(0, 1, &order(1)), Err(LineSendError::Down), "a line that was lost");
    assert!(test.venue.received_requests().is_empty());
}

fn requests_arrive(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::connected(venue);
    let ids: Vec<u64> = (1..=300).collect();
    for &id in &ids {
        test.send(id - 1, &if id % 3 == 0 { cancel(id) } else { order(id) });
    }
    test.wait_for_requests(&ids);
}

fn receipt_is_proven(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::connected(venue);
    assert_eq!(test.received, 0, "nothing was sent");
    (0..20).for_each(|number| test.send(number, &order(number + 1)));
    if test.venue.capabilities().requests {
        test.wait_until("receipt is proven", |test| test.received >= 20);
    }
    assert!(test.received <= 20, "receipt of what was never sent");
}

fn reports_arrive(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::connected(venue);
    test.send(0, &order(1));
    test.wait_for_requests(&[1]);
    for id in 0..300 {
        test.venue.send_report(&report(id));
        test.poll_once();
    }
    test.wait_until("all reports have arrived", |test| test.reports.len() >= 300);
    assert_eq!(test.reports, (0..300).map(|id| (id, id)).collect::<Vec<_>>(), "numbers and orders of the reports");
}

fn loss_is_reported_once(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::new(venue);
    for round in 1..4 {
        test.connect(0, 0);
        test.disconnect();
        (0..50).for_each(|_| test.poll_once());
        assert_eq!(test.losses, round, "reported once");
    }
}

fn connect_reports_venue_state(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::connected(venue);
    (0..5).for_each(|number| test.send(number, &order(number + 1)));
    test.wait_for_requests(&[1, 2, 3, 4, 5]);
    test.disconnect();
    // Three further requests that were never sent.
    let (next_request, _) = test.connect(8, 0);
    match test.venue.capabilities().requests {
        true => assert_eq!(next_request, Some(5), "requests at the venue"),
        false => assert_eq!(next_request, None, "an unknown state is reported as none"),
    }
}

fn numbers_may_be_left_out(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::connected(venue);
    test.send(0, &order(1));
    test.send(7, &order(2));
    test.wait_for_requests(&[1, 2]);
    if test.venue.capabilities().requests {
        test.wait_until("receipt is proven", |test| test.received == 8);
        test.disconnect();
        assert_eq!(test.connect(9, 0).0, Some(8));
        test.send(20, &order(3));
        test.wait_for_requests(&[1, 2, 3]);
    }
}

fn missed_reports_are_replayed(venue: &mut dyn TestVenue) {
    let mut test = LineUnderTest::connected(venue);
    test.send(0, &order(1));
    test.wait_for_requests(&[1]);
    (0..10).for_each(|id| test.venue.send_report(&report(id)));
    test.wait_until("ten reports have arrived", |test| test.reports.len() == 10);
    test.disconnect();
    (10..20).for_each(|id| test.venue.send_report(&report(id)));
    // Two of the ten reports were not journaled.
    test.reports.clear();
    let (_, next_report) = test.connect(1, 8);
    if !test.venue.capabilities().reports {
        assert_eq!(next_report, None, "an unknown state is reported as none");
        return;
    }
    assert_eq!(next_report, Some(8));
    test.wait_until("the rest has arrived", |test| test.reports.len() >= 12);
    assert_eq!(test.reports, (8..20).map(|id| (id, id)).collect::<Vec<_>>(), "from the first requested one on");
}

fn order(id: u64) -> Request {
    Request::New(NewOrder {
        client_order_id: ClientOrderId(id),
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        ..NewOrder::default()
    })
}

fn cancel(id: u64) -> Request {
    let (client_order_id, original) = (ClientOrderId(id), ClientOrderId(id - 1));
    Request::Cancel(CancelOrder { client_order_id, original, ..CancelOrder::default() })
}

fn report(id: u64) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(id),
        venue_sequence: 1,
        exec_type: ExecType::New.code(),
        status: OrdStatus::New.code(),
        side: Side::Buy.code(),
        ..ExecutionReport::default()
    }
}
