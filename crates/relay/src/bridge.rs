//! From one bus to another.
//!
//! ```text
//!   broker ──one connection a topic──> bridge ──log in shared memory──> any number of local readers
//!   local publisher ──log──> bridge ──one connection a topic──> broker
//! ```
//! Each topic has a thread. A loss on the way here is told and counted: a bus has no way to publish it. A broker that
//! takes nothing now is tried again until it does; one that refuses for good ends the bridge. A message that it may have
//! taken in its last moment is sent again as the same one, and comes to each subscriber once.
//!
//! Messages that go in a circle through two bridges are not recognised as such.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use tickpath_bus::{Connection, Event, Gap, Message, PublishError, Start, Subscriber, connect};
use tickpath_clock::{Clock, Wait, sleep_ns};

use super::{
    Handed, LOOK_NS, Meter, Opening, Outlet, Outside, RETRY_NS, RelayError, Stamp, TURN, address_at, gap_words,
    without_login,
};

/// What is carried where.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The bus to receive from.
    pub from: String,
    /// The bus to publish on.
    pub to: String,
    /// The topics.
    pub routes: Vec<Route>,
    /// With which message to begin.
    pub start: Start,
    /// The kind that messages of other programs get.
    pub foreign_kind: u8,
    /// How to wait for messages, and for room in a full topic.
    pub wait: Wait,
    /// How the topics are opened that are published.
    pub opening: Opening,
}

/// A topic here and there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its name where it is received.
    pub from: String,
    /// Its name where it is published.
    pub to: String,
}

/// Carries until it is stopped. There is a meter for each route.
pub fn run(settings: &Settings, meters: &[Meter], outside: &Outside<'_>) -> Result<(), RelayError> {
    assert_eq!(settings.routes.len(), meters.len(), "each route has a meter");
    let ends = (connect(&settings.from)?, connect(&settings.to)?);
    check_circle(settings, &ends)?;
    let lines = open(settings, &ends, meters, outside)?;
    let (from, to) = (without_login(&settings.from), without_login(&settings.to));
    for route in &settings.routes {
        (outside.tell)(&format!("carrying '{}' of {from} to '{}' of {to}", route.from, route.to));
    }
    std::thread::scope(|scope| {
        let carriers: Vec<_> = lines.into_iter().map(|line| scope.spawn(move || line.carry())).collect();
        carriers.into_iter().try_for_each(|carrier| carrier.join().expect("a carrier does not panic"))
    })
}

/// From where, and to where.
type Ends = (Box<dyn Connection>, Box<dyn Connection>);

/// Refuses topics that would be received and published, and two that would go into one.
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

/// Opens everything before anything is carried.
fn open<'a>(
    settings: &Settings,
    (from, to): &Ends,
    meters: &'a [Meter],
    outside: &'a Outside<'a>,
) -> Result<Vec<Line<'a>>, RelayError> {
    let mut lines = Vec::new();
    for (route, meter) in settings.routes.iter().zip(meters) {
        let outlet = Outlet::open(to.as_ref(), (&settings.to, &route.to), &settings.opening, settings.wait, outside)?;
        let subscriber = from.subscriber(&route.from, settings.start, settings.wait)?;
        let foreign_kind = settings.foreign_kind;
        let topic = route.from.clone();
        let (is_told, is_elsewhere_told, is_out) = (false, false, false);
        let onward = Onward { topic, outlet, meter, outside, foreign_kind, is_told, is_elsewhere_told, is_out };
        lines.push(Line { subscriber, onward });
    }
    Ok(lines)
}

/// One topic on its way.
struct Line<'a> {
    subscriber: Box<dyn Subscriber>,
    onward: Onward<'a>,
}

/// The way on from here.
struct Onward<'a> {
    /// The topic's name where it is received.
    topic: String,
    outlet: Outlet,
    meter: &'a Meter,
    outside: &'a Outside<'a>,
    foreign_kind: u8,
    /// That there are messages of other programs was told.
    is_told: bool,
    /// That there are messages of other hosts was told.
    is_elsewhere_told: bool,
    /// The broker takes nothing, and that was told.
    is_out: bool,
}

