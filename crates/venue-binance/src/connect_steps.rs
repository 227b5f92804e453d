//! Steps of a connect: logon and subscription one after another, each acknowledged, then the comparison with the
//! exchange.
//!
//! ```text
//!   time ──> logon ──> account ──> subscribe ──> open orders, fills since the last event, of each instrument ──> up
//!       only with a session key
//! ```

use std::collections::VecDeque;

use crate::encode::ListFrom;

/// A step of a connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectStep {
    /// The exchange's time.
    Time,
    Logon,
    /// The account of the key.
    Account,
    Subscribe,
    /// The open orders of the instrument at this place.
    OpenOrders(usize),
    /// Fills of the instrument at this place.
    Trades(usize, ListFrom),
}

/// The steps of a connect.
#[derive(Default)]
pub(crate) struct ConnectSteps {
    waiting: VecDeque<ConnectStep>,
    in_flight: Vec<ConnectStep>,
    has_begun: bool,
}

impl ConnectStep {
    /// Returns the name of the step, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "query of its time",
            Self::Logon => "logon",
            Self::Account => "query of the account",
            Self::Subscribe => "subscription to user events",
            Self::OpenOrders(_) => "query of the open orders",
            Self::Trades(..) => "query of the fills",
        }
    }

    /// Returns whether this step may leave while another one is in flight: one of the same comparison.
    fn may_accompany(self, other: Self) -> bool {
        matches!((self, other), (Self::OpenOrders(_), Self::OpenOrders(_)) | (Self::Trades(..), Self::Trades(..)))
    }
}

impl ConnectSteps {
    /// Plans the steps for an open connection, with the fills from this time on, if there was an earlier connection.
    pub(crate) fn begin(
        &mut self,
        has_session: bool,
        checks_account: bool,
        instruments: usize,
        fills_from_ms: Option<u64>,
    ) {
        self.waiting.clear();
        self.in_flight.clear();
        self.has_begun = true;
        self.waiting.push_back(ConnectStep::Time);
        if has_session {
            self.waiting.push_back(ConnectStep::Logon);
        }
        if checks_account {
            self.waiting.push_back(ConnectStep::Account);
        }
        self.waiting.push_back(ConnectStep::Subscribe);
        // The fills are assigned to orders, so the orders come first.
        self.waiting.extend((0..instruments).map(ConnectStep::OpenOrders));
        if let Some(ms) = fills_from_ms {
            self.waiting.extend((0..instruments).map(|place| ConnectStep::Trades(place, ListFrom::Time(ms))));
        }
    }

    /// Drops all steps.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the step to send next, if the steps that it needs are acknowledged.
    pub(crate) fn next(&self) -> Option<ConnectStep> {
        let next = *self.waiting.front()?;
        self.in_flight.iter().all(|step| next.may_accompany(*step)).then_some(next)
    }

    /// Notes that the next step is sent.
    pub(crate) fn note_sent(&mut self) {
        self.in_flight.extend(self.waiting.pop_front());
    }

    /// Notes that a step is acknowledged.
    pub(crate) fn note_done(&mut self, done: ConnectStep) {
        self.in_flight.retain(|step| *step != done);
    }

    /// Adds a step behind all others.
    pub(crate) fn add(&mut self, step: ConnectStep) {
        self.waiting.push_back(step);
    }

    /// Returns whether all steps are acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.has_begun && self.waiting.is_empty() && self.in_flight.is_empty()
    }

    /// Returns the name of the step that the connect waits for.
    pub(crate) fn pending_name(&self) -> &'static str {
        let step = self.in_flight.first().or(self.waiting.front());
        step.map_or("WebSocket connect", |step| step.name())
    }
}
