//! The state of a line: its connection, its orders and what is in flight. The files `requests`, `answers` and `queries`
//! have the rest of its methods.
//!
//! ```text
//!   Down ── connect ──> Connecting ── all steps acknowledged ──> Up ── age, shutdown ──> Draining ──> Down
//!             └───────> Refused: the exchange demands a pause     └── loss ──> Down
//! ```

use std::path::PathBuf;

use tickpath_clock::{Clock, HostClock, rfc3339};
use tickpath_venue::{LineEvent, ResumeState, SendStamps};
use tickpath_web_client::{WebSocketClient, WebSocketEvent};

use crate::connect_steps::ConnectSteps;
use crate::identity::OmsTag;
use crate::jobs::StatusJobs;
use crate::json;
use crate::message::LineFrame;
use crate::orders::LineOrders;
use crate::outgoing::Outgoing;
use crate::pending::PendingRequests;
use crate::scan;

/// Max time in which an ending connection waits for answers.
const DRAIN_NS: i64 = 5_000_000_000;
/// Fills are asked for from this time before the last event on, because events of two instruments may swap places.
const OVERLAP_MS: u64 = 10_000;

/// Bounds of times, as in the configuration.
#[derive(Debug, Clone)]
pub(crate) struct SessionBounds {
    /// File of the account of the orders.
    pub(crate) account_file: Option<PathBuf>,
    pub(crate) recv_window_ms: u32,
    pub(crate) connect_timeout_ns: u64,
    pub(crate) answer_timeout_ns: u64,
    pub(crate) silence_ns: u64,
    pub(crate) renew_after_ns: u64,
    pub(crate) absence_margin_ns: u64,
}

/// State of the connection; times are in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Down,
    /// The connect was refused here, for this reason.
    Refused(String),
    Connecting {
        since: u64,
    },
    Up {
        since: u64,
    },
    /// The connection ends once no answer is due, for this reason.
    Draining {
        since: u64,
        why: String,
    },
}

/// The state of a line.
pub(crate) struct LineSession {
    pub(crate) clock: HostClock,
    pub(crate) bounds: SessionBounds,
    pub(crate) phase: Phase,
    pub(crate) connect: ConnectSteps,
    pub(crate) orders: LineOrders,
    pub(crate) out: Outgoing,
    pub(crate) pending: PendingRequests,
    pub(crate) jobs: StatusJobs,
    /// The exchange's time is due to be measured once more.
    pub(crate) is_time_due: bool,
    /// Times of the last request of the OMS.
    pub(crate) last_send: SendStamps,
    /// Identity of the OMS and of its number space.
    owner: Option<(u64, u64)>,
    last_arrival: u64,
    /// Reason to end the connection, found in a frame.
    failure: Option<String>,
}

impl LineSession {
    pub(crate) fn new(clock: HostClock, bounds: SessionBounds, orders: LineOrders, out: Outgoing) -> Self {
        Self {
            clock,
            bounds,
            phase: Phase::Down,
            connect: ConnectSteps::default(),
            orders,
            out,
            pending: PendingRequests::default(),
            jobs: StatusJobs::default(),
            is_time_due: false,
            last_send: SendStamps::default(),
            owner: None,
            last_arrival: 0,
            failure: None,
        }
    }

    /// Prepares a connect; returns false if the exchange must not be bothered now.
    pub(crate) fn begin(&mut self, resume: &ResumeState) -> bool {
        self.end();
        let now = self.clock.ticks();
        let owner = (resume.oms, resume.journal);
        if self.owner.replace(owner).is_some_and(|before| before != owner) {
            self.orders.forget_all(OmsTag::of(resume.oms));
            self.orders.outbox.clear();
        }
        self.orders.tag = OmsTag::of(resume.oms);
        self.orders.outbox.restart(resume.next_report);
        self.last_arrival = now;
        if let Some(until) = self.out.budget.blocked_until(now) {
            // The same sentence at each attempt, which the OMS then reports once.
            let end = rfc3339(self.clock.calibration().utc_ns_of(until));
            self.phase = Phase::Refused(format!("the exchange demands a pause until {end}; wait for its end"));
            return false;
        }
        self.phase = Phase::Connecting { since: now };
        true
    }

