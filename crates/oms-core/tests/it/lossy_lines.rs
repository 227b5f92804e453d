//! Honest venues behind lines that lose, delay, duplicate and reorder messages. The position with its open quantity
//! never understates the venue's fills, and once all status requests are answered every order agrees with its venue or
//! is `Unknown`.

use tickpath_market::{NewOrder, OrdStatus, OrderId, Request, Side, SymbolId};
use tickpath_oms_core::{
    GapTimer, Input, Instrument, LOST_REPORTS, LOST_REQUESTS, MessageLoss, Output, ReportRecord, VenueRules,
};

use crate::dice::{Dice, seed};
use crate::scene::{ACCOUNT, Scene, VENUE, instrument, order};
use crate::venue::{HonestVenue, VenueSideOrder};

const ORDERS: u64 = 12;
const STEPS: u64 = 250;
/// Rounds of a test run, and of a long run (`TICKPATH_SOAK`).
const ROUNDS: u64 = 400;
const SOAK_ROUNDS: u64 = 20_000;

/// Behavior of the lines.
#[derive(Debug, Clone, Copy)]
struct LossyLines {
    numbered: bool,
    /// One message in this many is lost; 0 loses none.
    loses: u64,
    doubles: u64,
    /// Reports arrive in any order.
    swaps: bool,
}

struct LossyPath {
    scene: Scene,
    venue: HonestVenue,
    dice: Dice,
    lines: LossyLines,
    requests: Vec<Request>,
    reports: Vec<ReportRecord>,
    /// Losses of requests and of reports that the core has not been notified of yet.
    lost: [bool; 2],
    client: u64,
    ids: Vec<u64>,
}

#[test]
fn a_numbering_venue_converges_over_bad_lines() {
    check_all(LossyLines { numbered: true, loses: 12, doubles: 12, swaps: true });
    check_all(LossyLines { numbered: true, loses: 4, doubles: 4, swaps: true });
}

#[test]
fn a_venue_without_sequences_converges_over_lossy_lines() {
    check_all(LossyLines { numbered: false, loses: 12, doubles: 0, swaps: false });
}

/// Nothing is lost, so no order may be in doubt.
#[test]
fn a_numbering_venue_converges_over_reordering_lines() {
    let seed = seed();
    for round in 0..rounds() {
        let mut path = LossyPath::new(seed + round, LossyLines { numbered: true, loses: 0, doubles: 0, swaps: true });
        path.live();
        path.settle();
        let counts = path.scene.counts();
        assert_eq!((counts.unknown, counts.contradictions), (0, 0), "seed {}", seed + round);
        path.check(&format!("seed {}", seed + round));
    }
}

fn rounds() -> u64 {
    if std::env::var_os("TICKPATH_SOAK").is_some() { SOAK_ROUNDS } else { ROUNDS }
}

fn check_all(lines: LossyLines) {
    let seed = seed();
    let (mut known, mut unknown) = (0, 0);
    for seed in seed..seed + rounds() {
        let mut path = LossyPath::new(seed, lines);
        path.live();
        path.settle();
        unknown += path.check(&format!("seed {seed}, {lines:?}"));
        known += path.ids.len();
    }
    assert!(unknown * 2 < known, "the lines are worth a test: {unknown} of {known} ended unknown");
}

impl LossyPath {
    /// Creates a path on which each order has its own symbol, so that the position shows the order's exposure.
    fn new(seed: u64, lines: LossyLines) -> Self {
        let mut scene = Scene::numbered(lines.numbered);
        for client in 1..=ORDERS {
            scene.apply(Input::Instrument(Instrument { symbol: symbol(client), ..instrument(1) }));
        }
        // Without losses a late message puts nothing in doubt.
        let max_gap_ns = if lines.loses == 0 { u64::MAX } else { 40 };
        let rules = VenueRules { numbered: u8::from(lines.numbered), max_gap_ns, ..VenueRules::of(VENUE) };
        scene.apply(Input::Venue(rules));
        Self {
            scene,
            venue: HonestVenue::new(lines.numbered),
            dice: Dice::new(seed),
            lines,
            requests: Vec::new(),
            reports: Vec::new(),
            lost: [false; 2],
            client: ORDERS,
            ids: Vec::new(),
        }
    }

    fn live(&mut self) {
        for _ in 0..STEPS {
            match self.dice.below(12) {
                0 | 1 => self.ask(),
                2..=4 => self.carry_request(),
                5 | 6 if !self.venue.orders.is_empty() => {
                    let report = self.venue.trade(&mut self.dice);
                    report.into_iter().for_each(|report| self.post(report));
                }
                7..=10 => self.carry_report(),
                11 if self.dice.once_in(4) => self.tell_doubts(),
                _ => self.apply(Input::GapTimer(GapTimer::default())),
            }
        }
    }

