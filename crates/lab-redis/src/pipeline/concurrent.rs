//! Many connections on a single thread, or a connection that reads while it writes; in a closed loop, or at intended
//! times.
//!
//! ```text
//!   wait for events ──> read what has come ──> a batch is whole: write the next one ──> wait for events
//! ```
//! The kernel reports an event once (edge-triggered). A connection in a closed loop has no event between its last reply
//! and its next batch, so a batch costs a write and a read, and a share of a wait.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tickpath_clock::Clock;

use super::load::{BUFFER_BYTES, CommandBlock, GeneratorConnection, LoadProgress, PipelineRole, closed};
use crate::address::SERVER_TIMEOUT;

/// Time before an intended time from which the thread polls: a wait for events ends at a whole millisecond.
const POLL_LEAD_NS: i64 = 2_000_000;

/// Time from the start to the first intended time.
const START_DELAY_NS: u64 = 1_000_000;

/// Max lateness of a batch that does not count as late, if the interval is shorter.
const MIN_ALLOWANCE_NS: f64 = 10_000.0;

/// Sends batches over all links.
pub(super) fn run(
    role: &PipelineRole,
    block: &CommandBlock,
    links: &mut [GeneratorConnection],
    tally: &mut LoadProgress,
) -> io::Result<()> {
    let poll = Poll::new()?;
    let mut senders = Vec::with_capacity(links.len());
    for (number, link) in links.iter_mut().enumerate() {
        link.stream().set_nonblocking(true)?;
        let socket = link.stream().as_raw_fd();
        poll.registry().register(&mut SourceFd(&socket), Token(number), Interest::READABLE)?;
        senders.push(PipelinedConnection::new(link));
    }
    let (buffer, news) = (vec![0; BUFFER_BYTES], tally.first);
    let events = Events::with_capacity(senders.len().max(16));
    let mut many = ManyConnections { block, tally, poll, senders, buffer, unanswered: 0, last_event: news };
    match role.rate {
        Some(rate) => many.open_loop(events, role.depth as f64 * 1e9 / rate),
        None => many.closed_loop(events),
    }
}

struct ManyConnections<'a> {
    block: &'a CommandBlock,
    tally: &'a mut LoadProgress,
    poll: Poll,
    senders: Vec<PipelinedConnection<'a>>,
    buffer: Vec<u8>,
    /// Batches in flight.
    unanswered: u64,
    /// The time of the last event, in ticks.
    last_event: u64,
}