    /// Ends the connection: nothing that is in flight gets an answer.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Down;
        self.failure = None;
        self.is_time_due = false;
        self.connect.clear();
        self.out.clear();
        self.pending.clear();
        self.jobs.clear();
        self.orders.note_loss();
        self.orders.outbox.restart(0);
    }

    /// Handles an event of the connection, and passes on the reports of a line that is up.
    #[inline]
    pub(crate) fn handle(&mut self, event: WebSocketEvent<'_>, take: &mut dyn FnMut(LineEvent<'_>)) {
        if self.failure.is_some() {
            return;
        }
        self.last_arrival = self.clock.ticks();
        match event {
            WebSocketEvent::Up => {
                let known_until_ms = self.orders.known_until_ms;
                let fills_from_ms = (known_until_ms > 0).then(|| known_until_ms.saturating_sub(OVERLAP_MS));
                let has_session = self.out.encoder.has_session();
                let checks_account = self.bounds.account_file.is_some();
                let instruments = self.orders.instruments.len();
                self.connect.begin(has_session, checks_account, instruments, fills_from_ms);
            }
            WebSocketEvent::Text(text, _) => {
                self.failure = self.handle_text(text).err();
                self.pass_on(take);
            }
            // The client answers pings.
            WebSocketEvent::Binary(..) | WebSocketEvent::Ping | WebSocketEvent::Pong => {}
        }
    }

    /// Does what is due: sends, checks the times, ends a connect. The error is the reason of a loss.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        client: &mut WebSocketClient,
        take: &mut dyn FnMut(LineEvent<'_>),
    ) -> Result<usize, String> {
        if let Some(why) = self.failure.take() {
            return Err(why);
        }
        let now = self.clock.ticks();
        self.check_times(now)?;
        let sent = self.send_due(client, now);
        if let Phase::Connecting { .. } = self.phase
            && self.connect.is_done()
        {
            self.phase = Phase::Up { since: now };
            self.orders.known_until_ms = self.orders.known_until_ms.max(self.out.exchange.ms(now));
            self.orders.outbox.go_up();
        }
        Ok(sent + self.pass_on(take))
    }

    /// Ends the connection once all answers have arrived.
    pub(crate) fn drain(&mut self, why: &str) {
        if let Phase::Up { .. } = self.phase {
            self.phase = Phase::Draining { since: self.clock.ticks(), why: why.to_owned() };
        } else if let Phase::Connecting { .. } = self.phase {
            self.failure = Some(why.to_owned());
        }
    }

    fn handle_text(&mut self, text: &[u8]) -> Result<(), String> {
        if let Some(frame) = scan::read(text) {
            return self.handle_frame(frame);
        }
        let mut handled = Ok(());
        json::read(text, &mut |frame| handled = self.handle_frame(frame))?;
        handled
    }

    fn handle_frame(&mut self, frame: LineFrame<'_>) -> Result<(), String> {
        match frame {
            LineFrame::Placed { number, order_id } => self.handle_placed(number, order_id),
            LineFrame::Event(event) => self.orders.apply_event(&event),
            LineFrame::Unreadable(event) => self.orders.apply_unreadable(&event),
            LineFrame::Answer(answer) => self.handle_answer(answer)?,
            LineFrame::Shutdown => self.drain("the exchange shuts this server down; connect again"),
            LineFrame::StreamEnded => return Err("the exchange has ended the stream of user events".to_owned()),
            LineFrame::Other => {}
        }
        Ok(())
    }

    #[inline]
    fn pass_on(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> usize {
        match self.phase {
            Phase::Up { .. } | Phase::Draining { .. } => self.orders.outbox.drain(take),
            Phase::Down | Phase::Refused(_) | Phase::Connecting { .. } => 0,
        }
    }

    fn check_times(&mut self, now: u64) -> Result<(), String> {
        let passed = |since: u64, ns: u64| {
            u64::try_from(self.clock.ns_between(since, now)).is_ok_and(|passed_ns| passed_ns > ns)
        };
        match &self.phase {
            Phase::Down => return Ok(()),
            Phase::Refused(why) => return Err(why.clone()),
            Phase::Connecting { since } if passed(*since, self.bounds.connect_timeout_ns) => {
                return Err(format!(
                    "the {} is not completed within {} s; check the address, and the weight that other programs use",
                    self.connect.pending_name(),
                    self.bounds.connect_timeout_ns as f64 / 1e9
                ));
            }
            Phase::Draining { since, why } => {
                let is_idle = self.pending.oldest_in_flight().is_none() && self.jobs.is_empty();
                if is_idle || self.clock.ns_between(*since, now) > DRAIN_NS {
                    return Err(why.clone());
                }
            }
            Phase::Connecting { .. } | Phase::Up { .. } => {}
        }
        if passed(self.last_arrival, self.bounds.silence_ns) {
            return Err(format!("nothing has arrived for {} ms", self.bounds.silence_ns / 1_000_000));
        }
        let oldest = self.pending.oldest_in_flight().map(|(_, sent)| sent).into_iter().chain(self.out.oldest_query());
        if oldest.min().is_some_and(|sent| passed(sent, self.bounds.answer_timeout_ns)) {
            return Err(format!("a request has no answer after {} ms", self.bounds.answer_timeout_ns / 1_000_000));
        }
        if let Phase::Up { since } = self.phase
            && passed(since, self.bounds.renew_after_ns)
        {
            let hours = self.bounds.renew_after_ns / 3_600_000_000_000;
            let why =
                format!("the exchange ends a connection after 24 h, and this one is {hours} h old; connect again");
            self.drain(&why);
        }
        Ok(())
    }
}
