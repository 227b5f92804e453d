//! Pulls from a queue.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::AckKind;
use tickpath_bus_api::{Delivery, Mailbox, Message, Pulled, Puller, QueueConfig, ReceiveError, wire};
use tickpath_clock::{Clock, HostClock, Wait};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::arrivals::{Arrival, Arrivals};
use crate::background::Background;
use crate::connected::TIMEOUT;
use crate::core_feed::CoreFeed;
use crate::demand::Demand;
use crate::error::ServerError;
use crate::queue_feed::{Held, QueueFeed, Settlement};
use crate::server::Server;
use crate::{name, stream};

/// The queue group that all pullers are in.
const GROUP: &str = "tickpath";

/// The shortest silence; the server's clock and ours are not finer than this.
const LEAST_SILENCE: Duration = Duration::from_millis(100);

/// How long a puller that is dropped tries to give back what it holds.
const FAREWELL: Duration = Duration::from_secs(1);

/// A member of a queue group of core NATS.
pub(crate) struct CorePuller {
    arrivals: Arrivals<Arrival>,
    wait: Wait,
    background: Background,
}

impl CorePuller {
    /// Subscribes.
    pub fn open(server: Arc<Server>, queue: &str, wait: Wait) -> Result<Self, ServerError> {
        let mailbox = Mailbox::new();
        let feed = CoreFeed::new(name::queue_subject(queue), Some(GROUP), mailbox.clone());
        let background = Background::start(server, feed)?;
        Ok(Self { arrivals: Arrivals::new(mailbox), wait, background })
    }
}

impl Puller for CorePuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        self.arrivals.take(limit, |arrival| {
            // A group is told of no gaps: what was missed, another puller may have.
            let Arrival::Message { message, .. } = arrival else { return };
            if let Some(message) = wire::decode(&message.payload) {
                handler(Pulled { message, redelivered: false });
            }
        })
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        Ok(())
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait {
            Wait::Block | Wait::Adaptive => self.arrivals.wait(timeout_ns),
            Wait::Busy | Wait::Yield => self.wait.idle(),
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }
}

/// A puller of a queue that JetStream keeps.
pub(crate) struct StreamPuller {
    /// First, so that it ends first: it gives back what has come, and hears what is said until then.
    background: Background,
    server: Arc<Server>,
    clock: HostClock,
    arrivals: Arrivals<Held>,
    demand: Demand,
    settlements: UnboundedSender<Settlement>,
    delivery: Delivery,
    wait: Wait,
    /// For half the time after which a message comes again it is surely still ours.
    half_silence: Duration,
    /// What the last call of `pull` asked for, in messages.
    limit: usize,
    /// About to be handed over; kept, so that pulling allocates nothing.
    taken: Vec<Held>,
    /// Reply subjects of what was handed over.
    unacknowledged: Vec<Subject>,
}

impl StreamPuller {
    /// Makes the queue if it is not there, and pulls nothing yet.
    pub fn open(
        server: Arc<Server>,
        queue: &str,
        config: &QueueConfig,
        wait: Wait,
        clock: HostClock,
    ) -> Result<Self, ServerError> {
        let (mailbox, demand) = (Mailbox::new(), Demand::default());
        let (settlements, to_settle) = unbounded_channel();
        let silence = Duration::from_nanos(config.silence_ns).max(LEAST_SILENCE);
        let stream = stream::of_queue(queue);
        let feed = QueueFeed::new(stream, silence, clock, mailbox.clone(), demand.clone(), to_settle);
        Ok(Self {
            background: Background::start(server.clone(), feed)?,
            server,
            clock,
            arrivals: Arrivals::new(mailbox),
            demand,
            settlements,
            delivery: config.delivery,
            wait,
            half_silence: silence / 2,
            limit: 1,
            taken: Vec::new(),
            unacknowledged: Vec::new(),
        })
    }

