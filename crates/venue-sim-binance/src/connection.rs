//! A connection of a client: its session, its pings and its age, and the events that wait to be sent.

use std::collections::VecDeque;

use tickpath_venue_sim_web::{ConnectionId, WebSender};

use crate::api_session::ApiSession;
use crate::stream_session::StreamSession;

/// Turns of the exchange between an answer and the cut that follows it, in which the answer is sent.
const TURNS_UNTIL_CUT: u32 = 3;
/// Close codes of the WebSocket protocol.
const GOING_AWAY: u16 = 1001;
const POLICY_VIOLATION: u16 = 1008;

/// Times of the exchange's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTimes {
    /// Interval of the exchange's pings, in nanoseconds.
    pub ping_every_ns: u64,
    /// Time within which a pong must come, in nanoseconds.
    pub pong_within_ns: u64,
    /// Age at which a connection is closed, in nanoseconds.
    pub lifetime_ns: u64,
}

impl Default for ConnectionTimes {
    /// Returns the exchange's own times: 20 seconds, a minute and a day.
    fn default() -> Self {
        Self { ping_every_ns: 20_000_000_000, pong_within_ns: 60_000_000_000, lifetime_ns: 86_400_000_000_000 }
    }
}

/// A connection of a client.
pub(crate) struct Connection {
    pub(crate) session: Session,
    opened_ns: u64,
    pinged_ns: u64,
    pong_ns: u64,
    /// Events with the times at which they are sent.
    events: VecDeque<(u64, String)>,
    /// Turns until the connection is cut, if it is to be cut.
    turns_until_cut: Option<u32>,
    /// Whether the client has sent too many messages.
    is_flooded: bool,
    is_shutdown_announced: bool,
    is_closing: bool,
}

/// Protocol of a connection.
pub(crate) enum Session {
    Api(ApiSession),
    Streams(StreamSession),
}

/// A planned maintenance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maintenance {
    /// Time from which it is announced.
    pub(crate) announced_ns: u64,
    /// Time at which announced connections are closed.
    pub(crate) closed_ns: u64,
}

impl Connection {
    pub(crate) fn new(session: Session, now_ns: u64) -> Self {
        Self {
            session,
            opened_ns: now_ns,
            pinged_ns: now_ns,
            pong_ns: now_ns,
            events: VecDeque::new(),
            turns_until_cut: None,
            is_flooded: false,
            is_shutdown_announced: false,
            is_closing: false,
        }
    }

    /// Notes a pong, which proves that the client lives if it follows a ping.
    pub(crate) fn note_pong(&mut self, now_ns: u64) {
        if self.pinged_ns > self.pong_ns {
            self.pong_ns = now_ns;
        }
        if let Session::Streams(session) = &mut self.session {
            self.is_flooded |= !session.admits_message(now_ns);
        }
    }

    /// Notes that the client has sent too many messages.
    pub(crate) fn note_flood(&mut self) {
        self.is_flooded = true;
    }

    /// Queues an event for this time.
    pub(crate) fn queue(&mut self, at_ns: u64, event: String) {
        if self.turns_until_cut.is_none() {
            self.events.push_back((at_ns, event));
        }
    }

    /// Cuts the connection as soon as what was sent has left; events that wait are lost.
    pub(crate) fn cut_soon(&mut self) {
        self.events.clear();
        self.turns_until_cut = Some(TURNS_UNTIL_CUT);
    }

    /// Returns whether messages may still be sent.
    pub(crate) fn is_served(&self) -> bool {
        self.turns_until_cut.is_none() && !self.is_closing
    }

    /// Sends the events that are due. Returns their number.
    pub(crate) fn send_due(&mut self, id: ConnectionId, now_ns: u64, out: &mut WebSender<'_>) -> usize {
        let mut sent = 0;
        while self.events.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            if let Some((_, event)) = self.events.pop_front() {
                out.text(id, &event);
                sent += 1;
            }
        }
        sent
    }

    /// Does what the clock demands. Returns the amount of work.
    pub(crate) fn turn(
        &mut self,
        id: ConnectionId,
        now_ns: u64,
        times: &ConnectionTimes,
        maintenance: Option<Maintenance>,
        out: &mut WebSender<'_>,
    ) -> usize {
        if let Some(turns) = &mut self.turns_until_cut {
            *turns = turns.saturating_sub(1);
            if *turns == 0 {
                out.cut(id);
            }
            return 1;
        }
        if self.is_closing {
            return 0;
        }
        let sent = self.send_due(id, now_ns, out);
        if let Some((code, reason)) = self.reason_to_close(now_ns, times, maintenance) {
            out.close(id, code, reason);
            self.is_closing = true;
            return sent + 1;
        }
        sent + self.announce(id, now_ns, maintenance, out) + self.ping(id, now_ns, times, out)
    }

    fn reason_to_close(
        &self,
        now_ns: u64,
        times: &ConnectionTimes,
        maintenance: Option<Maintenance>,
    ) -> Option<(u16, &'static str)> {
        let is_under_maintenance = maintenance.is_some_and(|maintenance| now_ns >= maintenance.closed_ns);
        if self.is_flooded {
            Some((POLICY_VIOLATION, "Too many requests"))
        } else if now_ns.saturating_sub(self.pong_ns) >= times.pong_within_ns {
            Some((POLICY_VIOLATION, "Pong timeout"))
        } else if now_ns.saturating_sub(self.opened_ns) >= times.lifetime_ns {
            Some((GOING_AWAY, "Connection is too old"))
        } else if self.is_shutdown_announced && is_under_maintenance {
            Some((GOING_AWAY, "Server shutdown"))
        } else {
            None
        }
    }

    /// Announces a maintenance to a connection that was opened before.
    fn announce(
        &mut self,
        id: ConnectionId,
        now_ns: u64,
        maintenance: Option<Maintenance>,
        out: &mut WebSender<'_>,
    ) -> usize {
        let is_due =
            |maintenance: &Maintenance| now_ns >= maintenance.announced_ns && self.opened_ns < maintenance.announced_ns;
        if self.is_shutdown_announced || !maintenance.as_ref().is_some_and(is_due) {
            return 0;
        }
        self.is_shutdown_announced = true;
        let event = match &self.session {
            Session::Api(session) => session.shutdown(now_ns),
            Session::Streams(session) => session.shutdown(now_ns),
        };
        out.text(id, &event);
        1
    }

    fn ping(&mut self, id: ConnectionId, now_ns: u64, times: &ConnectionTimes, out: &mut WebSender<'_>) -> usize {
        if now_ns.saturating_sub(self.pinged_ns) < times.ping_every_ns {
            return 0;
        }
        self.pinged_ns = now_ns;
        out.ping(id);
        1
    }
}