    /// Repairs the lines, delivers all messages, and asks the venue for all orders until its answers bring nothing new.
    fn settle(&mut self) {
        (self.lines.loses, self.lines.doubles) = (0, 0);
        for _ in 0..4 {
            self.tell_doubts();
            while !self.requests.is_empty() || !self.reports.is_empty() {
                self.carry_request();
                self.carry_report();
            }
            for id in self.ids.clone() {
                self.scene.inquire(id);
                self.send_on();
            }
        }
    }

    /// Checks every order against the venue, and returns the number of unknown orders.
    fn check(&self, context: &str) -> usize {
        let mut unknown = 0;
        for (&id, client) in self.ids.iter().zip(1..) {
            let view = self.scene.core.order(OrderId(id)).expect("it was kept");
            let position = self.scene.core.position(ACCOUNT, symbol(client));
            let filled = self.venue.orders.get(&id).map_or(0, |order| order.filled);
            assert!(position.net + position.working_buy >= filled.into(), "{context}: {view:?}, filled {filled}");
            unknown += usize::from(view.status == OrdStatus::Unknown);
            if view.status == OrdStatus::Unknown {
                continue;
            }
            let Some(order) = self.venue.orders.get(&id) else {
                assert_eq!(view.status, OrdStatus::Rejected, "{context}: it never arrived, {view:?}");
                continue;
            };
            // Lost fills that the report of an order's end counts stay exposure.
            let all = i128::from(view.cumulative.0) + position.working_buy;
            assert_eq!(view.leaves.0, order.open(), "{context}: {order:?} {view:?}");
            assert_eq!(all, i128::from(order.filled) + i128::from(order.open()), "{context}: {order:?} {view:?}");
            assert!(is_same(view.status, order), "{context}: {order:?} {view:?}");
        }
        unknown
    }

    /// Sends a random request of a client.
    fn ask(&mut self) {
        let known = self.ids.len() as u64;
        self.client += 1;
        if known < ORDERS && (known == 0 || self.dice.once_in(2)) {
            let new = NewOrder { symbol: symbol(known + 1), ..order(known + 1, Side::Buy, 100, 10) };
            let id = self.scene.request(Request::New(new));
            self.ids.push(id);
        } else if self.dice.once_in(3) {
            self.scene.cancel(self.client, 1 + self.dice.below(known));
        } else {
            let quantity = 5 + self.dice.below(12) as i64;
            self.scene.replace(self.client, 1 + self.dice.below(known), 101, quantity);
        }
        self.send_on();
    }

    fn apply(&mut self, input: Input) {
        self.scene.apply(input);
        self.send_on();
    }

    fn send_on(&mut self) {
        let sent = self.scene.out.iter().filter_map(|out| match out {
            Output::Venue { request, .. } => Some(*request),
            _ => None,
        });
        self.requests.extend(sent);
    }

    fn happens(&mut self, once_in: u64) -> bool {
        once_in > 0 && self.dice.once_in(once_in)
    }

    /// Delivers the first request in flight, sometimes twice, or loses it.
    fn carry_request(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let request = self.requests.remove(0);
        if self.happens(self.lines.loses) {
            self.lost[0] = true;
            return;
        }
        let times = 1 + u64::from(self.happens(self.lines.doubles));
        for _ in 0..times {
            let report = self.venue.take(&request, &mut self.dice);
            self.post(report);
        }
    }

    fn post(&mut self, report: tickpath_market::ExecutionReport) {
        self.reports.push(ReportRecord { report, source: VENUE, ..ReportRecord::default() });
    }

    /// Delivers a report in flight, sometimes keeps it in flight, too, or loses it.
    fn carry_report(&mut self) {
        if self.reports.is_empty() {
            return;
        }
        let place = if self.lines.swaps { self.dice.below(self.reports.len() as u64) as usize } else { 0 };
        let report = self.reports.remove(place);
        if self.happens(self.lines.loses) {
            self.lost[1] = true;
            return;
        }
        if self.happens(self.lines.doubles) {
            self.reports.push(report);
        }
        self.apply(Input::Report(report));
    }

    fn tell_doubts(&mut self) {
        for (place, lost) in [(0, LOST_REQUESTS), (1, LOST_REPORTS)] {
            if std::mem::take(&mut self.lost[place]) {
                self.apply(Input::MessageLoss(MessageLoss { messages: 1, venue: VENUE, lost, reserved: [0; 5] }));
            }
        }
    }
}

/// Returns the symbol of an order; each order has its own.
fn symbol(client: u64) -> SymbolId {
    SymbolId(100 + client as u32)
}

/// Compares a status with the venue's. An unanswered request hides the status of a filled order, and an order that
/// ended at a larger total by a lost replace shows as filled at the known total.
fn is_same(status: OrdStatus, order: &VenueSideOrder) -> bool {
    let hides = matches!(status, OrdStatus::PendingCancel | OrdStatus::PendingReplace | OrdStatus::Filled);
    status == order.status || (hides && order.open() == 0)
}
