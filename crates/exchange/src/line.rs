//! The venue on its lanes.

use std::collections::VecDeque;

use tickpath_clock::Clock;
use tickpath_log::{Next, PublishError, ReadError, Reader, Writer, sleep_until_any};
use tickpath_market::{ExecutionReport, Kind, Request, TopOfBook};
use zerocopy::{FromBytes, IntoBytes};

use crate::Venue;

/// Messages that one turn takes from one lane before it looks at the other.
const TURN: usize = 16;

/// Why the venue's line ended.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A lane is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A report cannot be sent.
    #[error("the report lane takes no more: {0}")]
    Publish(#[source] PublishError),
}

/// A venue that takes requests from one lane, sends reports on another, and makes its market from a tick topic.
pub struct Line<C> {
    clock: C,
    venue: Venue,
    requests: Reader,
    reports: Writer,
    market: Option<Reader>,
    /// Reports that wait until the lane has room: none is ever dropped.
    waiting: VecDeque<ExecutionReport>,
    made: Vec<ExecutionReport>,
    refused: u64,
}

impl<C: Clock> Line<C> {
    /// A venue on these lanes.
    pub fn new(clock: C, venue: Venue, requests: Reader, reports: Writer, market: Option<Reader>) -> Self {
        let (waiting, made) = (VecDeque::new(), Vec::with_capacity(64));
        Self { clock, venue, requests, reports, market, waiting, made, refused: 0 }
    }

    /// One turn: moves the market, takes requests, sends reports. Says how much there was to do.
    pub fn poll(&mut self) -> Result<usize, LineError> {
        let mut done = self.send_waiting()?;
        done += self.move_market()?;
        for _ in 0..TURN {
            let Next::Message(message) = self.requests.next()? else { break };
            match Request::read(message.kind, message.payload) {
                Ok(request) => self.venue.request(self.clock.ticks(), &request, &mut self.made),
                Err(_) => self.refused += 1,
            }
            done += 1;
            self.send()?;
        }
        Ok(done)
    }

    /// Sleeps until there may be work, or `timeout_ns` is over.
    pub fn sleep(&self, timeout_ns: u64) {
        let mut sources = vec![&self.requests];
        sources.extend(&self.market);
        sleep_until_any(&sources, timeout_ns);
    }

    /// The venue.
    pub fn venue(&self) -> &Venue {
        &self.venue
    }

    /// Messages on the lane that were no requests: dropped and counted.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn move_market(&mut self) -> Result<usize, LineError> {
        let Some(market) = &mut self.market else { return Ok(0) };
        let mut done = 0;
        while done < TURN {
            let Next::Message(message) = market.next()? else { break };
            done += 1;
            if message.kind == Kind::TopOfBook.code()
                && let Ok(tick) = TopOfBook::read_from_bytes(message.payload)
            {
                self.venue.top_of_book(message.stamp, &tick, &mut self.made);
            }
        }
        self.send()?;
        Ok(done)
    }

    /// Sends what the venue just said, behind what waits already.
    fn send(&mut self) -> Result<(), LineError> {
        self.waiting.extend(self.made.drain(..));
        self.send_waiting().map(|_| ())
    }

    fn send_waiting(&mut self) -> Result<usize, LineError> {
        let mut sent = 0;
        while let Some(report) = self.waiting.front() {
            let kind = Kind::ExecutionReport.code();
            match self.reports.publish(self.clock.ticks(), kind, report.as_bytes()) {
                Ok(_) => {
                    self.waiting.pop_front();
                    sent += 1;
                }
                Err(PublishError::Full | PublishError::NoReader) => break,
                Err(e) => return Err(LineError::Publish(e)),
            }
        }
        Ok(sent)
    }
}
