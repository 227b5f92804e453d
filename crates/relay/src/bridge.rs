//! Bridge from one bus to another.
//!
//! ```text
//!   broker ──one connection a topic──> bridge ──log in shared memory──> any number of local readers
//!   local publisher ──log──> bridge ──one connection a topic──> broker
//! ```
//! Each topic has a thread. A loss upstream is reported, counted, and published as a gap message. A broker that accepts
//! nothing now is retried until it does; one that refuses for good ends the bridge. A message in doubt is sent again as
//! the same message, and each subscriber gets it once.
//!
//! On a broker messages and gap messages keep their origin. A message from a log gets one made of the log's identity
//! and its sequence number, the same from every bridge, also after a crash. So a message that circulates through two
//! bridges between brokers comes back as a duplicate, which subscribers drop.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use tickpath_bus::url::redact_logins;
use tickpath_bus::{Connection, Gap, Message, PublishError, StartPosition, Subscriber, SubscriptionEvent, connect};
use tickpath_clock::{Clock, Wait, sleep_ns};

use super::{
    MAX_EVENTS_PER_POLL, MAX_SLEEP_NS, RETRY_NS, RelayContext, RelayError, RelayMeter, TargetConfig, describe_gap,
};
use crate::address::{log_address, topic_address_at, written_address};
use crate::published_tail::{IncomingFilter, PublishedTail};
use crate::saved_position::{CarriedPosition, SavedPosition, file_name};
use crate::source::{SourceTopic, poll_events};
use crate::subscriber_watch::SubscriberWatch;
use crate::target::{CarriedItem, PublishOutcome, TopicWriter};

/// Configuration of a bridge.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the bus to receive from.
    pub from: String,
    /// URL of the bus to publish on.
    pub to: String,
    /// Topics to carry.
    pub routes: Vec<TopicRoute>,
    /// Start position.
    pub start: StartPosition,
    /// Folder of the saved positions; a topic that has one resumes there.
    pub resume: Option<PathBuf>,
    /// Kind given to messages of other programs.
    pub foreign_kind: u8,
    /// Way to wait for messages, and for room in a full topic.
    pub wait: Wait,
    /// Configuration of the published topics.
    pub target: TargetConfig,
}

/// Name of a topic at the source and at the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRoute {
    /// Name at the source.
    pub from: String,
    /// Name at the target.
    pub to: String,
}

/// Carries until stopped. Each route has one meter.
pub fn run(settings: &Settings, meters: &[RelayMeter], context: &RelayContext<'_>) -> Result<(), RelayError> {
    open(settings, meters, context)?.carry_until_stopped()
}

/// Opens everything and carries nothing yet; messages published from now on will be carried. Each route has one meter.
pub fn open<'a>(
    settings: &Settings,
    meters: &'a [RelayMeter],
    context: &'a RelayContext<'a>,
) -> Result<OpenBridge<'a>, RelayError> {
    assert_eq!(settings.routes.len(), meters.len(), "each route has a meter");
    let ends = (connect(&settings.from)?, connect(&settings.to)?);
    check_loops(settings, &ends)?;
    let topics = open_topics(settings, &ends, meters, context)?;
    let (from, to) = (redact_logins(&settings.from), redact_logins(&settings.to));
    for route in &settings.routes {
        (context.report)(&format!("carrying '{}' of {from} to '{}' of {to}", route.from, route.to));
    }
    Ok(OpenBridge { topics, _connections: ends })
}

/// An open bridge that carries nothing yet.
pub struct OpenBridge<'a> {
    topics: Vec<BridgedTopic<'a>>,
    /// Dropped after the topics.
    _connections: BridgeConnections,
}

impl OpenBridge<'_> {
    /// Carries until stopped.
    pub fn carry_until_stopped(self) -> Result<(), RelayError> {
        let Self { topics, _connections } = self;
        std::thread::scope(|scope| {
            let carriers: Vec<_> =
                topics.into_iter().map(|topic| scope.spawn(move || topic.carry_until_stopped())).collect();
            carriers.into_iter().try_for_each(|carrier| carrier.join().expect("a carrier does not panic"))
        })
    }
}

type BridgeConnections = (Box<dyn Connection>, Box<dyn Connection>);

