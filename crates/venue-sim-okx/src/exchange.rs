//! The exchange: passes messages to its parts, and does what time brings.

use tickpath_venue_sim_web::{ConnectionId, SimDesk, WebAnswer, WebFaults, WebRequest, WebSender, WebService};

use crate::audience::{Audience, Sessions};
use crate::cancel_timers::CancelTimers;
use crate::channels::EndPoint;
use crate::codes::UPGRADE;
use crate::exchange_clock::ExchangeClock;
use crate::fields::row;
use crate::gateway::Gateway;
use crate::instruments::instrument_row;
use crate::market::MarketBoard;
use crate::pushes::{PushQueue, settle};
use crate::rest::{RestDesk, not_found};
use crate::session::GatewaySession;
use crate::trading_desk::TradingDesk;

/// Silence in both directions after which a connection is closed.
const SILENCE_NS: u64 = 30_000_000_000;
/// Time from the announcement of an upgrade to the end of the connections.
const UPGRADE_NS: u64 = 60_000_000_000;
/// Turns from an acknowledgement to the cut of its connection: the client gets the acknowledgement in between.
const TURNS_TO_CUT: u64 = 2;
/// OKX's code of a cancellation by a dead man's switch.
const CANCELED_BY_TIMER: &str = "20";

/// Paths of the WebSockets.
const END_POINTS: [(&str, EndPoint); 3] = [
    ("/ws/v5/public", EndPoint::Public),
    ("/ws/v5/private", EndPoint::Private),
    ("/ws/v5/business", EndPoint::Business),
];

/// A simulated OKX. The front page of this crate has its interfaces.
pub struct OkxExchange {
    desk: TradingDesk,
    market: MarketBoard,
    queue: PushQueue,
    timers: CancelTimers,
    sessions: Sessions,
    clock: ExchangeClock,
    /// Number of turns so far.
    turns: u64,
    /// Time at which an upgrade is announced; none if there is none, or if it was announced.
    upgrade_ns: Option<u64>,
    /// Instruments that were suspended in the last turn.
    suspended: Vec<bool>,
}

impl OkxExchange {
    /// Opens an exchange on a desk, with faults.
    pub fn new(desk: SimDesk, faults: WebFaults) -> Self {
        let clock = ExchangeClock { lead_ns: faults.clock_drift_ms.saturating_mul(1_000_000) };
        let announce_ms = Some(faults.announce_maintenance_after_ms).filter(|ms| *ms > 0);
        let upgrade_ns = announce_ms.map(|ms| clock.now_ns().saturating_add(ms.saturating_mul(1_000_000)));
        let market = MarketBoard::new(&desk, faults.reset_sequence_every);
        let desk = TradingDesk::new(desk, faults);
        let suspended = (0..desk.sim.instruments().len()).map(|index| desk.sim.is_suspended(index)).collect();
        Self {
            desk,
            market,
            queue: PushQueue::default(),
            timers: CancelTimers::default(),
            sessions: Sessions::new(),
            clock,
            turns: 0,
            upgrade_ns,
            suspended,
        }
    }

    /// Returns the desk, to move its market. Clients learn of its events in the next turn.
    pub fn desk(&mut self) -> &mut SimDesk {
        &mut self.desk.sim
    }

    /// Sets the fee rates that accounts are shown, in 10⁻⁶ of a value: those with which the desk was made. Unset they
    /// are 800 for makers and 1,000 for takers.
    pub fn show_fee_rates(&mut self, maker_e6: i64, taker_e6: i64) {
        self.desk.fee_rates_e6 = (maker_e6, taker_e6);
    }

    /// Moves the exchange's clock forward: its timers see this time as passed, and signatures are compared with it.
    pub fn advance(&mut self, ns: u64) {
        self.clock.lead_ns = self.clock.lead_ns.saturating_add_unsigned(ns);
    }

    /// Sends the pushes and the market data that are due. Returns the number of messages.
    fn send_due(&mut self, now_ns: u64, out: &mut WebSender<'_>) -> usize {
        settle(&mut self.desk, &mut self.market, &mut self.queue, now_ns);
        let mut audience = Audience { sessions: &mut self.sessions, out, now_ns };
        let pushed = self.queue.deliver(&self.desk, &mut audience);
        pushed + self.market.publish(&self.desk.sim, &mut audience)
    }

