//! The logs that the OMS writes: to venues and to clients. What may not leave yet waits in front of its log, in order.

use std::collections::VecDeque;

use tickpath_log::{PublishError, Writer};
use tickpath_market::{Request, StatusRequest};
use tickpath_oms_journal::frame;
use tickpath_orders::Output;

use crate::lines::{Lines, Passed};

/// One outbound log, and what is held in front of it.
pub(crate) struct Outbound {
    to: To,
    held: VecDeque<Held>,
}

/// Where it goes.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each venue, and a box would be one more step to a lane"
)]
enum To {
    Log(Writer),
    Lines(Lines),
}

/// An output that waits until its input is durable.
pub(crate) struct Held {
    /// The input's journal sequence.
    pub sequence: u64,
    /// T1 of the input, in ticks.
    pub stamp: u64,
    /// Whether the input must be on the disk, or only behind what must.
    pub for_disk: bool,
    pub output: Output,
}

impl Outbound {
    pub fn new(log: Writer) -> Self {
        Self { to: To::Log(log), held: VecDeque::new() }
    }

    /// To a venue by lines.
    pub fn by(lines: Lines) -> Self {
        Self { to: To::Lines(lines), held: VecDeque::new() }
    }

    /// Where it goes, if that is a log.
    pub fn log(&self) -> Option<&Writer> {
        match &self.to {
            To::Log(log) => Some(log),
            To::Lines(_) => None,
        }
    }

    /// The lines, if it goes by some.
    pub fn lines(&mut self) -> Option<&mut Lines> {
        match &mut self.to {
            To::Lines(lines) => Some(lines),
            To::Log(_) => None,
        }
    }

    /// Whether nothing is held here.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.held.is_empty()
    }

    /// Publishes an output, with nothing in front of it.
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

    /// Publishes a question after an order. Its venue is to report the order's fills as well: one of them may be lost.
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

    /// What may leave next: records below `synced` are durable, and all may leave once that can never be waited for.
    pub fn next(&mut self, synced: u64, disk_failed: bool) -> Option<Held> {
        self.held.pop_front_if(|held| disk_failed || !held.for_disk || held.sequence < synced)
    }

    /// Gives up everything that is held.
    pub fn give_up(&mut self) -> VecDeque<Held> {
        std::mem::take(&mut self.held)
    }

    /// Whether its reader lives, or one of its lines is up.
    pub fn is_read(&self) -> bool {
        match &self.to {
            To::Log(log) => log.is_read(),
            To::Lines(lines) => lines.is_up(),
        }
    }

    /// Whether anything may leave now.
    pub fn is_open(&mut self) -> bool {
        match &mut self.to {
            To::Log(log) => log.room_for(size_of::<Request>()).is_ok(),
            To::Lines(lines) => lines.is_up(),
        }
    }

    /// Whether a request would find room now.
    pub fn room_for(&mut self, request: &Request) -> Result<(), PublishError> {
        match &mut self.to {
            To::Log(log) => log.room_for(size_of::<Request>()),
            To::Lines(lines) => lines.room_for(request),
        }
    }
}