/// Rejects a topic that would be both received and published, and two topics that would be published as one.
fn check_loops(settings: &Settings, (from, to): &BridgeConnections) -> Result<(), RelayError> {
    let mut names = BTreeSet::new();
    if let Some(route) = settings.routes.iter().find(|route| !names.insert(&route.to)) {
        return Err(RelayError::DuplicateTarget(route.to.clone()));
    }
    let servers = [from.server_description().identity, to.server_description().identity];
    let address = |url: &str, side: usize, topic: &str| topic_address_at(url, servers[side].as_deref(), topic);
    let received: Vec<String> = settings.routes.iter().map(|route| address(&settings.from, 0, &route.from)).collect();
    let looped = settings.routes.iter().find(|route| received.contains(&address(&settings.to, 1, &route.to)));
    looped.map_or(Ok(()), |route| Err(RelayError::Loop(format!("'{}' of {}", route.to, redact_logins(&settings.to)))))
}

/// Opens all routes before anything is carried.
fn open_topics<'a>(
    settings: &Settings,
    (from, to): &BridgeConnections,
    meters: &'a [RelayMeter],
    context: &'a RelayContext<'a>,
) -> Result<Vec<BridgedTopic<'a>>, RelayError> {
    let mut topics = Vec::new();
    for (route, meter) in settings.routes.iter().zip(meters) {
        let ends = [written_address(&settings.from, &route.from), written_address(&settings.to, &route.to)];
        let received = (settings.from.as_str(), route.from.as_str());
        let (folder, name) = (settings.resume.as_deref(), file_name(&route.from, &route.to));
        let mut saved = SavedPosition::open_if_requested(folder, from.as_ref(), received, &name, ends)?;
        let writer = TopicWriter::open(to.as_ref(), (&settings.to, &route.to), &settings.target, settings.wait)?;
        if !saved.as_ref().is_some_and(SavedPosition::is_known) {
            writer.report_held(&settings.to, context);
        }
        let saved_and_log = saved.as_ref().zip(writer.log.as_ref());
        let tail =
            saved_and_log.map_or(Ok(PublishedTail::default()), |(saved, log)| saved.tail(&log.reader, log.next))?;
        let log_loss = saved_and_log.and_then(|(saved, log)| saved.log_loss(&log.reader, log.next));
        let is_from_log = log_address(&settings.from, &route.from).is_some();
        let mut incoming = IncomingFilter::new(tail, format!("'{}'", route.to), is_from_log, context);
        let (wait, foreign_kind) = (settings.wait, settings.foreign_kind);
        let start = saved.as_ref().map_or(settings.start, |saved| saved.start_position(settings.start));
        let source = SourceTopic { bus: from.as_ref(), topic: &route.from, start, wait, foreign_kind };
        source.check_tail(&mut incoming, context)?;
        let subscriber = source.open()?;
        let target = BridgeTarget {
            topic: route.from.clone(),
            writer,
            incoming,
            meter,
            context,
            foreign_kind,
            is_foreign_reported: false,
            is_other_host_reported: false,
            is_outage_reported: false,
            has_unpublished: false,
            has_new_id: false,
        };
        if let Some(saved) = &mut saved {
            saved.save_start(subscriber.resume_token(), is_from_log, target.log_position())?;
        }
        topics.push(BridgedTopic { subscriber, watch: SubscriberWatch::default(), position: saved, log_loss, target });
    }
    Ok(topics)
}

struct BridgedTopic<'a> {
    subscriber: Box<dyn Subscriber>,
    watch: SubscriberWatch,
    position: Option<SavedPosition>,
    /// Messages published in an earlier run that the log has lost since.
    log_loss: Option<Gap>,
    target: BridgeTarget<'a>,
}

struct BridgeTarget<'a> {
    /// Name at the source.
    topic: String,
    writer: TopicWriter,
    incoming: IncomingFilter,
    meter: &'a RelayMeter,
    context: &'a RelayContext<'a>,
    foreign_kind: u8,
    /// The first message of another program was reported.
    is_foreign_reported: bool,
    /// The first message of another host was reported.
    is_other_host_reported: bool,
    /// The broker accepts nothing, which was reported.
    is_outage_reported: bool,
    /// A received message was not published, because the bridge was stopped.
    has_unpublished: bool,
    /// An item was published on a broker under a new origin, so that a subscriber could not detect its duplicate.
    has_new_id: bool,
}

