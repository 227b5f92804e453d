//! The exchange as a service of the web server: its paths, its connections and its events.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_venue_sim_web::{ConnectionId, SimDesk, WebAnswer, WebFaults, WebRequest, WebSender, WebService};

use crate::api_session::ApiSession;
use crate::codes::{ApiError, Code};
use crate::connection::{Connection, ConnectionTimes, Maintenance, Session};
use crate::market_streams::{MarketStreams, StreamMessage};
use crate::rest;
use crate::spot::{FeeRates, SpotEvent};
use crate::spot_api::SpotApi;
use crate::stamps::StampUnit;
use crate::stream_session::StreamSession;
use crate::stream_topics::StreamTopic;
use crate::user_events::{account_position, execution_report};

const API_PATH: &str = "/ws-api/v3";
/// Weight of a connect to the WebSocket API.
const CONNECT_WEIGHT: u64 = 2;
const MILLISECOND_NS: u64 = 1_000_000;

/// A simulated Binance spot. The front page of this crate describes it.
pub struct BinanceExchange {
    api: SpotApi,
    streams: MarketStreams,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Streams that any connection has subscribed.
    topics: BTreeSet<StreamTopic>,
    times: ConnectionTimes,
    maintenance: Option<Maintenance>,
}

impl BinanceExchange {
    /// Opens the exchange for the instruments and accounts of a desk. The name of an instrument is the symbol in
    /// capitals, as in `BTCUSDT`.
    pub fn new(desk: SimDesk, faults: WebFaults) -> Self {
        let after_ns = faults.announce_maintenance_after_ms.saturating_mul(MILLISECOND_NS);
        let api = SpotApi::new(desk, faults);
        let announced_ns = api.now_ns().saturating_add(after_ns);
        let maintenance = Maintenance { announced_ns, closed_ns: announced_ns.saturating_add(after_ns) };
        Self {
            api,
            streams: MarketStreams::default(),
            connections: BTreeMap::new(),
            topics: BTreeSet::new(),
            times: ConnectionTimes::default(),
            maintenance: (after_ns > 0).then_some(maintenance),
        }
    }

    /// Returns the desk. Its events are sent in the next turn.
    pub fn desk(&mut self) -> &mut SimDesk {
        &mut self.api.spot.desk
    }

    /// Sets the fee rates in answers; the fees themselves are those of the desk.
    pub fn set_fee_rates(&mut self, fees: FeeRates) {
        self.api.spot.fees = fees;
    }

    /// Sets the times of connections.
    pub fn set_connection_times(&mut self, times: ConnectionTimes) {
        self.times = times;
    }

    fn open_session(&mut self, request: &WebRequest<'_>, now_ns: u64) -> Result<Session, ApiError> {
        if request.path == API_PATH {
            let session = ApiSession::new(request.query, now_ns)?;
            self.api.spot.limits.charge(now_ns, CONNECT_WEIGHT)?;
            return Ok(Session::Api(session));
        }
        match StreamSession::open(request.path, request.query, self.api.spot.desk.instruments()) {
            Some(session) => session.map(Session::Streams),
            None => Err(Code::UnsupportedOperation.error()),
        }
    }

    fn answer_api(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
        let Some(Connection { session: Session::Api(session), .. }) = self.connections.get_mut(&id) else { return };
        let reply = session.answer(text, &mut self.api);
        out.text(id, &reply.answer);
        let now_ns = self.api.now_ns();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if reply.is_acknowledgement && self.api.dice.happens(self.api.faults.cut_after_ack) {
            connection.cut_soon();
        }
        reply.events.into_iter().for_each(|event| connection.queue(now_ns, event));
    }

    fn answer_stream(&mut self, id: ConnectionId, text: &str, now_ns: u64, out: &mut WebSender<'_>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Session::Streams(session) = &mut connection.session else { return };
        if !session.admits_message(now_ns) {
            connection.note_flood();
            return;
        }
        let answer = session.answer(text, self.api.spot.desk.instruments());
        out.text(id, &answer);
        self.follow_topics();
    }

    /// Follows the streams that are subscribed now.
    fn follow_topics(&mut self) {
        let sessions = self.connections.values().filter_map(|connection| match &connection.session {
            Session::Streams(session) => Some(session),
            Session::Api(_) => None,
        });
        self.topics = sessions.flat_map(StreamSession::topics).collect();
        self.streams.follow(&self.topics, &self.api.spot);
    }

