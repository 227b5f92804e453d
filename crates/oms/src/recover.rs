//! What a restart finds: the journal replayed, and how far lanes and logs had come.
//!
//! An output's identity is its place in its log, so what lies above a log's tail was never sent. A log that was lost
//! with the host begins anew at the number that it would have now: identities stay, nothing is sent twice, and what it
//! held is in doubt.

use tickpath_clock::Calibration;
use tickpath_log::{Config as LogConfig, Reader, Writer};
use tickpath_market::{ExecutionReport, Request};
use tickpath_orders::{Core, Input, Output};
use zerocopy::IntoBytes;

use crate::lanes::{LanesConfig, attach, skip_taken};
use crate::{OmsError, journal};

/// What the OMS reads.
pub struct Inbound {
    /// Requests of each session.
    pub requests: Vec<Reader>,
    /// Reports of the venue.
    pub from_venue: Reader,
}

/// What is known after a replay.
pub(crate) struct Recovered {
    pub core: Core,
    pub to_venue: Writer,
    pub reports: Vec<Writer>,
    pub inbound: Inbound,
    /// Requests that were said and not sent.
    pub unsent: Vec<Request>,
    /// Outputs that were said and not told.
    pub untold: Vec<Output>,
    /// Orders whose requests lay in a lane that is lost.
    pub doubtful: Vec<u64>,
    /// The definitions that hold.
    pub definitions: Vec<Input>,
}

impl Recovered {
    /// Opens lanes and logs, and replays the journal against them.
    pub fn open(
        lanes: &LanesConfig,
        journal: &LogConfig,
        expected_orders: usize,
        calibration: &Calibration,
    ) -> Result<Self, OmsError> {
        let mut to_venue = Tail::open(lanes.venue_requests()?, calibration)?;
        let reports = (0..lanes.sessions).map(|session| Tail::open(lanes.reports(session)?, calibration));
        let mut reports = reports.collect::<Result<Vec<_>, OmsError>>()?;
        let mut core = Core::new(tickpath_orders::Config { expected_orders });
        let mut said = Said::new(lanes.sessions);
        journal::replay(&journal.place, &mut core, |input, outputs| {
            said.input(input);
            said.outputs(outputs, &mut to_venue, &mut reports);
        })?;
        let inbound = said.inbound(lanes, calibration)?;
        // A lane that is new although nothing was ever said on it was not lost.
        let doubtful = if to_venue.is_lost() { std::mem::take(&mut said.asked) } else { Vec::new() };
        Ok(Self {
            core,
            to_venue: to_venue.into_writer(calibration)?,
            reports: reports.into_iter().map(|tail| tail.into_writer(calibration)).collect::<Result<_, _>>()?,
            inbound,
            unsent: said.unsent,
            untold: said.untold,
            doubtful,
            definitions: said.definitions,
        })
    }
}

/// A log of outputs, and how many a replay has said for it.
struct Tail {
    config: LogConfig,
    writer: Option<Writer>,
    said: u64,
}

impl Tail {
    fn open(config: LogConfig, calibration: &Calibration) -> Result<Self, OmsError> {
        let exists = config.place.exists();
        let writer = exists.then(|| Writer::open(&config, calibration)).transpose()?;
        Ok(Self { config, writer, said: 0 })
    }

    /// Counts one output; true if the log is there and does not hold it.
    fn is_above(&mut self) -> bool {
        self.said += 1;
        self.writer.as_ref().is_some_and(|writer| self.said > writer.sequence())
    }

    fn is_lost(&self) -> bool {
        self.writer.is_none() && self.said > 0
    }

    fn into_writer(self, calibration: &Calibration) -> Result<Writer, OmsError> {
        match self.writer {
            Some(writer) => Ok(writer),
            None => Ok(Writer::open(&LogConfig { first_sequence: self.said, ..self.config }, calibration)?),
        }
    }
}

/// What a replay tells, by where it belongs.
struct Said {
    unsent: Vec<Request>,
    untold: Vec<Output>,
    asked: Vec<u64>,
    definitions: Vec<Input>,
    /// The last request of each session in the journal, and when it was sent.
    last_requests: Vec<Option<(u64, Request)>>,
    last_report: Option<ExecutionReport>,
}

impl Said {
    fn new(sessions: u16) -> Self {
        Self {
            unsent: Vec::new(),
            untold: Vec::new(),
            asked: Vec::new(),
            definitions: Vec::new(),
            last_requests: vec![None; usize::from(sessions)],
            last_report: None,
        }
    }

    fn input(&mut self, input: &Input) {
        match input {
            Input::Instrument(new) => {
                self.definitions.retain(|d| !matches!(d, Input::Instrument(old) if old.symbol == new.symbol));
                self.definitions.push(*input);
            }
            Input::Account(new) => {
                self.definitions.retain(|d| !matches!(d, Input::Account(old) if old.account == new.account));
                self.definitions.push(*input);
            }
            Input::Request { envelope, request } => {
                if let Some(last) = self.last_requests.get_mut(usize::from(envelope.session)) {
                    *last = Some((envelope.sent, *request));
                }
            }
            Input::Report(report) => self.last_report = Some(*report),
            Input::Kill(_) => {}
        }
    }

    fn outputs(&mut self, outputs: &[Output], to_venue: &mut Tail, reports: &mut [Tail]) {
        for output in outputs {
            match output {
                Output::Venue(request) => {
                    if to_venue.is_above() {
                        self.unsent.push(*request);
                    }
                    if to_venue.writer.is_none() {
                        self.asked.push(order_of(request));
                    }
                }
                Output::Report { session, .. } | Output::Denied { session, .. } => {
                    if reports.get_mut(usize::from(*session)).is_some_and(Tail::is_above) {
                        self.untold.push(*output);
                    }
                }
            }
        }
    }

    /// Readers of all inbound lanes, behind what the journal holds of them.
    fn inbound(&self, lanes: &LanesConfig, calibration: &Calibration) -> Result<Inbound, OmsError> {
        let mut requests = Vec::new();
        for (session, last) in (0..lanes.sessions).zip(&self.last_requests) {
            let mut lane = attach(&lanes.requests(session)?, calibration)?;
            if let Some((sent, request)) = last {
                skip_taken(&mut lane, |m| m.stamp == *sent && m.payload == request.as_bytes())?;
            }
            requests.push(lane);
        }
        let mut from_venue = attach(&lanes.venue_reports()?, calibration)?;
        if let Some(report) = &self.last_report {
            skip_taken(&mut from_venue, |m| m.payload == report.as_bytes())?;
        }
        Ok(Inbound { requests, from_venue })
    }
}

/// The order that a request to the venue is about.
fn order_of(request: &Request) -> u64 {
    match request {
        Request::New(m) => m.client_order_id.0,
        Request::Cancel(m) => m.original.0,
        Request::Replace(m) => m.original.0,
    }
}