impl BridgedTopic<'_> {
    /// Carries until stopped. A failure stops the other topics too.
    fn carry_until_stopped(mut self) -> Result<(), RelayError> {
        let context = self.target.context;
        let mut carried = self.report_log_loss();
        while carried.is_ok() && !context.is_stopped() {
            carried = self.poll_once();
        }
        self.watch.report_changes(&*self.subscriber, &self.target.topic, self.target.meter, context);
        if carried.is_err() {
            context.stop.store(true, Ordering::Relaxed);
            return carried;
        }
        let reached = self.target.carried_position(&*self.subscriber);
        self.position.map_or(Ok(()), |mut position| position.save_final(reached))
    }

    /// Reports the messages published earlier that the log has lost, even if the bridge is to stop, because the saved
    /// position must match the log.
    fn report_log_loss(&mut self) -> Result<(), RelayError> {
        let Self { position, log_loss, target, .. } = self;
        let Some(gap) = log_loss.take() else { return Ok(()) };
        target.carry_event(SubscriptionEvent::Gap(gap), target.context.clock.ticks())?;
        target.report_lost_log(position.as_ref());
        match (position.as_mut().filter(|_| !target.has_unpublished), target.log_position()) {
            (Some(position), Some(log)) => position.save_after_loss(log),
            _ => Ok(()),
        }
    }

    /// Carries available events, or waits for some.
    fn poll_once(&mut self) -> Result<(), RelayError> {
        let Self { subscriber, watch, position, target, .. } = self;
        let context = target.context;
        let polled_at = context.clock.ticks();
        let max = position.as_ref().map_or(MAX_EVENTS_PER_POLL, SavedPosition::max_events);
        let polled = poll_events(&mut **subscriber, max, |event| target.carry_event(event, polled_at))?;
        let count = polled.map_err(|reason| RelayError::Receive(target.topic.clone(), reason))?;
        if let Some(position) = position {
            let now = std::mem::take(&mut target.has_new_id);
            position.save_if_due(&context.clock, now, || target.carried_position(&**subscriber))?;
        }
        if count == 0 {
            watch.report_changes(&**subscriber, &target.topic, target.meter, context);
            subscriber.wait(MAX_SLEEP_NS);
        }
        Ok(())
    }
}

