//! Senders of requests to the OMS: clients, each with a session, and the operator.

use tickpath_clock::Clock;
use tickpath_log::{LogOpenError, Next, Writer};
use tickpath_market::{
    CancelOrder, ClientOrderId, Condition, ConditionalOrder, Kind, MassCancel, MassCancelType, NewOrder, OrderId,
    OrderType, Price, Quantity, ReplaceConditional, ReplaceOrder, Request, Side, StatusRequest, SymbolId, TimeInForce,
    Trigger, TriggerDirection, TriggerJoin, TriggerPriceType,
};
use tickpath_oms_core::{OrderView, RecordKind};
use tickpath_oms_runtime::{LaneKind, LanesConfig, SessionLanes};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::clock::SimClock;
use crate::oracle::tag;
use crate::plan::Dice;
use crate::planted_bugs::PlantedBug;
use crate::remote::{RemoteSession, RemoteWires};
use crate::rule::{BrokenRule, RuleCheck};
use crate::step_context::StepContext;
use crate::trading_config::{LANE_SESSIONS, VENUES, account_of};

/// A client.
pub struct Client {
    pub session: u16,
    pub lanes: Option<SessionLanes>,
    /// The path to the OMS of a client without lanes.
    pub remote: Option<RemoteSession>,
    /// The last client order id.
    last: u64,
    /// New orders that the client has sent, by client order id.
    orders: Vec<(u64, SymbolId)>,
}

impl Client {
    pub fn new(session: u16, wires: &RemoteWires) -> Self {
        let remote = (session >= LANE_SESSIONS).then(|| RemoteSession::new(session, wires.clone()));
        Self { session, lanes: None, remote, last: 0, orders: Vec::new() }
    }

    pub fn join(&mut self, lanes: &LanesConfig, clock: &SimClock) -> Result<(), LogOpenError> {
        if self.lanes.is_none() && self.remote.is_none() {
            self.lanes = Some(lanes.join_session(self.session, clock.calibration())?);
        }
        Ok(())
    }

    /// Sends a request; false if the lane does not take it.
    pub fn send(&mut self, request: &Request, around: &mut StepContext<'_>) -> bool {
        let is_sent = match (&mut self.remote, &mut self.lanes) {
            (Some(remote), _) => remote.send(request, around),
            (None, Some(lanes)) => {
                let sent = lanes.requests.publish(around.clock.ticks(), request.kind().code(), request.as_bytes());
                match sent {
                    Ok(_) => {}
                    Err(tickpath_log::LogPublishError::Full) => around.tally.count("lanes full"),
                    Err(_) => around.tally.count("requests refused: no reader"),
                }
                sent.is_ok()
            }
            (None, None) => false,
        };
        if is_sent {
            around.oracle.sent(tag(self.session, request.client_order_id().0));
            if let Request::Cancel(cancel) = request
                && cancel.order_id.0 != 0
            {
                around.oracle.note_foreign_cancel(self.session, cancel.client_order_id.0);
            }
            if matches!(request, Request::New(_) | Request::Conditional(_)) {
                self.orders.push((request.client_order_id().0, request.symbol()));
            }
        }
        is_sent
    }

    /// Draws a new order: most are day limit orders around the market.
    pub fn order(&mut self, dice: &mut Dice) -> Request {
        let (client_order_id, cause) = self.next_id();
        let is_market = dice.one_in(20);
        let time_in_force = match dice.below(20) {
            0..=3 => TimeInForce::GoodTillCancel,
            4..=5 => TimeInForce::ImmediateOrCancel,
            6 => TimeInForce::FillOrKill,
            _ => TimeInForce::Day,
        };
        // Some orders are invalid.
        let quantity = if dice.one_in(25) { 0 } else { 1 + dice.below(8) as i64 };
        Request::New(NewOrder {
            client_order_id,
            price: if is_market { Price::ZERO } else { price(dice) },
            quantity: Quantity::from_whole(quantity),
            cause,
            symbol: SymbolId(dice.below(VENUES.len() as u64) as u32),
            account: account_of(self.session),
            side: if dice.one_in(2) { Side::Buy } else { Side::Sell }.code(),
            order_type: if is_market { OrderType::Market } else { OrderType::Limit }.code(),
            time_in_force: time_in_force.code(),
            ..NewOrder::default()
        })
    }