    /// Sends what has happened. Returns the number of events.
    fn dispatch(&mut self, now_ns: u64, out: &mut WebSender<'_>) -> usize {
        self.api.spot.absorb(now_ns);
        let events = self.api.spot.take_events();
        for event in &events {
            for message in self.streams.of_event(event, &self.api.spot, now_ns) {
                self.publish(&message, out);
            }
            self.push(event, now_ns);
        }
        for (id, connection) in &mut self.connections {
            if connection.is_served() {
                connection.send_due(*id, now_ns, out);
            }
        }
        events.len()
    }

    /// Sends a message of a stream to its subscribers.
    fn publish(&self, message: &StreamMessage, out: &mut WebSender<'_>) {
        for (id, connection) in self.connections.iter().filter(|(_, connection)| connection.is_served()) {
            if let Session::Streams(session) = &connection.session {
                session.messages_of(message).iter().for_each(|text| out.text(*id, text));
            }
        }
    }

    /// Queues an event of an account for its subscribers.
    fn push(&mut self, event: &SpotEvent, now_ns: u64) {
        let spot = &self.api.spot;
        match event {
            SpotEvent::Order(execution, record) => {
                let symbol = spot.instrument(record.instrument).name.clone();
                self.queue(record.account, now_ns, |unit| execution_report(execution, record, &symbol, now_ns, unit));
            }
            SpotEvent::Balances(account, assets) => {
                let balances: Vec<_> = spot
                    .desk
                    .balance(*account)
                    .filter(|(asset, ..)| assets.contains(*asset))
                    .map(|(asset, total, available)| (asset.to_owned(), total, available))
                    .collect();
                let listed = || balances.iter().map(|(asset, total, available)| (asset.as_str(), *total, *available));
                self.queue(*account, now_ns, |unit| account_position(listed(), now_ns, unit));
            }
            SpotEvent::Quote(_) | SpotEvent::Trade(_) => {}
        }
    }

    /// Queues an event for the sessions that have subscribed to its account, late or twice by the faults.
    fn queue(&mut self, account: usize, now_ns: u64, event: impl Fn(StampUnit) -> String) {
        let at_ns = now_ns.saturating_add(self.api.faults.late_push_ms.saturating_mul(MILLISECOND_NS));
        for connection in self.connections.values_mut() {
            let Session::Api(session) = &connection.session else { continue };
            let Some(text) = session.event_of(account, &event) else { continue };
            if self.api.dice.happens(self.api.faults.duplicate_push) {
                connection.queue(at_ns, text.clone());
            }
            connection.queue(at_ns, text);
        }
    }
}

impl WebService for BinanceExchange {
    fn http(&mut self, request: &WebRequest<'_>) -> WebAnswer {
        rest::answer(request, &mut self.api)
    }

    fn upgrade(&mut self, id: ConnectionId, request: &WebRequest<'_>) -> Result<(), WebAnswer> {
        let now_ns = self.api.now_ns();
        let counted = self.api.spot.limits.count_connect(now_ns);
        let session = counted.and_then(|()| self.open_session(request, now_ns));
        let session = session.map_err(|error| rest::refusal(&error))?;
        self.connections.insert(id, Connection::new(session, now_ns));
        self.follow_topics();
        Ok(())
    }

    fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
        let now_ns = self.api.now_ns();
        let Some(connection) = self.connections.get(&id).filter(|connection| connection.is_served()) else { return };
        match connection.session {
            Session::Api(_) => self.answer_api(id, text, out),
            Session::Streams(_) => self.answer_stream(id, text, now_ns, out),
        }
        self.dispatch(now_ns, out);
    }

    fn pong(&mut self, id: ConnectionId) {
        let now_ns = self.api.now_ns();
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.note_pong(now_ns);
        }
    }

    fn closed(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.follow_topics();
    }

    fn turn(&mut self, out: &mut WebSender<'_>) -> usize {
        let now_ns = self.api.now_ns();
        let mut work = self.dispatch(now_ns, out);
        let withheld_every = self.api.faults.reset_sequence_every;
        let due = self.streams.due(&self.topics, &self.api.spot, now_ns, withheld_every);
        work += due.len();
        due.iter().for_each(|message| self.publish(message, out));
        for (id, connection) in &mut self.connections {
            work += connection.turn(*id, now_ns, &self.times, self.maintenance, out);
        }
        work
    }
}
