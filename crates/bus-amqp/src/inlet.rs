//! The receiving side over one connection after another.

use std::sync::Arc;
use std::time::Duration;

use lapin::message::Delivery;
use tickpath_bus_api::{ConnectError, Pauses, ReceiveError};
use tickpath_clock::{HostClock, Wait};

use crate::error::ServerError;
use crate::incarnation::Memory;
use crate::intake::Intake;
use crate::place::Place;
use crate::reconnect::{Outcome, PAUSE, Reconnect, Wanted};
use crate::server::Server;

/// A topic or queue that is received from, which outlives its connections.
pub(crate) struct Inlet {
    server: Arc<Server>,
    place: Place,
    wait: Wait,
    /// The current connection; none during a reconnect.
    intake: Option<Intake>,
    /// The reconnect in progress.
    reconnect: Option<Reconnect>,
    reconnects: u64,
    /// The number of messages that lost connections had handed over and not acknowledged, until it is reported.
    comes_again: usize,
    /// The pauses between reconnects.
    pauses: Pauses,
    /// The memory of a queue.
    memory: Memory,
    /// The highest tag given out on earlier connections; the broker counts from 1 on each connection.
    tags_before: u64,
    /// The last tag given out.
    last_tag: u64,
}

/// The number of messages handed over without an answer to their acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// Messages that are redelivered: their connection was lost before they were acknowledged.
    pub unsaid: usize,
    /// Messages in doubt: their connection was lost after that.
    pub unknown: usize,
}

impl Inlet {
    /// Connects.
    pub fn open(server: Arc<Server>, place: Place, wait: Wait) -> Result<Self, ConnectError> {
        let clock = HostClock::get().map_err(|e| ConnectError::Other(Box::new(e)))?;
        let intake = Intake::open(&server, &place).map_err(|e| server.error(&e))?;
        let memory = Memory { incarnation: intake.incarnation().cloned(), is_gone: false };
        Ok(Self {
            server,
            place,
            wait,
            intake: Some(intake),
            reconnect: None,
            reconnects: 0,
            comes_again: 0,
            pauses: Pauses::new(PAUSE, clock),
            memory,
            tags_before: 0,
            last_tag: 0,
        })
    }

    /// Returns true once after a reconnect.
    #[inline]
    pub fn is_anew(&mut self) -> Result<bool, ReceiveError> {
        if self.reconnect.is_some() { self.come_back() } else { Ok(false) }
    }

    /// Returns true once after the queue was gone, also if it was made anew.
    pub fn is_gone(&mut self) -> bool {
        std::mem::take(&mut self.memory.is_gone)
    }

    /// Returns the number of reconnects.
    pub fn reconnects(&self) -> u64 {
        self.reconnects
    }

    /// Returns why there is no connection now, in a sentence.
    pub fn outage(&self) -> Option<String> {
        self.reconnect.as_ref().and_then(Reconnect::why)
    }

    /// Returns the next message that is here.
    #[inline]
    pub fn take(&mut self) -> Option<Delivery> {
        match self.intake.as_mut()?.take() {
            Ok(delivery) => delivery,
            Err(why) => {
                self.lose(&why);
                None
            }
        }
    }

    /// Returns the next message for a puller. Unread messages of a connection known to be lost are redelivered to any
    /// puller, so they are dropped here.
    pub fn take_owned(&mut self) -> Option<Delivery> {
        let delivery = self.take()?;
        if self.intake.as_ref().is_some_and(Intake::is_up) {
            return Some(delivery);
        }
        self.lose(&ServerError::Closed);
        None
    }

    /// Returns the next notice of messages that the broker has dropped. To be called until there is none, after each
    /// message taken.
    #[inline]
    pub fn take_notice(&mut self) -> Option<Delivery> {
        match self.intake.as_mut()?.take_notice() {
            Ok(notice) => notice,
            Err(why) => {
                self.lose(&why);
                None
            }
        }
    }

    /// Idles or sleeps until a message may have come, or until the timeout.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.wait.sleeps() {
            self.wait.idle();
            return;
        }
        let timeout = Duration::from_nanos(timeout_ns);
        if let Some(intake) = &mut self.intake {
            intake.wait(timeout);
        } else if let Some(reconnect) = &mut self.reconnect {
            reconnect.wait(timeout);
        }
    }

    /// Records that a message is handed over, and is acknowledged later. Returns its tag, which is unique over
    /// connections.
    pub fn hold(&mut self, delivery: &Delivery) -> u64 {
        if let Some(intake) = &mut self.intake {
            intake.hold(delivery.delivery_tag);
        }
        self.last_tag = self.tags_before + delivery.delivery_tag;
        self.last_tag
    }

    /// Gives a message back. Returns false if it is not held: handed over by this connection and not acknowledged.
    pub fn give_back(&mut self, tag: u64) -> bool {
        let delivery_tag = tag.saturating_sub(self.tags_before);
        let is_held = self.intake.as_ref().is_some_and(|intake| intake.holds(delivery_tag));
        if is_held {
            self.settle(|intake| intake.give_back(delivery_tag));
        }
        is_held
    }

    /// Hands over a message that the caller does not acknowledge.
    #[inline]
    pub fn let_go(&mut self, delivery: &Delivery) {
        if let Some(intake) = &mut self.intake {
            intake.hold(delivery.delivery_tag);
            intake.tell();
        }
    }

    /// Returns the number of messages handed over and not acknowledged, if the broker sends no more before an
    /// acknowledgement.
    pub fn full(&self) -> Option<usize> {
        self.intake.as_ref().filter(|intake| intake.is_full()).map(Intake::held)
    }

    /// Acknowledges all messages handed over. Returns once how many may be redelivered, because their connection is
    /// lost.
    pub fn acknowledge(&mut self) -> Unanswered {
        let unsaid = std::mem::take(&mut self.comes_again);
        let is_said = self.intake.as_ref().is_some_and(Intake::is_up);
        self.settle(Intake::acknowledge);
        let lost = std::mem::take(&mut self.comes_again);
        if is_said { Unanswered { unsaid, unknown: lost } } else { Unanswered { unsaid: unsaid + lost, unknown: 0 } }
    }

    /// Removes a foreign message.
    pub fn reject(&mut self, delivery: &Delivery) {
        self.settle(|intake| intake.reject(delivery.delivery_tag));
    }

    fn settle(&mut self, how: impl FnOnce(&mut Intake) -> Result<(), ServerError>) {
        if let Some(intake) = &mut self.intake
            && let Err(why) = how(intake)
        {
            self.lose(&why);
        }
    }

    #[cold]
    fn lose(&mut self, why: &ServerError) {
        let lost = self.intake.take();
        self.tags_before = self.last_tag;
        self.comes_again += lost.as_ref().map_or(0, Intake::held);
        let (server, place, memory) = (self.server.clone(), self.place.clone(), self.memory.clone());
        let pause = self.pauses.next_pause().now();
        self.reconnect = Some(Reconnect::start(Wanted { server, place, memory }, why, lost, pause));
    }

    #[cold]
    fn come_back(&mut self) -> Result<bool, ReceiveError> {
        let Some(Outcome { made, memory }) = self.reconnect.as_mut().and_then(Reconnect::outcome) else {
            return Ok(false);
        };
        self.memory = memory;
        match made {
            Ok(intake) => {
                self.memory.incarnation = intake.incarnation().cloned();
                self.intake = Some(intake);
                self.reconnect = None;
                self.reconnects += 1;
                Ok(true)
            }
            Err(e) => {
                self.lose(&e);
                Err(ReceiveError::Other(self.server.sentence(&e).into()))
            }
        }
    }
}