impl BridgeTarget<'_> {
    /// Carries an event; `polled_at` is the time of the poll, in ticks. An error means that the target accepts nothing
    /// any more.
    fn carry_event(&mut self, event: SubscriptionEvent<'_>, polled_at: u64) -> Result<(), RelayError> {
        match event {
            SubscriptionEvent::Message(message) => match Gap::decode(message.kind, message.payload) {
                // A gap message of another publisher keeps its origin, so that it does not circulate.
                Some(gap) => self.carry_gap(gap, |left| match left == gap {
                    true => CarriedItem::of(&message, message.stamp),
                    false => CarriedItem::Gap(polled_at, left),
                }),
                None => self.carry_message(&message, polled_at, false),
            },
            SubscriptionEvent::Foreign(foreign) => {
                let Self { topic, foreign_kind, is_foreign_reported, .. } = self;
                let message = self.context.stamp_foreign(foreign, *foreign_kind, topic, is_foreign_reported);
                self.carry_message(&message, polled_at, true)
            }
            SubscriptionEvent::Gap(gap) => self.carry_gap(gap, |gap| CarriedItem::Gap(polled_at, gap)),
        }
    }

    /// Reports a loss to the operator and downstream, as far as it is not published already.
    fn carry_gap<'m>(&mut self, gap: Gap, item: impl FnOnce(Gap) -> CarriedItem<'m>) -> Result<(), RelayError> {
        self.meter.update(|totals| totals.add_gap(gap));
        (self.context.report)(&format!("'{}': {}", self.topic, describe_gap(gap)));
        let Some(left) = self.incoming.tail.unpublished_gap(gap)? else { return Ok(()) };
        self.publish(item(left)).map(|_| ())
    }

    fn carry_message(&mut self, message: &Message<'_>, polled_at: u64, is_foreign: bool) -> Result<(), RelayError> {
        let Some(timed) = self.incoming.filter_published(message, is_foreign)? else { return Ok(()) };
        // A log has one clock; on a broker a stamp travels with the id of its clock.
        let local = match self.writer.log.is_some() || message.id.is_none() {
            true => Some(self.context.local_stamp(&timed, &self.topic, &mut self.is_other_host_reported)),
            false => None,
        };
        let stamp = local.map_or(message.stamp, |local| local.ticks);
        let Some(refused) = self.publish(CarriedItem::of(message, stamp))? else { return Ok(()) };
        self.incoming.record_published(self.context);
        let now = self.context.clock.ticks();
        let delay_ns = self.context.clock.ns_between(polled_at, now);
        let stamped = if message.is_of_clock(self.incoming.clock) { stamp } else { now };
        let utc_ns = self.context.clock.calibration().utc_ns_of(stamped);
        self.meter.update(|totals| {
            totals.other_hosts += u64::from(local.is_some_and(|local| local.is_arrival));
            totals.add_message(message.payload.len(), utc_ns);
            totals.foreign += u64::from(is_foreign);
            totals.refused += u64::from(refused);
            totals.add_delay(delay_ns);
        });
        Ok(())
    }

    /// Publishes an item, however long it takes. Returns whether it was refused at first; `None` if it was not
    /// published, which is reported and counted.
    fn publish(&mut self, item: CarriedItem<'_>) -> Result<Option<bool>, RelayError> {
        // A bridge that has to stop does not wait for a broker once per received message, and publishes nothing after a
        // message that it has left out.
        while !(self.has_unpublished || self.is_outage_reported && self.context.is_stopped()) {
            match self.writer.publish_until_stopped(item, self.context) {
                Ok(PublishOutcome::Published { refused, .. }) => {
                    self.has_new_id |= self.writer.log.is_none() && !item.has_id();
                    self.report_recovery();
                    return Ok(Some(refused));
                }
                Ok(PublishOutcome::Stopped) => break,
                Err(PublishError::TooLarge { bytes, limit }) => {
                    self.drop_too_large(bytes, limit);
                    let Some(left) = self.incoming.tail.unpublished_gap(Gap::Missed(1))? else { return Ok(None) };
                    return self.publish(CarriedItem::Gap(self.context.clock.ticks(), left)).map(|_| None);
                }
                Err(reason) if reason.is_transient() => self.report_outage(&reason),
                Err(reason) => return Err(RelayError::Refused(self.writer.topic.clone(), reason)),
            }
            sleep_ns(RETRY_NS);
        }
        self.has_unpublished = true;
        self.meter.update(|totals| totals.unpublished += 1);
        Ok(None)
    }

    /// Returns the position carried so far; `None` if it is unknown, or if a received message was left out.
    fn carried_position(&self, subscriber: &dyn Subscriber) -> Option<CarriedPosition> {
        if self.has_unpublished {
            return None;
        }
        Some(CarriedPosition { token: Some(subscriber.resume_token()?), log: self.log_position() })
    }

    fn log_position(&self) -> Option<(u64, u64)> {
        self.writer.log.as_ref().map(|log| log.position_before(&self.incoming.tail))
    }

    /// Reports that the log is shorter than it was, or another one.
    fn report_lost_log(&self, position: Option<&SavedPosition>) {
        let Some(file) = position.map(SavedPosition::file) else { return };
        (self.context.report)(&format!(
            "'{}' has lost messages of an earlier run, for which a gap is published; to carry them again, remove {}",
            self.writer.topic,
            file.display()
        ));
    }

    fn drop_too_large(&self, bytes: usize, limit: usize) {
        self.meter.update(|totals| totals.too_long += 1);
        (self.context.report)(&format!(
            "a message of {bytes} bytes was dropped: '{}' accepts up to {limit}; bridge it with a larger --capacity",
            self.writer.topic
        ));
    }

    fn report_outage(&mut self, reason: &PublishError) {
        if !self.is_outage_reported {
            self.is_outage_reported = true;
            (self.context.report)(&format!(
                "'{}' accepts no messages at present, trying again: {reason}",
                self.writer.topic
            ));
        }
    }

    fn report_recovery(&mut self) {
        if self.is_outage_reported {
            self.is_outage_reported = false;
            (self.context.report)(&format!("'{}' accepts messages again; none was dropped", self.writer.topic));
        }
    }
}
