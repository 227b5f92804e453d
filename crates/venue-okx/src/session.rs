//! A connection between its frames: login, subscription, reconciliation, then requests and their answers. The session
//! does no I/O over the socket: texts wait in it to be sent, and each end is a sentence.
//!
//! ```text
//!   Down ──connect──> Paused ──its time is over──> Connecting
//!     Connecting ──socket up, OKX's time known──> LoggingIn ──acknowledged──> Subscribing
//!     Subscribing ──acknowledged──> Reconciling ──lists read──> Up ──OKX announces an upgrade──> Draining
//!     any ──refusal, silence, loss, too late──> Down
//! ```

use std::collections::VecDeque;
use std::path::PathBuf;

use tickpath_clock::{Clock, HostClock};
use tickpath_market::Request;
use tickpath_venue::{LineEvent, LineSendError, ResumeState};
use tickpath_web_client::{PendingResponse, UpgradeRefusal, WebSocketEvent};
use zeroize::Zeroizing;

use crate::clock_check::{TIME_PATH, clock_offset};
use crate::config::{OkxLineConfig, OkxLineError};
use crate::connect_check::ConnectCheck;
use crate::connect_pacer::ConnectPacer;
use crate::credentials::ApiCredentials;
use crate::frames::{LineFrame, RequestAnswer, read_frame};
use crate::order_ledger::OrderLedger;
use crate::order_limits::OrderLimits;
use crate::order_naming::OrderNaming;
use crate::order_table::OrderTable;
use crate::order_update::RawOrder;
use crate::outstanding::{OrderOperation, OutstandingRequests, SentRequest};
use crate::ping_timer::{PingCheck, PingTimer};
use crate::push_scan::scan_push;
use crate::reasons::{UNKNOWN_INSTRUMENT, is_too_frequent};
use crate::reconciliation::Reconciliation;
use crate::report_outbox::ReportOutbox;
use crate::request_writer::{LocalRefusal, RequestWriter};
use crate::rest_work::RestWork;
use crate::signature::login_request;
use crate::traded_instruments::TradedInstruments;

const SUBSCRIPTION: &str = r#"{"op":"subscribe","args":[{"channel":"orders","instType":"ANY"}]}"#;
/// Fills are asked for from this time before the last sign of life on.
const OVERLAP_NS: u64 = 60_000_000_000;
/// Max characters of a text of OKX in a sentence.
const MAX_SHOWN: usize = 200;

const UNKNOWN_HERE: LocalRefusal =
    LocalRefusal { reason: UNKNOWN_INSTRUMENT, text: "the line to OKX does not have this instrument; configure it" };
/// Statuses by which a server, or a proxy before it, refuses a WebSocket for its rate or its load.
const THROTTLED: [u16; 2] = [429, 503];

/// A connection, and what the line keeps between two.
pub(crate) struct TradingSession {
    clock: HostClock,
    times: SessionTimes,
    phase: SessionPhase,
    /// Begin of the connect, or the arrival of the last page of its lists, in ticks.
    progressed: u64,
    /// Number of the connection's first report.
    next_report: u64,
    /// OKX's time from which fills can be missing; none before the first connection was up.
    missed_since_ns: Option<u64>,
    /// File of the account of the orders.
    account_file: Option<PathBuf>,
    credentials: ApiCredentials,
    ledger: OrderLedger,
    writer: RequestWriter,
    rates: OrderLimits,
    outstanding: OutstandingRequests,
    work: RestWork,
    ping: PingTimer,
    texts: VecDeque<Zeroizing<String>>,
    failure: Option<String>,
    pacer: ConnectPacer,
    /// OKX has ended this connection for its rate or its load.
    is_throttled: bool,
    /// Pushes in another spelling than OKX's usual one, or of several rows.
    pub unusual_pushes: u64,
}

/// Limits of a connection.
#[derive(Debug, Clone, Copy)]
struct SessionTimes {
    valid_ms: u64,
    max_clock_offset_ns: u64,
    connect_timeout_ns: u64,
    answer_ns: u64,
    /// In ticks.
    connect_timeout: u64,
    silence: u64,
    answer: u64,
}

enum SessionPhase {
    Down,
    /// The connect begins at this time, in ticks.
    Paused(u64),
    /// The socket is up or not, and OKX's time is known or still to come.
    Connecting(bool, Option<PendingResponse>),
    LoggingIn,
    Subscribing,
    Reconciling(Box<Reconciliation>),
    Up,
    /// OKX closes the connection soon; since this time, in ticks, no request is taken.
    Draining(u64),
}