    /// Draws a new order with a trigger.
    pub fn conditional(&mut self, dice: &mut Dice) -> Request {
        let Request::New(order) = self.order(dice) else { unreachable!("it is a new order") };
        Request::Conditional(ConditionalOrder { order, trigger: trigger(dice) })
    }

    /// Draws a replacement of a trigger, most often for an order that no longer has one.
    pub fn rearm(&mut self, dice: &mut Dice) -> Option<Request> {
        let (original, symbol) = self.pick(dice)?;
        let (client_order_id, cause) = self.next_id();
        Some(Request::ReplaceConditional(ReplaceConditional {
            client_order_id,
            original,
            price: price(dice),
            quantity: Quantity::from_whole(1 + dice.below(12) as i64),
            cause,
            symbol,
            account: account_of(self.session),
            trigger: trigger(dice),
        }))
    }

    pub fn cancel(&mut self, dice: &mut Dice) -> Option<Request> {
        let (original, symbol) = self.pick(dice)?;
        let (client_order_id, cause) = self.next_id();
        let account = account_of(self.session);
        Some(Request::Cancel(CancelOrder {
            client_order_id,
            original,
            cause,
            symbol,
            account,
            ..CancelOrder::default()
        }))
    }

    /// Returns a cancel of the client's order, as the OMS shows that order.
    pub fn cancel_of(&mut self, view: &OrderView) -> Request {
        let (client_order_id, cause) = self.next_id();
        Request::Cancel(CancelOrder {
            client_order_id,
            original: view.client_order_id,
            cause,
            symbol: view.symbol,
            account: view.account,
            ..CancelOrder::default()
        })
    }

    /// Draws a cancel of another session's order, which this session may have the right to cancel.
    pub fn cancel_of_another(&mut self, orders: &[u64], dice: &mut Dice) -> Option<Request> {
        let &order_id = orders.get(dice.place(orders.len()))?;
        let (client_order_id, cause) = self.next_id();
        Some(Request::Cancel(CancelOrder {
            client_order_id,
            cause,
            order_id: OrderId(order_id),
            ..CancelOrder::default()
        }))
    }

    pub fn replace(&mut self, dice: &mut Dice) -> Option<Request> {
        let (original, symbol) = self.pick(dice)?;
        let (client_order_id, cause) = self.next_id();
        Some(Request::Replace(ReplaceOrder {
            client_order_id,
            original,
            price: price(dice),
            quantity: Quantity::from_whole(1 + dice.below(12) as i64),
            cause,
            symbol,
            account: account_of(self.session),
            ..ReplaceOrder::default()
        }))
    }

    pub fn status(&mut self, dice: &mut Dice) -> Option<Request> {
        let (original, symbol) = self.pick(dice)?;
        let (client_order_id, _) = self.next_id();
        let account = account_of(self.session);
        Some(Request::Status(StatusRequest { client_order_id, original, symbol, account, ..StatusRequest::default() }))
    }

    pub fn mass_cancel(&mut self, dice: &mut Dice) -> Request {
        let (client_order_id, _) = self.next_id();
        let cancel_type = if dice.one_in(2) { MassCancelType::All } else { MassCancelType::Symbol }.code();
        let symbol = SymbolId(dice.below(VENUES.len() as u64) as u32);
        let account = account_of(self.session);
        Request::MassCancel(MassCancel { client_order_id, symbol, account, cancel_type, ..MassCancel::default() })
    }

