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

use tickpath_bus::origin::clock_of;
use tickpath_bus::url::without_login;
use tickpath_bus::{Connection, Event, Gap, Message, PublishError, Start, Subscriber, connect};
use tickpath_clock::{Clock, Wait, sleep_ns};

use super::{LOOK_NS, Meter, Opening, Outside, RETRY_NS, RelayError, TURN, gap_words};
use crate::address::{address_at, log_address, said_address};
use crate::outlet::{Handed, Item, Outlet};
use crate::resume::{Kept, Reached, file_name};
use crate::source::Source;
use crate::tail::{Incoming, Tail};
use crate::watched::Watched;

/// Configuration of a bridge.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the bus to receive from.
    pub from: String,
    /// URL of the bus to publish on.
    pub to: String,
    /// Topics to carry.
    pub routes: Vec<Route>,
    /// Start position.
    pub start: Start,
    /// Folder of the saved positions; a topic that has one resumes there.
    pub resume: Option<PathBuf>,
    /// Kind given to messages of other programs.
    pub foreign_kind: u8,
    /// Way to wait for messages, and for room in a full topic.
    pub wait: Wait,
    /// Configuration of the published topics.
    pub opening: Opening,
}

/// Name of a topic at the source and at the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name at the source.
    pub from: String,
    /// Name at the target.
    pub to: String,
}

/// Carries until stopped. Each route has one meter.
pub fn run(settings: &Settings, meters: &[Meter], outside: &Outside<'_>) -> Result<(), RelayError> {
    open(settings, meters, outside)?.carry()
}

/// Opens everything and carries nothing yet; messages published from now on will be carried. Each route has one meter.
pub fn open<'a>(settings: &Settings, meters: &'a [Meter], outside: &'a Outside<'a>) -> Result<Opened<'a>, RelayError> {
    assert_eq!(settings.routes.len(), meters.len(), "each route has a meter");
    let ends = (connect(&settings.from)?, connect(&settings.to)?);
    check_circle(settings, &ends)?;
    let lines = open_lines(settings, &ends, meters, outside)?;
    let (from, to) = (without_login(&settings.from), without_login(&settings.to));
    for route in &settings.routes {
        (outside.tell)(&format!("carrying '{}' of {from} to '{}' of {to}", route.from, route.to));
    }
    Ok(Opened { lines, _ends: ends })
}

/// An open bridge that carries nothing yet.
pub struct Opened<'a> {
    lines: Vec<Line<'a>>,
    /// Dropped after the lines.
    _ends: Ends,
}

impl Opened<'_> {
    /// Carries until stopped.
    pub fn carry(self) -> Result<(), RelayError> {
        let Self { lines, _ends } = self;
        std::thread::scope(|scope| {
            let carriers: Vec<_> = lines.into_iter().map(|line| scope.spawn(move || line.carry())).collect();
            carriers.into_iter().try_for_each(|carrier| carrier.join().expect("a carrier does not panic"))
        })
    }
}

/// Connections to the source and to the target.
type Ends = (Box<dyn Connection>, Box<dyn Connection>);

/// Rejects a topic that would be both received and published, and two topics that would be published as one.
fn check_circle(settings: &Settings, (from, to): &Ends) -> Result<(), RelayError> {
    let mut names = BTreeSet::new();
    if let Some(route) = settings.routes.iter().find(|route| !names.insert(&route.to)) {
        return Err(RelayError::Twice(route.to.clone()));
    }
    let servers = [from.about().identity, to.about().identity];
    let address = |url: &str, side: usize, topic: &str| address_at(url, servers[side].as_deref(), topic);
    let received: Vec<String> = settings.routes.iter().map(|route| address(&settings.from, 0, &route.from)).collect();
    let circle = settings.routes.iter().find(|route| received.contains(&address(&settings.to, 1, &route.to)));
    circle.map_or(Ok(()), |route| Err(RelayError::Circle(format!("'{}' of {}", route.to, without_login(&settings.to)))))
}