/// Reasons why a request was not written.
enum Unwritten {
    /// The rate limit has no room for it now.
    Full,
    Refused(LocalRefusal),
}

/// A request that the session has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreparedRequest {
    /// Nothing is to be sent.
    Settled,
    /// [`TradingSession::message`] is to be sent, for the instrument with this index.
    Message(SentRequest, usize),
}

impl TradingSession {
    /// Makes a session that is down.
    pub fn new(config: &OkxLineConfig, clock: HostClock) -> Result<Self, OkxLineError> {
        config.check()?;
        let instruments = TradedInstruments::new(&config.instruments)?;
        let ticks = |ns| clock.calibration().ticks_of_ns(ns);
        let times = SessionTimes {
            valid_ms: config.valid_ms.into(),
            max_clock_offset_ns: config.max_clock_offset_ns,
            connect_timeout_ns: config.connect_timeout_ns,
            answer_ns: config.answer_ns,
            connect_timeout: ticks(config.connect_timeout_ns),
            silence: ticks(config.silence_ns),
            answer: ticks(config.answer_ns),
        };
        Ok(Self {
            clock,
            times,
            phase: SessionPhase::Down,
            progressed: 0,
            next_report: 0,
            missed_since_ns: None,
            credentials: config.credentials.clone(),
            account_file: config.account_file.clone(),
            rates: OrderLimits::new(instruments.len(), clock.calibration()),
            work: RestWork::new(config, instruments.len(), clock)?,
            ledger: OrderLedger::new(config.venue, instruments),
            writer: RequestWriter::default(),
            outstanding: OutstandingRequests::default(),
            ping: PingTimer::new(times.silence, times.answer),
            texts: VecDeque::new(),
            failure: None,
            pacer: ConnectPacer::new(ticks(config.refused_pause_ns)),
            is_throttled: false,
            unusual_pushes: 0,
        })
    }

    /// Prepares a connection, which [`Self::start`] begins, and forgets the last one.
    pub fn begin(&mut self, resume: &ResumeState) {
        let naming = OrderNaming::of(resume.oms);
        if naming != self.ledger.naming {
            // The orders of another OMS, or of another journal, have other names.
            (self.ledger.orders, self.ledger.outbox) = (OrderTable::default(), ReportOutbox::default());
            self.missed_since_ns = None;
        }
        self.ledger.naming = naming;
        self.writer.set_naming(naming);
        self.ledger.orders.forget_in_flight();
        self.ledger.outbox.close();
        self.outstanding.clear();
        self.work.rest.begin();
        self.ping = PingTimer::new(self.times.silence, self.times.answer);
        self.texts.clear();
        (self.failure, self.is_throttled, self.next_report) = (None, false, resume.next_report);
        self.phase = SessionPhase::Paused(self.pacer.not_before());
    }

    /// Begins the connect once its pause is over. Returns whether the socket is to be connected now.
    pub fn start(&mut self) -> bool {
        let SessionPhase::Paused(until) = self.phase else { return false };
        let now = self.clock.ticks();
        if now < until {
            return false;
        }
        self.progressed = now;
        self.phase = SessionPhase::Connecting(false, Some(self.work.rest.start_public(TIME_PATH)));
        true
    }

    /// Notes how the WebSocket was refused.
    pub fn note_upgrade_refusal(&mut self, refusal: UpgradeRefusal) {
        self.is_throttled |= THROTTLED.contains(&refusal.status);
    }

    /// Ends the connection.
    pub fn end(&mut self) {
        if matches!(self.phase, SessionPhase::Up | SessionPhase::Draining(_)) {
            let alive_ns = self.work.rest.venue_ns(self.ping.last_received());
            self.missed_since_ns = Some(alive_ns.saturating_sub(OVERLAP_NS));
        }
        if !self.is_down() && (self.is_throttled || self.work.rest.is_throttled()) {
            self.pacer.note_refusal(self.clock.ticks());
        }
        self.phase = SessionPhase::Down;
    }

    /// Returns whether there is no connection, and none is begun.
    pub fn is_down(&self) -> bool {
        matches!(self.phase, SessionPhase::Down)
    }

    /// Returns the number of rows about orders of other programs.
    pub fn foreign_rows(&self) -> u64 {
        self.ledger.foreign_rows
    }