    /// Reads all available reports.
    pub fn receive(&mut self, around: &mut StepContext<'_>) -> Result<usize, BrokenRule> {
        if let Some(remote) = &mut self.remote {
            return remote.receive(around);
        }
        let Some(lanes) = &mut self.lanes else { return Ok(0) };
        let start = lanes.reports.owner().incarnation;
        let mut received = 0;
        loop {
            let message = match lanes.reports.next().expect("the OMS writes sound lanes") {
                Next::Message(message) => message,
                Next::Gap(_) => {
                    around.tally.count("gaps in a client's reports");
                    continue;
                }
                Next::Empty => return Ok(received),
            };
            received += 1;
            let place = (start, message.sequence);
            around.oracle.check_frame(self.session, place, message.kind, message.payload, around.tally)?;
            if message.kind == Kind::ExecutionReport.code() {
                plant_wrong_report(self.session, place, message.payload, around)?;
            }
        }
    }

    fn next_id(&mut self) -> (ClientOrderId, u64) {
        self.last += 1;
        (ClientOrderId(self.last), tag(self.session, self.last))
    }

    /// Draws one of the client's orders, most often a late one.
    fn pick(&self, dice: &mut Dice) -> Option<(ClientOrderId, SymbolId)> {
        let recent = if dice.one_in(4) { self.orders.len() } else { self.orders.len().min(6) };
        let back = 1 + dice.place(recent);
        let &(id, symbol) = self.orders.get(self.orders.len().checked_sub(back)?)?;
        Some((ClientOrderId(id), symbol))
    }
}

/// Applies a planted bug to a report.
fn plant_wrong_report(session: u16, place: (u64, u64), payload: &[u8], around: &mut StepContext<'_>) -> RuleCheck {
    let report = tickpath_market::ExecutionReport::read_from_bytes(payload);
    let mut report = report.expect("a report was just checked");
    let (session, place) = match around.plant {
        Some(PlantedBug::ReportToAnother) => (session + 1, (place.0, u64::MAX - place.1)),
        Some(PlantedBug::InventedReport) => {
            report.order_id.0 ^= 1 << 39;
            (session, (place.0, u64::MAX - place.1))
        }
        _ => return Ok(()),
    };
    let kind = Kind::ExecutionReport.code();
    around.oracle.check_frame(session, place, kind, report.as_bytes(), around.tally)
}

/// Draws a trigger with one or two prices near the market.
fn trigger(dice: &mut Dice) -> Trigger {
    let mut condition = || Condition {
        price: price(dice),
        symbol: SymbolId(dice.below(VENUES.len() as u64) as u32),
        price_type: TriggerPriceType::ALL[dice.place(3)].code(),
        direction: TriggerDirection::ALL[dice.place(2)].code(),
        reserved: [0; 2],
    };
    let (first, second) = (condition(), condition());
    Trigger::joined(first, TriggerJoin::ALL[dice.place(3)], second)
}

fn price(dice: &mut Dice) -> Price {
    Price::from_whole(95 + dice.below(11) as i64)
}

/// The operator of the OMS.
#[derive(Default)]
pub struct Operator {
    pub control: Option<Writer>,
}

impl Operator {
    pub fn join(&mut self, lanes: &LanesConfig, clock: &SimClock) -> Result<(), LogOpenError> {
        if self.control.is_none() {
            self.control = Some(lanes.join_control(clock.calibration())?);
        }
        Ok(())
    }

    /// Sends an admin command; false if there is no reader or no room.
    pub fn send(&mut self, clock: &SimClock, kind: RecordKind, word: &(impl IntoBytes + Immutable)) -> bool {
        let control = self.control.as_mut();
        control.is_some_and(|control| control.publish(clock.ticks(), kind.code(), word.as_bytes()).is_ok())
    }
}

/// Returns whether the lane that was joined is still the current one.
pub fn is_current(lanes: &LanesConfig, kind: LaneKind, owner: tickpath_log::LogOwner) -> bool {
    let place = lanes.lane(kind).expect("a good name").path;
    tickpath_log::owner(&place).is_ok_and(|there| there == owner)
}
