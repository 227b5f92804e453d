//! The logs that the OMS writes to venues and clients, each behind a queue of held outputs.

use std::collections::VecDeque;

use tickpath_log::{PublishError, Writer};
use tickpath_market::{Request, StatusRequest};
use tickpath_oms_core::Output;
use tickpath_oms_journal::frame;

use crate::lines::{Lines, Passed};

/// An outbound log, and the outputs held in front of it.
pub(crate) struct Outbound {
    to: To,
    held: VecDeque<Held>,
}

/// Destination of an outbound log.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each venue, and a box would be one more step to a lane"
)]
enum To {
    Log(Writer),
    Lines(Lines),
}

/// Held output: waits until its input is durable.
pub(crate) struct Held {
    /// The input's journal sequence.
    pub sequence: u64,
    /// T1 of the input, in ticks.
    pub stamp: u64,
    /// Whether the input itself must be on the disk, or only follows an input that must.
    pub for_disk: bool,
    pub output: Output,
}

impl Outbound {
    pub fn new(log: Writer) -> Self {
        Self { to: To::Log(log), held: VecDeque::new() }
    }

    /// Returns the outbound log of a venue with lines.
    pub fn by(lines: Lines) -> Self {
        Self { to: To::Lines(lines), held: VecDeque::new() }
    }

    /// Returns the log, unless the outputs go by lines.
    pub fn log(&self) -> Option<&Writer> {
        match &self.to {
            To::Log(log) => Some(log),
            To::Lines(_) => None,
        }
    }

    /// Returns the lines, if the outputs go by lines.
    pub fn lines(&mut self) -> Option<&mut Lines> {
        match &mut self.to {
            To::Lines(lines) => Some(lines),
            To::Log(_) => None,
        }
    }

    /// Returns whether nothing is held here.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.held.is_empty()
    }

    /// Publishes an output, ahead of which nothing is held.
    #[inline]
    pub fn publish(&mut self, stamp: u64, output: &Output) -> Result<Passed, PublishError> {
        if let Output::Venue { request: Request::Status(question), .. } = output {
            return self.ask(stamp, *question);
        }
        match (&mut self.to, output) {
            (To::Lines(lines), Output::Venue { request, .. }) => lines.publish(stamp, request),
            (To::Lines(_), _) => Ok(Passed::Sent),
            (To::Log(log), output) => {
                let (kind, bytes) = frame(output);
                log.publish(stamp, kind, bytes).map(|_| Passed::Sent)
            }
        }
    }

    /// Publishes a status request for an order. The venue is to report the order's fills as well, because a fill may be
    /// lost.
    #[cold]
    fn ask(&mut self, stamp: u64, question: StatusRequest) -> Result<Passed, PublishError> {
        let request = Request::Status(StatusRequest { fills: 1, ..question });
        match &mut self.to {
            To::Lines(lines) => lines.publish(stamp, &request),
            To::Log(log) => log.publish(stamp, request.kind().code(), request.as_bytes()).map(|_| Passed::Sent),
        }
    }

    pub fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// Takes out the next output that may leave: records below `synced` are durable, and after a disk failure all may
    /// leave.
    pub fn next(&mut self, synced: u64, disk_failed: bool) -> Option<Held> {
        self.held.pop_front_if(|held| disk_failed || !held.for_disk || held.sequence < synced)
    }

    /// Takes out all held outputs.
    pub fn give_up(&mut self) -> VecDeque<Held> {
        std::mem::take(&mut self.held)
    }

    /// Returns whether the log's reader is alive, or any of the lines is up.
    pub fn is_read(&self) -> bool {
        match &self.to {
            To::Log(log) => log.is_read(),
            To::Lines(lines) => lines.is_up(),
        }
    }

    /// Returns whether anything may leave now.
    pub fn is_open(&mut self) -> bool {
        match &mut self.to {
            To::Log(log) => log.room_for(size_of::<Request>()).is_ok(),
            To::Lines(lines) => lines.is_up(),
        }
    }

    /// Checks that there is room for a request now.
    pub fn room_for(&mut self, request: &Request) -> Result<(), PublishError> {
        match &mut self.to {
            To::Log(log) => log.room_for(size_of::<Request>()),
            To::Lines(lines) => lines.room_for(request),
        }
    }
}