    /// Returns the texts that wait to be sent.
    pub fn texts(&mut self) -> &mut VecDeque<Zeroizing<String>> {
        &mut self.texts
    }

    /// Returns the reason why an event has ended the connection, once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Passes on the events that wait, once the connection is up.
    #[inline]
    pub fn pass_on(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> usize {
        self.ledger.outbox.pass_on(take)
    }

    /// Takes an event of the socket. After a failure the rest is dropped.
    #[inline]
    pub fn take_event(&mut self, event: WebSocketEvent<'_>) {
        if self.failure.is_some() {
            return;
        }
        match event {
            WebSocketEvent::Up => {
                self.ping.note_received(self.clock.ticks());
                if let SessionPhase::Connecting(is_open, _) = &mut self.phase {
                    *is_open = true;
                }
            }
            WebSocketEvent::Text(bytes, arrival) => {
                self.ping.note_received(arrival.read);
                self.failure = self.take_text(bytes).err();
            }
            WebSocketEvent::Binary(..) | WebSocketEvent::Ping | WebSocketEvent::Pong => {
                self.ping.note_received(self.clock.ticks());
            }
        }
    }

    /// Does the work that time and REST bring. The error is the reason why the line is lost.
    pub fn advance(&mut self) -> Result<usize, String> {
        let now = self.clock.ticks();
        let done = match self.phase {
            SessionPhase::Down | SessionPhase::Paused(_) => return Ok(0),
            SessionPhase::Up => self.work.advance(&mut self.ledger)?,
            SessionPhase::Draining(since) if self.is_drained(since, now) => {
                return Err("OKX ends this connection for an upgrade; connect again".to_owned());
            }
            SessionPhase::Draining(_) => self.work.advance(&mut self.ledger)?,
            _ => self.advance_connect(now)?,
        };
        self.check_times(now)?;
        Ok(done)
    }

    /// Takes a request: writes its message, refuses it, or answers it without OKX's gateway.
    #[inline]
    pub fn prepare(&mut self, number: u64, request: &Request) -> Result<PreparedRequest, LineSendError> {
        match self.phase {
            SessionPhase::Up => {}
            SessionPhase::Draining(_) => return Err(LineSendError::Full),
            _ => return Err(LineSendError::Down),
        }
        if let Request::Status(status) = request {
            // It changes nothing, and after a loss the OMS asks again: it needs no proof of receipt.
            self.work.ask(status, &mut self.ledger);
            self.settle(number);
            return Ok(PreparedRequest::Settled);
        }
        let sent = self.describe(number, request);
        match self.write(number, request, &sent) {
            Ok(index) => Ok(PreparedRequest::Message(sent, index)),
            Err(Unwritten::Full) => Err(LineSendError::Full),
            Err(Unwritten::Refused(refusal)) => Ok(self.refuse(&sent, refusal)),
        }
    }

    /// Writes a request that is not sent, so that the memory of the next one is in the caches. None if there is no room
    /// for a request now.
    pub fn rehearse(&mut self, request: &Request) -> Option<&str> {
        let sent = self.describe(1, request);
        self.write(1, request, &sent).ok()?;
        Some(self.writer.text())
    }

    /// Writes a request; returns the index of its instrument.
    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    fn write(&mut self, number: u64, request: &Request, sent: &SentRequest) -> Result<usize, Unwritten> {
        let index = self.ledger.instruments.find(sent.symbol).ok_or(Unwritten::Refused(UNKNOWN_HERE))?;
        if !self.rates.has_room(sent.operation, index, sent.at) {
            return Err(Unwritten::Full);
        }
        let instrument = self.ledger.instruments.get(index);
        let expires_ms = self.work.rest.venue_ns(sent.at) / 1_000_000 + self.times.valid_ms;
        self.writer.write(number, request, instrument, expires_ms).map_err(Unwritten::Refused)?;
        Ok(index)
    }

    /// Returns the message of the request that was prepared last.
    #[inline]
    pub fn message(&self) -> &str {
        self.writer.text()
    }

    /// Notes that the message of a request was sent.
    pub fn note_sent(&mut self, sent: SentRequest, instrument: usize, request: &Request) {
        self.rates.count_request(sent.operation, instrument, sent.at);
        self.outstanding.add(sent);
        if let Request::New(new) = request {
            self.ledger.orders.add_placed(new, instrument, sent.at);
        } else {
            let entry = self.ledger.orders.enter_bare(sent.order, sent.account, instrument, sent.side);
            entry.in_flight += 1;
            entry.add_change(sent.id, sent.operation == OrderOperation::Cancel);
        }
        self.work.note_change(sent.order);
    }

    fn describe(&self, number: u64, request: &Request) -> SentRequest {
        let id = request.client_order_id().0;
        let side_of = |order| self.ledger.orders.get(order).map_or(0, |entry| entry.side);
        let (operation, order, side) = match request {
            Request::New(new) => (OrderOperation::Place, id, new.side),
            Request::Conditional(conditional) => (OrderOperation::Place, id, conditional.order.side),
            Request::Extended(extended) => (OrderOperation::Place, id, extended.order.side),
            Request::Replace(replace) => (OrderOperation::Amend, replace.original.0, side_of(replace.original.0)),
            Request::Cancel(cancel) => (OrderOperation::Cancel, cancel.original.0, side_of(cancel.original.0)),
            Request::ReplaceConditional(_) | Request::MassCancel(_) | Request::Status(_) | Request::ByTextId(_) => {
                (OrderOperation::Cancel, 0, 0)
            }
        };
        let (symbol, account) = (request.symbol(), request.account());
        SentRequest { number, operation, id, order, symbol, account, side, at: self.clock.ticks() }
    }

    /// Refuses a request that is not sent; its report is the answer.
    fn refuse(&mut self, sent: &SentRequest, refusal: LocalRefusal) -> PreparedRequest {
        self.ledger.refuse(sent, refusal);
        self.settle(sent.number);
        PreparedRequest::Settled
    }

    fn settle(&mut self, number: u64) {
        self.outstanding.add_settled(number);
        self.acknowledge();
    }

    fn acknowledge(&mut self) {
        if let Some(next) = self.outstanding.take_acknowledged() {
            self.ledger.outbox.acknowledge(next);
        }
    }

    fn take_text(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Some(row) = scan_push(bytes) {
            return self.take_row(&row);
        }
        let length = bytes.len();
        let frame = read_frame(bytes).map_err(|why| {
            format!("OKX has sent a frame of {length} bytes that cannot be read: {}", self.shown(&why))
        })?;
        match frame {
            LineFrame::Pong | LineFrame::Ignored => {}
            LineFrame::LoggedIn => self.subscribe(),
            LineFrame::Subscribed => self.reconcile(),
            LineFrame::Maintenance => self.drain()?,
            LineFrame::Answer(answer) => self.take_answer(&answer),
            LineFrame::Push(rows) => {
                self.unusual_pushes += 1;
                rows.iter().try_for_each(|row| self.take_row(row))?;
            }
            LineFrame::Refused { number: Some(number), code, text } if self.outstanding.is_outstanding(number) => {
                self.take_answer(&RequestAnswer { number, code, text, received_ns: 0, sent_ns: 0 });
            }
            LineFrame::Refused { code, text, .. } => {
                self.is_throttled |= is_too_frequent(code);
                let step = self.phase.name();
                return Err(format!("OKX reports an error {step}: {}", self.shown(&text)));
            }
        }
        Ok(())
    }

    fn take_row(&mut self, row: &RawOrder<'_>) -> Result<(), String> {
        let read =
            self.ledger.apply_row(row).map_err(|why| format!("OKX has sent an order that cannot be read: {why}"));
        let Some(update) = read? else { return Ok(()) };
        self.work.note_change(update.order);
        match &mut self.phase {
            SessionPhase::Reconciling(lists) => lists.note_change(update.order),
            SessionPhase::Up | SessionPhase::Draining(_) => self.ask_for_missing_fills(update.order),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn ask_for_missing_fills(&mut self, order: u64) {
        if let Some(entry) = self.ledger.orders.get(order).filter(|entry| entry.lacks_fills()) {
            self.work.ask_for_fills(order, entry);
        }
    }

    fn take_answer(&mut self, answer: &RequestAnswer) {
        let Some(request) = self.outstanding.settle(answer.number) else { return };
        self.ledger.apply_answer(&request, answer);
        self.acknowledge();
    }

    fn subscribe(&mut self) {
        if matches!(self.phase, SessionPhase::LoggingIn) {
            self.texts.push_back(Zeroizing::new(SUBSCRIPTION.to_owned()));
            self.phase = SessionPhase::Subscribing;
        }
    }

    fn reconcile(&mut self) {
        if matches!(self.phase, SessionPhase::Subscribing) {
            self.progressed = self.clock.ticks();
            let checks = ConnectCheck::begin(self.account_file.clone(), &self.ledger.instruments);
            self.phase = SessionPhase::Reconciling(Box::new(Reconciliation::begin(checks, self.missed_since_ns)));
        }
    }

    fn drain(&mut self) -> Result<(), String> {
        match self.phase {
            SessionPhase::Up => self.phase = SessionPhase::Draining(self.clock.ticks()),
            SessionPhase::Draining(_) => {}
            _ => return Err("OKX ends this connection for an upgrade; connect again".to_owned()),
        }
        Ok(())
    }

    fn is_drained(&self, since: u64, now: u64) -> bool {
        self.outstanding.is_empty() || now.saturating_sub(since) > self.times.answer
    }

    /// Takes the connect further.
    fn advance_connect(&mut self, now: u64) -> Result<usize, String> {
        match &mut self.phase {
            SessionPhase::Connecting(is_open, time) => {
                if let Some(answer) = time.as_mut().and_then(PendingResponse::try_take) {
                    *time = None;
                    self.work.rest.note_throttling(&answer);
                    let offset_ns = clock_offset(answer, &self.clock, self.times.max_clock_offset_ns)?;
                    self.work.rest.set_offset(offset_ns);
                }
                if *is_open && time.is_none() {
                    let login = login_request(&self.credentials, self.work.rest.venue_ns(now));
                    self.texts.push_back(login);
                    self.phase = SessionPhase::LoggingIn;
                    return Ok(1);
                }
            }
            SessionPhase::Reconciling(lists) => {
                let pages = lists.pages();
                if let Some(found) = lists.advance(&mut self.work.rest, &mut self.ledger)? {
                    self.work.begin(found, &mut self.ledger);
                    self.ledger.outbox.open(self.next_report);
                    self.pacer.note_up();
                    self.phase = SessionPhase::Up;
                    return Ok(1);
                }
                if lists.pages() != pages {
                    // A list may be long after a busy outage: each page has the time of a connect.
                    self.progressed = now;
                    return Ok(1);
                }
            }
            _ => {}
        }
        if now.saturating_sub(self.progressed) <= self.times.connect_timeout {
            return Ok(0);
        }
        let limit_ms = self.times.connect_timeout_ns / 1_000_000;
        Err(match &self.phase {
            SessionPhase::Reconciling(_) => {
                format!("OKX has sent no page of its lists for {limit_ms} ms; check the address of REST")
            }
            phase => format!("the line is not up within {limit_ms} ms, {}; check the addresses", phase.name()),
        })
    }

    /// Checks that OKX answers, and sends a ping if it is silent.
    fn check_times(&mut self, now: u64) -> Result<(), String> {
        if matches!(self.phase, SessionPhase::Connecting(..)) {
            return Ok(());
        }
        let answer_ms = self.times.answer_ns / 1_000_000;
        if let Some(oldest) = self.outstanding.oldest()
            && now.saturating_sub(oldest.at) > self.times.answer
        {
            return Err(format!("OKX has not answered request {} for {answer_ms} ms; connect again", oldest.number));
        }
        match self.ping.check(now) {
            PingCheck::Alive => Ok(()),
            PingCheck::Due => {
                self.texts.push_back(Zeroizing::new("ping".to_owned()));
                Ok(())
            }
            PingCheck::Unanswered => {
                Err(format!("OKX has been silent, and has not answered a ping for {answer_ms} ms; connect again"))
            }
        }
    }

    /// Returns a text of OKX for a sentence: without secrets, without the requests that OKX quotes in its errors, and
    /// without control characters.
    fn shown(&self, text: &str) -> String {
        let text = self.credentials.hide_in(text);
        let unquoted = text.split('{').next().unwrap_or("").trim_end();
        unquoted.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

impl SessionPhase {
    /// Returns the phase as the end of a clause.
    fn name(&self) -> &'static str {
        match self {
            Self::Down => "while it is down",
            Self::Paused(_) => "before the connect",
            Self::Connecting(false, _) => "before the connection was up",
            Self::Connecting(true, _) => "before OKX's time was known",
            Self::LoggingIn => "at the login",
            Self::Subscribing => "at the subscription",
            Self::Reconciling(_) => "while the orders were listed",
            Self::Up => "while the line was up",
            Self::Draining(_) => "before an upgrade",
        }
    }
}