/// Opens all routes before anything is carried.
fn open_lines<'a>(
    settings: &Settings,
    (from, to): &Ends,
    meters: &'a [Meter],
    outside: &'a Outside<'a>,
) -> Result<Vec<Line<'a>>, RelayError> {
    let mut lines = Vec::new();
    for (route, meter) in settings.routes.iter().zip(meters) {
        let ends = [said_address(&settings.from, &route.from), said_address(&settings.to, &route.to)];
        let (folder, received) = (settings.resume.as_deref(), (settings.from.as_str(), route.from.as_str()));
        let mut kept = Kept::asked(folder, from.as_ref(), received, &file_name(&route.from, &route.to), ends)?;
        let outlet = Outlet::open(to.as_ref(), (&settings.to, &route.to), &settings.opening, settings.wait)?;
        if !kept.as_ref().is_some_and(Kept::is_known) {
            outlet.tell_held(&settings.to, outside);
        }
        let tail = match (&kept, &outlet.log) {
            (Some(kept), Some(log)) => kept.tail(&log.there, log.next)?,
            _ => Tail::default(),
        };
        let mut incoming = Incoming {
            tail,
            target: format!("'{}'", route.to),
            clock: clock_of(outside.clock.calibration()),
            is_from_log: log_address(&settings.from, &route.from).is_some(),
        };
        let (wait, foreign_kind) = (settings.wait, settings.foreign_kind);
        let start = kept.as_ref().map_or(settings.start, |kept| kept.start(settings.start));
        let source = Source { bus: from.as_ref(), topic: &route.from, start, wait, foreign_kind };
        source.settle(&mut incoming, outside)?;
        let subscriber = source.open()?;
        let onward = Onward {
            topic: route.from.clone(),
            outlet,
            incoming,
            meter,
            outside,
            foreign_kind,
            is_told: false,
            is_elsewhere_told: false,
            is_out: false,
            has_left: false,
            has_named: false,
        };
        if let Some(kept) = &mut kept {
            kept.begin(subscriber.token(), onward.incoming.is_from_log, onward.log())?;
        }
        let log = onward.outlet.log.as_ref();
        let lost = kept.as_ref().zip(log).and_then(|(kept, log)| kept.lost(&log.there, log.next));
        lines.push(Line { subscriber, watched: Watched::default(), kept, lost, onward });
    }
    Ok(lines)
}

/// One topic with its source and its target.
struct Line<'a> {
    subscriber: Box<dyn Subscriber>,
    watched: Watched,
    kept: Option<Kept>,
    /// Messages published in an earlier run that the log has lost since.
    lost: Option<Gap>,
    onward: Onward<'a>,
}

/// Target side of a topic.
struct Onward<'a> {
    /// Name at the source.
    topic: String,
    outlet: Outlet,
    incoming: Incoming,
    meter: &'a Meter,
    outside: &'a Outside<'a>,
    foreign_kind: u8,
    /// The first message of another program was reported.
    is_told: bool,
    /// The first message of another host was reported.
    is_elsewhere_told: bool,
    /// The broker accepts nothing, which was reported.
    is_out: bool,
    /// A received message was not published, because the bridge was stopped.
    has_left: bool,
    /// An item was published on a broker under a new origin, so that a subscriber could not detect its duplicate.
    has_named: bool,
}