impl ManyConnections<'_> {
    /// Sends each connection's next batch when its previous batch is answered.
    fn closed_loop(&mut self, mut events: Events) -> io::Result<()> {
        let now = self.tally.first;
        for number in 0..self.senders.len() {
            self.begin_batch(number, now, now)?;
            self.update_interest(number)?;
        }
        while self.unanswered > 0 {
            self.wait(&mut events, SERVER_TIMEOUT)?;
            for event in &events {
                let number = event.token().0;
                let now = self.service(number, event.is_writable(), event.is_read_closed())?;
                if self.senders[number].waiting.is_empty() {
                    self.begin_batch(number, now, now)?;
                }
                self.update_interest(number)?;
            }
        }
        Ok(())
    }

    /// Sends a batch at each intended time, the connections in turn, whatever is still outstanding.
    fn open_loop(&mut self, mut events: Events, interval_ns: f64) -> io::Result<()> {
        let (clock, mut number, mut more) = (self.tally.clock, 0u64, true);
        let start = self.tally.first + clock.calibration().ticks_of_ns(START_DELAY_NS);
        let allowance_ns = interval_ns.max(MIN_ALLOWANCE_NS) as u64;
        loop {
            let intended = start + clock.calibration().ticks_of_ns((number as f64 * interval_ns) as u64);
            let now = clock.ticks();
            let left_ns = clock.ns_between(now, intended);
            if more && left_ns <= 0 {
                let sender = (number % self.senders.len() as u64) as usize;
                more = self.begin_batch(sender, intended, now)?;
                if more {
                    self.tally.lateness.count(left_ns.unsigned_abs(), allowance_ns);
                    self.update_interest(sender)?;
                    number += 1;
                }
            }
            if !more && self.unanswered == 0 {
                break;
            }
            // Received bytes are read after every batch, however late the batches are.
            let timeout = match left_ns {
                _ if !more => SERVER_TIMEOUT,
                POLL_LEAD_NS.. => Duration::from_nanos((left_ns - POLL_LEAD_NS / 2) as u64),
                _ => Duration::ZERO,
            };
            self.wait(&mut events, timeout)?;
            for event in &events {
                let sender = event.token().0;
                self.service(sender, event.is_writable(), event.is_read_closed())?;
                self.update_interest(sender)?;
            }
        }
        Ok(())
    }

    /// Begins a batch, if there is a next one.
    fn begin_batch(&mut self, number: usize, intended: u64, now: u64) -> io::Result<bool> {
        let Some(commands) = self.tally.next_batch(now) else { return Ok(false) };
        if self.unanswered == 0 {
            // Silence counts from the first request.
            self.last_event = now;
        }
        self.tally.sent += commands;
        self.unanswered += 1;
        let sender = &mut self.senders[number];
        sender.expected += commands;
        sender.waiting.push_back(InFlightBatch { intended, sent: now, last_reply: sender.expected });
        sender.left += self.block.length(commands);
        sender.write(self.block, &mut self.tally.calls)?;
        Ok(true)
    }

    /// Writes and reads as far as possible now, and returns the time after that.
    fn service(&mut self, number: usize, has_room: bool, has_ended: bool) -> io::Result<u64> {
        let sender = &mut self.senders[number];
        if has_room {
            sender.write(self.block, &mut self.tally.calls)?;
        }
        sender.read(&mut self.buffer, has_ended, &mut self.tally.calls)?;
        let now = self.tally.clock.ticks();
        self.last_event = now;
        while let Some(batch) = sender.pop_answered() {
            self.tally.record_batch(batch.intended, batch.sent, now);
            self.unanswered -= 1;
        }
        Ok(now)
    }

    /// Registers for write readiness only while bytes are left to write, because every reply makes room.
    fn update_interest(&mut self, number: usize) -> io::Result<()> {
        let sender = &mut self.senders[number];
        let wants_room = sender.left > 0;
        if wants_room == sender.watches_room {
            return Ok(());
        }
        sender.watches_room = wants_room;
        self.tally.calls += 1;
        let interest = if wants_room { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let socket = sender.link.stream().as_raw_fd();
        self.poll.registry().reregister(&mut SourceFd(&socket), Token(number), interest)
    }

    fn wait(&mut self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        self.tally.calls += 1;
        if let Err(e) = self.poll.poll(events, Some(timeout))
            && e.kind() != io::ErrorKind::Interrupted
        {
            return Err(e);
        }
        if events.is_empty() && self.unanswered > 0 {
            let clock = &self.tally.clock;
            let silence = Duration::from_nanos(clock.ns_between(self.last_event, clock.ticks()).max(0) as u64);
            if silence >= SERVER_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}

struct InFlightBatch {
    intended: u64,
    sent: u64,
    /// The connection's total of replies when this batch is answered.
    last_reply: u64,
}

struct PipelinedConnection<'a> {
    link: &'a mut GeneratorConnection,
    waiting: VecDeque<InFlightBatch>,
    /// The total of requested replies.
    expected: u64,
    /// Bytes still to write, and their offset in the block.
    left: u64,
    at: usize,
    /// Whether the kernel reports room to write.
    watches_room: bool,
}

impl<'a> PipelinedConnection<'a> {
    fn new(link: &'a mut GeneratorConnection) -> Self {
        Self { link, waiting: VecDeque::new(), expected: 0, left: 0, at: 0, watches_room: false }
    }

    /// Writes until nothing is left, or the socket is full.
    fn write(&mut self, block: &CommandBlock, calls: &mut u64) -> io::Result<()> {
        while self.left > 0 {
            let rest = &block.bytes[self.at..];
            let bytes = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            *calls += 1;
            match self.link.stream().write(&rest[..bytes]) {
                Ok(written) => {
                    self.left -= written as u64;
                    self.at = (self.at + written) % block.bytes.len();
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads until nothing is there, or to the end if the server has closed the connection.
    fn read(&mut self, buffer: &mut [u8], has_ended: bool, calls: &mut u64) -> io::Result<()> {
        loop {
            *calls += 1;
            match self.link.stream().read(buffer) {
                Ok(0) => return Err(closed()),
                Ok(bytes) => {
                    self.link.replies.receive(&buffer[..bytes])?;
                    // A read that leaves room in the buffer has emptied the socket: later bytes cause another event.
                    if bytes < buffer.len() && !has_ended {
                        return Ok(());
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the oldest batch, if its last reply has arrived.
    fn pop_answered(&mut self) -> Option<InFlightBatch> {
        let received = self.link.replies.received();
        let is_answered = self.waiting.front().is_some_and(|batch| batch.last_reply <= received);
        if is_answered { self.waiting.pop_front() } else { None }
    }
}
