//! The logs that the OMS writes to venues and clients, each behind a queue of held outputs.

use std::collections::VecDeque;

use tickpath_log::{LogPublishError, Writer};
use tickpath_market::{Request, StatusRequest};
use tickpath_oms_core::Output;
use tickpath_oms_journal::frame;

use crate::lines::{OutputProgress, VenueLines};

/// An outbound log, and the outputs held in front of it.
pub(crate) struct Outbound {
    target: OutboundTarget,
    held: VecDeque<PendingOutput>,
}

/// Destination of an outbound log.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each venue, and a box would be one more step to a lane"
)]
enum OutboundTarget {
    Log(Writer),
    Lines(VenueLines),
}

/// Held output: waits until its input is durable.
pub(crate) struct PendingOutput<T = Output> {
    /// The input's journal sequence.
    pub sequence: u64,
    /// T1 of the input, in ticks.
    pub stamp: u64,
    /// Whether the input itself must be on the disk, or only follows an input that must.
    pub needs_disk: bool,
    pub output: T,
}

impl<T> PendingOutput<T> {
    /// Returns whether the output may leave: records below `synced` are durable, and after a disk failure no output
    /// waits.
    #[inline]
    pub fn may_leave(&self, synced: u64, disk_failed: bool) -> bool {
        disk_failed || !self.needs_disk || self.sequence < synced
    }
}

impl Outbound {
    pub fn new(log: Writer) -> Self {
        Self { target: OutboundTarget::Log(log), held: VecDeque::new() }
    }

    /// Returns the outbound log of a venue with lines.
    pub fn with_lines(lines: VenueLines) -> Self {
        Self { target: OutboundTarget::Lines(lines), held: VecDeque::new() }
    }

    /// Returns the log, unless the outputs go by lines.
    pub fn log(&self) -> Option<&Writer> {
        match &self.target {
            OutboundTarget::Log(log) => Some(log),
            OutboundTarget::Lines(_) => None,
        }
    }

    /// Returns the lines, if the outputs go by lines.
    pub fn lines(&mut self) -> Option<&mut VenueLines> {
        match &mut self.target {
            OutboundTarget::Lines(lines) => Some(lines),
            OutboundTarget::Log(_) => None,
        }
    }

    /// Returns whether nothing is held here.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.held.is_empty()
    }

    /// Publishes an output, ahead of which nothing is held.
    #[inline]
    pub fn publish(&mut self, stamp: u64, output: &Output) -> Result<OutputProgress, LogPublishError> {
        if let Output::Venue { request: Request::Status(question), .. } = output {
            return self.publish_status_request(stamp, *question);
        }
        match (&mut self.target, output) {
            (OutboundTarget::Lines(lines), Output::Venue { request, .. }) => lines.publish(stamp, request),
            (OutboundTarget::Lines(_), _) => Ok(OutputProgress::Sent),
            (OutboundTarget::Log(log), output) => {
                let (kind, bytes) = frame(output);
                log.publish(stamp, kind, bytes).map(|_| OutputProgress::Sent)
            }
        }
    }

    /// Publishes a status request for an order. The venue is to report the order's fills as well, because a fill may be
    /// lost.
    #[cold]
    fn publish_status_request(
        &mut self,
        stamp: u64,
        question: StatusRequest,
    ) -> Result<OutputProgress, LogPublishError> {
        let request = Request::Status(StatusRequest { fills: 1, ..question });
        match &mut self.target {
            OutboundTarget::Lines(lines) => lines.publish(stamp, &request),
            OutboundTarget::Log(log) => {
                log.publish(stamp, request.kind().code(), request.as_bytes()).map(|_| OutputProgress::Sent)
            }
        }
    }

    pub fn hold(&mut self, held: PendingOutput) {
        self.held.push_back(held);
    }

    /// Removes and returns the next held output, if it may leave.
    pub fn next_releasable(&mut self, synced: u64, disk_failed: bool) -> Option<PendingOutput> {
        self.held.pop_front_if(|held| held.may_leave(synced, disk_failed))
    }

    /// Removes and returns all held outputs.
    pub fn take_held(&mut self) -> VecDeque<PendingOutput> {
        std::mem::take(&mut self.held)
    }

    /// Returns whether the log's reader is alive, or any of the lines is up.
    pub fn is_read(&self) -> bool {
        match &self.target {
            OutboundTarget::Log(log) => log.has_live_reader(),
            OutboundTarget::Lines(lines) => lines.is_up(),
        }
    }

    /// Returns whether anything may leave now.
    pub fn has_room(&mut self) -> bool {
        match &mut self.target {
            OutboundTarget::Log(log) => log.check_room(size_of::<Request>()).is_ok(),
            OutboundTarget::Lines(lines) => lines.is_up(),
        }
    }

    /// Checks that there is room for a request now.
    pub fn room_for(&mut self, request: &Request) -> Result<(), LogPublishError> {
        match &mut self.target {
            OutboundTarget::Log(log) => log.check_room(size_of::<Request>()),
            OutboundTarget::Lines(lines) => lines.room_for(request),
        }
    }
}