impl Line<'_> {
    /// Carries until it is stopped. What cannot be carried on stops the others too.
    fn carry(self) -> Result<(), RelayError> {
        let Self { mut subscriber, mut onward } = self;
        let outside = onward.outside;
        while !outside.is_stopped() {
            let looked = outside.clock.ticks();
            let mut refused = None;
            let polled = subscriber.poll(TURN, &mut |event| {
                if refused.is_none() {
                    refused = onward.take(event, looked).err();
                }
            });
            if let Some(reason) = refused {
                outside.stop.store(true, Ordering::Relaxed);
                return Err(RelayError::Refused { topic: onward.outlet.topic, reason });
            }
            match polled {
                Ok(0) => subscriber.wait(LOOK_NS),
                Ok(_) => {}
                Err(reason) => {
                    outside.stop.store(true, Ordering::Relaxed);
                    return Err(RelayError::Receive { topic: onward.topic, reason });
                }
            }
        }
        Ok(())
    }
}

impl Onward<'_> {
    /// Carries what has come; `looked` is when it was looked for, in ticks. An error is that nothing is taken any more.
    fn take(&mut self, event: Event<'_>, looked: u64) -> Result<(), PublishError> {
        let Self { topic, foreign_kind, outside, is_told, is_elsewhere_told, .. } = self;
        match event {
            Event::Message(message) => {
                let stamp = outside.stamp_here(&message, topic, is_elsewhere_told);
                self.pass(&message, stamp, looked, false)
            }
            Event::Foreign(foreign) => {
                let message = outside.adopt(foreign, *foreign_kind, topic, is_told);
                let stamp = Stamp { ticks: message.stamp, is_arrival: false };
                self.pass(&message, stamp, looked, true)
            }
            Event::Gap(gap) => {
                self.tell_gap(gap);
                Ok(())
            }
        }
    }

    /// Publishes a message, however long it takes.
    fn pass(&mut self, message: &Message<'_>, stamp: Stamp, looked: u64, is_foreign: bool) -> Result<(), PublishError> {
        // Who has to end does not wait for a broker with each of the messages that have come.
        while !(self.is_out && self.outside.is_stopped()) {
            match self.outlet.hand_over(stamp.ticks, message.kind, message.payload, self.outside) {
                Ok(Handed::Over { refused, .. }) => {
                    self.count(message, stamp, looked, refused, is_foreign);
                    return Ok(());
                }
                Ok(Handed::Stopped) => break,
                Err(PublishError::TooLarge { bytes, limit }) => {
                    self.drop_too_large(bytes, limit);
                    return Ok(());
                }
                Err(reason) if reason.may_pass() => self.tell_outage(&reason),
                Err(reason) => return Err(reason),
            }
            sleep_ns(RETRY_NS);
        }
        self.meter.update(|totals| totals.left += 1);
        Ok(())
    }

    fn count(&mut self, message: &Message<'_>, stamp: Stamp, looked: u64, refused: bool, is_foreign: bool) {
        let had_ns = self.outside.clock.ns_between(looked, self.outside.clock.ticks());
        let utc_ns = self.outside.utc_ns_of(stamp.ticks);
        self.meter.update(|totals| {
            totals.elsewhere += u64::from(stamp.is_arrival);
            totals.message(message.payload.len(), utc_ns);
            totals.foreign += u64::from(is_foreign);
            totals.refused += u64::from(refused);
            totals.delay(had_ns);
        });
        if self.is_out {
            self.is_out = false;
            (self.outside.tell)(&format!("'{}' takes messages again; none was dropped", self.outlet.topic));
        }
    }

    fn tell_gap(&self, gap: Gap) {
        self.meter.update(|totals| totals.gap(gap));
        (self.outside.tell)(&format!("'{}': {}", self.topic, gap_words(gap)));
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
}