    /// Asks for messages if nothing lies here and nothing is on its way: no more than the caller is to take.
    fn ask(&self) {
        if self.demand.wanted() == 0 && self.arrivals.unread() == 0 {
            self.demand.raise(self.limit);
        }
    }

    /// Takes what has come and is surely still ours. What lay here for too long comes again, here or elsewhere.
    fn take(&mut self) -> Result<(), ReceiveError> {
        let taken = &mut self.taken;
        self.arrivals.take(self.limit, |held| taken.push(held))?;
        if !taken.is_empty() {
            let (clock, now) = (self.clock, self.clock.ticks());
            let half_silence_ns = self.half_silence.as_nanos() as i64;
            taken.retain(|held| clock.ns_between(held.ticks, now) < half_silence_ns);
        }
        Ok(())
    }

    /// At most once: the server forgets what is about to be handed over, and says so. Else nothing is handed over.
    fn forget_taken(&mut self) -> Result<(), ReceiveError> {
        let replies = self.taken.iter().filter_map(|held| held.message.reply.clone()).collect();
        let patience = self.half_silence.min(TIMEOUT);
        self.settle(replies, AckKind::Ack, true, patience).map_err(|e| {
            self.taken.clear();
            self.failure(&e)
        })
    }

    /// Has this said by the thread, and waits until it has been.
    fn settle(
        &self,
        replies: Vec<Subject>,
        kind: AckKind,
        is_confirmed: bool,
        patience: Duration,
    ) -> Result<(), ServerError> {
        let (done, settled) = sync_channel(1);
        let settlement = Settlement { replies, kind, is_confirmed, done };
        self.settlements.send(settlement).map_err(ServerError::closed)?;
        settled.recv_timeout(patience).unwrap_or_else(|e| match e {
            RecvTimeoutError::Timeout => Err(ServerError::Timeout),
            RecvTimeoutError::Disconnected => Err(ServerError::Closed),
        })
    }

    fn failure(&self, error: &ServerError) -> ReceiveError {
        ReceiveError::Other(format!("{} {error}", self.server.name()).into())
    }
}

impl Puller for StreamPuller {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        if limit == 0 {
            return Ok(0);
        }
        self.limit = limit;
        self.ask();
        self.take()?;
        if self.delivery == Delivery::AtMostOnce && !self.taken.is_empty() {
            self.forget_taken()?;
        }
        let count = self.taken.len();
        for Held { message, receipt, .. } in self.taken.drain(..) {
            if let Some(found) = wire::decode(&message.payload) {
                let found = Message { sequence: Some(receipt.sequence), ..found };
                handler(Pulled { message: found, redelivered: receipt.redelivered });
            }
            if self.delivery == Delivery::AtLeastOnce {
                self.unacknowledged.extend(message.reply);
            }
        }
        Ok(count)
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if self.unacknowledged.is_empty() {
            return Ok(());
        }
        let say = || self.settle(self.unacknowledged.clone(), AckKind::Ack, false, TIMEOUT);
        let said = match say() {
            // The server knows a message by its place in the queue: a new connection can say it, too.
            Err(e) if e.is_loss() => say(),
            said => said,
        };
        said.map_err(|e| self.failure(&e))?;
        self.unacknowledged.clear();
        Ok(())
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait {
            Wait::Block | Wait::Adaptive => {
                self.ask();
                self.arrivals.wait(timeout_ns);
            }
            Wait::Busy | Wait::Yield => self.wait.idle(),
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.background.reconnects())
    }
}

impl Drop for StreamPuller {
    /// What was handed over and not acknowledged comes again at once, to somebody else.
    fn drop(&mut self) {
        if !self.unacknowledged.is_empty() {
            let replies = std::mem::take(&mut self.unacknowledged);
            // What cannot be said now shows in silence.
            let _ = self.settle(replies, AckKind::Nak(None), false, FAREWELL);
        }
    }
}