    fn cancel_by_timers(&mut self, now_ns: u64) -> usize {
        let due = self.timers.take_due(now_ns);
        for (account, tag) in &due {
            self.desk.cancel_orders(now_ns, *account, CANCELED_BY_TIMER, |desk, order| {
                let has_tag = |id| desk.records.get(id).is_some_and(|record| record.note.tag == *tag);
                tag.is_empty() || has_tag(order.id)
            });
        }
        due.len()
    }

    /// Sends the instruments whose state has changed. Returns the number of messages.
    fn publish_instruments(&mut self, now_ns: u64, out: &mut WebSender<'_>) -> usize {
        let mut audience = Audience { sessions: &mut self.sessions, out, now_ns };
        let mut sent = 0;
        for (at, known) in self.desk.sim.instruments().iter().enumerate().zip(&mut self.suspended) {
            let is_suspended = self.desk.sim.is_suspended(at.0);
            if *known != is_suspended {
                *known = is_suspended;
                sent += audience.publish_instrument(at, &instrument_row(at.1, is_suspended));
            }
        }
        sent
    }

    /// Announces an upgrade to all present connections, once.
    fn announce_upgrade(&mut self, now_ns: u64, out: &mut WebSender<'_>) -> usize {
        if self.upgrade_ns.is_none_or(|upgrade_ns| now_ns < upgrade_ns) {
            return 0;
        }
        self.upgrade_ns = None;
        let ids: Vec<ConnectionId> = self.sessions.keys().copied().collect();
        for id in &ids {
            if let Some(session) = self.sessions.get_mut(id) {
                session.closes_ns = Some(now_ns + UPGRADE_NS);
            }
            let event = row([("event", "notice"), ("code", UPGRADE.number), ("msg", UPGRADE.text)]);
            Audience { sessions: &mut self.sessions, out: &mut *out, now_ns }.send_event(*id, event);
        }
        ids.len()
    }

    /// Ends connections whose time has come.
    fn end_sessions(&mut self, now_ns: u64, out: &mut WebSender<'_>) -> usize {
        let mut ended = Vec::new();
        for (id, session) in &self.sessions {
            if session.cut_turn.is_some_and(|turn| self.turns >= turn) {
                out.cut(*id);
            } else if session.closes_ns.is_some_and(|closes_ns| now_ns >= closes_ns) {
                out.close(*id, 1001, UPGRADE.text);
            } else if now_ns.saturating_sub(session.active_ns) >= SILENCE_NS {
                out.close(*id, 4004, "No data received in 30s");
            } else {
                continue;
            }
            ended.push(*id);
        }
        for id in &ended {
            self.sessions.remove(id);
        }
        ended.len()
    }
}

impl WebService for OkxExchange {
    fn http(&mut self, request: &WebRequest<'_>) -> WebAnswer {
        let Self { desk, market, timers, clock, .. } = self;
        let answer = RestDesk { desk, market, timers, clock: *clock }.answer(request);
        let now_ns = self.clock.now_ns();
        settle(&mut self.desk, &mut self.market, &mut self.queue, now_ns);
        answer
    }

    fn upgrade(&mut self, id: ConnectionId, request: &WebRequest<'_>) -> Result<(), WebAnswer> {
        let (_, end_point) = *END_POINTS.iter().find(|(path, _)| *path == request.path).ok_or_else(not_found)?;
        self.sessions.insert(id, GatewaySession::new(end_point, self.clock.now_ns()));
        Ok(())
    }

    fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
        let now_ns = self.clock.now_ns();
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.cut_turn.is_none()) else { return };
        session.active_ns = now_ns;
        if text == "ping" {
            return out.text(id, "pong");
        }
        let Self { desk, market, sessions, clock, .. } = self;
        let audience = Audience { sessions, out: &mut *out, now_ns };
        let is_acknowledged = Gateway { id, desk, market, audience, clock: *clock }.handle(text);
        if is_acknowledged
            && self.desk.dice.happens(self.desk.faults.cut_after_ack)
            && let Some(session) = self.sessions.get_mut(&id)
        {
            session.cut_turn = Some(self.turns + TURNS_TO_CUT);
        }
        self.send_due(now_ns, out);
    }

    fn closed(&mut self, id: ConnectionId) {
        self.sessions.remove(&id);
    }

    fn turn(&mut self, out: &mut WebSender<'_>) -> usize {
        self.turns += 1;
        let now_ns = self.clock.now_ns();
        let ended = self.end_sessions(now_ns, out);
        let announced = self.announce_upgrade(now_ns, out);
        let canceled = self.cancel_by_timers(now_ns);
        let listed = self.publish_instruments(now_ns, out);
        ended + announced + canceled + listed + self.send_due(now_ns, out)
    }
}