impl Line<'_> {
    /// Carries until stopped. A failure stops the other topics too.
    fn carry(mut self) -> Result<(), RelayError> {
        let outside = self.onward.outside;
        let mut carried = self.mend();
        while carried.is_ok() && !outside.is_stopped() {
            carried = self.turn();
        }
        self.watched.look(&*self.subscriber, &self.onward.topic, self.onward.meter, outside);
        if carried.is_err() {
            outside.stop.store(true, Ordering::Relaxed);
            return carried;
        }
        let reached = self.onward.reached(&*self.subscriber);
        self.kept.map_or(Ok(()), |mut kept| kept.end(reached))
    }

    /// Reports the messages published earlier that the log has lost, even if the bridge is to stop, because the saved
    /// position must match the log.
    fn mend(&mut self) -> Result<(), RelayError> {
        let Self { kept, lost, onward, .. } = self;
        let Some(gap) = lost.take() else { return Ok(()) };
        onward.take(Event::Gap(gap), onward.outside.clock.ticks())?;
        onward.tell_lost(kept.as_ref());
        match (kept.as_mut().filter(|_| !onward.has_left), onward.log()) {
            (Some(kept), Some(log)) => kept.mended(log),
            _ => Ok(()),
        }
    }

    /// Carries available events, or waits for some.
    fn turn(&mut self) -> Result<(), RelayError> {
        let Self { subscriber, watched, kept, onward, .. } = self;
        let outside = onward.outside;
        let looked = outside.clock.ticks();
        let most = kept.as_ref().map_or(TURN, Kept::most);
        let mut failed = None;
        let polled = subscriber.poll(most, &mut |event| {
            if failed.is_none() {
                failed = onward.take(event, looked).err();
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let count = polled.map_err(|reason| RelayError::Receive { topic: onward.topic.clone(), reason })?;
        if let Some(kept) = kept {
            let now = std::mem::take(&mut onward.has_named);
            kept.reached(&outside.clock, now, || onward.reached(&**subscriber))?;
        }
        if count == 0 {
            watched.look(&**subscriber, &onward.topic, onward.meter, outside);
            subscriber.wait(LOOK_NS);
        }
        Ok(())
    }
}

impl Onward<'_> {
    /// Carries an event; `looked` is the time of the poll, in ticks. An error means that the target accepts nothing any
    /// more.
    fn take(&mut self, event: Event<'_>, looked: u64) -> Result<(), RelayError> {
        let Self { topic, foreign_kind, outside, is_told, .. } = self;
        match event {
            Event::Message(message) => match Gap::read(message.kind, message.payload) {
                // A gap message of another publisher keeps its origin, so that it does not circulate.
                Some(gap) => self.lose(gap, |left| match left == gap {
                    true => Item::of(&message, message.stamp),
                    false => Item::Gap(looked, left),
                }),
                None => self.pass(&message, looked, false),
            },
            Event::Foreign(foreign) => {
                let message = outside.adopt(foreign, *foreign_kind, topic, is_told);
                self.pass(&message, looked, true)
            }
            Event::Gap(gap) => self.lose(gap, |gap| Item::Gap(looked, gap)),
        }
    }

    /// Reports a loss, here and downstream, as far as it is not published already.
    fn lose<'m>(&mut self, gap: Gap, item: impl FnOnce(Gap) -> Item<'m>) -> Result<(), RelayError> {
        self.meter.update(|totals| totals.gap(gap));
        (self.outside.tell)(&format!("'{}': {}", self.topic, gap_words(gap)));
        let Some(left) = self.incoming.tail.gap(gap)? else { return Ok(()) };
        self.publish(item(left)).map(|_| ())
    }

    fn pass(&mut self, message: &Message<'_>, looked: u64, is_foreign: bool) -> Result<(), RelayError> {
        let Some(timed) = self.incoming.fresh(message, is_foreign)? else { return Ok(()) };
        // A log has one clock; on a broker a stamp travels with the id of its clock.
        let here = match self.outlet.log.is_some() || message.origin.is_none() {
            true => Some(self.outside.stamp_here(&timed, &self.topic, &mut self.is_elsewhere_told)),
            false => None,
        };
        let stamp = here.map_or(message.stamp, |here| here.ticks);
        let Some(refused) = self.publish(Item::of(message, stamp))? else { return Ok(()) };
        self.incoming.passed(self.outside);
        let now = self.outside.clock.ticks();
        let had_ns = self.outside.clock.ns_between(looked, now);
        let utc_ns = self.outside.utc_ns_of(if message.is_of_clock(self.incoming.clock) { stamp } else { now });
        self.meter.update(|totals| {
            totals.elsewhere += u64::from(here.is_some_and(|here| here.is_arrival));
            totals.message(message.payload.len(), utc_ns);
            totals.foreign += u64::from(is_foreign);
            totals.refused += u64::from(refused);
            totals.delay(had_ns);
        });
        Ok(())
    }

    /// Publishes an item, however long it takes. Returns whether it was refused at first; `None` if it was not
    /// published, which is reported and counted.
    fn publish(&mut self, item: Item<'_>) -> Result<Option<bool>, RelayError> {
        // A bridge that has to stop does not wait for a broker once per received message, and publishes nothing after a
        // message that it has left out.
        while !(self.has_left || self.is_out && self.outside.is_stopped()) {
            match self.outlet.hand_over(item, self.outside) {
                Ok(Handed::Over { refused, .. }) => {
                    self.has_named |= self.outlet.log.is_none() && !item.has_origin();
                    self.tell_return();
                    return Ok(Some(refused));
                }
                Ok(Handed::Stopped) => break,
                Err(PublishError::TooLarge { bytes, limit }) => {
                    self.drop_too_large(bytes, limit);
                    let Some(left) = self.incoming.tail.gap(Gap::Missed(1))? else { return Ok(None) };
                    return self.publish(Item::Gap(self.outside.clock.ticks(), left)).map(|_| None);
                }
                Err(reason) if reason.may_pass() => self.tell_outage(&reason),
                Err(reason) => return Err(RelayError::Refused { topic: self.outlet.topic.clone(), reason }),
            }
            sleep_ns(RETRY_NS);
        }
        self.has_left = true;
        self.meter.update(|totals| totals.left += 1);
        Ok(None)
    }

    /// Returns the position carried so far; `None` if it is unknown, or if a received message was left out.
    fn reached(&self, subscriber: &dyn Subscriber) -> Option<Reached> {
        if self.has_left {
            return None;
        }
        Some(Reached { token: Some(subscriber.token()?), log: self.log() })
    }

    /// Returns the position in the log, if the target is one.
    fn log(&self) -> Option<(u64, u64)> {
        self.outlet.log.as_ref().map(|log| log.reached(&self.incoming.tail))
    }

    /// Reports that the log is shorter than it was, or another one.
    fn tell_lost(&self, kept: Option<&Kept>) {
        let Some(file) = kept.map(Kept::file) else { return };
        (self.outside.tell)(&format!(
            "'{}' had messages that are not there any more, which is told there as a loss; to carry them again, remove {}, too",
            self.outlet.topic,
            file.display()
        ));
    }

    fn drop_too_large(&self, bytes: usize, limit: usize) {
        self.meter.update(|totals| totals.too_long += 1);
        (self.outside.tell)(&format!(
            "a message of {bytes} bytes was dropped: '{}' takes up to {limit}; bridge it with a larger --capacity",
            self.outlet.topic
        ));
    }

    fn tell_outage(&mut self, reason: &PublishError) {
        if !self.is_out {
            self.is_out = true;
            (self.outside.tell)(&format!("'{}' takes nothing now, trying again: {reason}", self.outlet.topic));
        }
    }

    fn tell_return(&mut self) {
        if self.is_out {
            self.is_out = false;
            (self.outside.tell)(&format!("'{}' takes messages again; none was dropped", self.outlet.topic));
        }
    }
}
